#include "report/model/process_history.h"

#include <gtest/gtest.h>

#include "report/model/loaded_events.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

using Kind = ProcessEventKind;

class ProcessHistoryTest : public testing::Test {
 protected:
  const ProcessHistory& Table() {
    model_ = builder_.Build();
    OrderByTime(model_.events);
    table_ = std::make_unique<ProcessHistory>(model_);
    return *table_;
  }
  std::string_view NameAt(uint32_t pid, uint32_t tid, uint64_t time) const {
    return table_->ThreadName(table_->At(pid, time), tid, time);
  }
  // The path mapped at 0x1000 for `pid` then.
  std::string_view PathAt(uint32_t pid, uint64_t time) const {
    const SpaceId space = table_->SpaceAt(table_->At(pid, time), time);
    const Mapping* mapping = table_->spaces().Find(space, 0x1000, time).mapping;
    return mapping == nullptr ? "none" : model_.Text(mapping->path);
  }

  test::ModelBuilder builder_;
  Model model_;
  std::unique_ptr<ProcessHistory> table_;
};

TEST_F(ProcessHistoryTest, AnExecKeepsTheProcessAndChangesTheSpace) {
  builder_.Process(Kind::kExisting, 10, 5, 5, "sh");
  builder_.Map(10, 5, 0x1000, 0x1000, 0, "/bin/sh");
  builder_.Process(Kind::kExec, 20, 5, 5, "app");
  builder_.Map(20, 5, 0x1000, 0x1000, 0, "/bin/app");
  Table();
  EXPECT_EQ(table_->size(), 1u);
  EXPECT_EQ(table_->At(5, 15), table_->At(5, 25));
  EXPECT_EQ(NameAt(5, 5, 15), "sh");
  EXPECT_EQ(NameAt(5, 5, 20), "app");
  EXPECT_EQ(PathAt(5, 15), "/bin/sh");
  EXPECT_EQ(PathAt(5, 25), "/bin/app");
  EXPECT_EQ((*table_)[table_->At(5, 25)].exec_count, 1u);
  EXPECT_EQ(table_->Name(table_->At(5, 25)), "app");
}

TEST_F(ProcessHistoryTest, APidThatIsUsedAgainIsAnotherProcess) {
  builder_.Process(Kind::kExisting, 10, 1, 1, "init");
  builder_.Process(Kind::kFork, 20, 5, 5, {}, 1, 1);
  builder_.Process(Kind::kExec, 21, 5, 5, "first");
  builder_.Map(22, 5, 0x1000, 0x1000, 0, "/first");
  builder_.Process(Kind::kExit, 30, 5, 5);
  builder_.Process(Kind::kFork, 40, 5, 5, {}, 1, 1);
  builder_.Process(Kind::kExec, 41, 5, 5, "second");
  builder_.Map(42, 5, 0x1000, 0x1000, 0, "/second");
  Table();
  EXPECT_NE(table_->At(5, 25), table_->At(5, 45));
  EXPECT_EQ(NameAt(5, 5, 25), "first");
  EXPECT_EQ(PathAt(5, 25), "/first");
  EXPECT_EQ(NameAt(5, 5, 35), "first");  // a last sample after the exit record
  EXPECT_EQ(NameAt(5, 5, 45), "second");
  EXPECT_EQ(PathAt(5, 45), "/second");
  EXPECT_EQ((*table_)[table_->At(5, 25)].end_ns, 30u);
  EXPECT_EQ((*table_)[table_->At(5, 45)].end_ns, 0u);
  EXPECT_EQ(table_->At(77, 10), ProcessId{});
}

TEST_F(ProcessHistoryTest, AForkHasTheNameAndTheMappingsOfItsParent) {
  builder_.Process(Kind::kExisting, 10, 1, 1, "app");
  builder_.Map(10, 1, 0x1000, 0x1000, 0, "/app");
  builder_.Process(Kind::kFork, 20, 1, 2, {}, 1, 1);
  builder_.Process(Kind::kName, 21, 1, 2, "worker");
  builder_.Process(Kind::kFork, 30, 3, 3, {}, 1, 2);  // forked by the worker
  builder_.Process(Kind::kFork, 31, 4, 4, {}, 3, 3);  // and again
  builder_.Map(40, 1, 0x1000, 0x1000, 0, "/later");
  Table();
  EXPECT_EQ(NameAt(3, 3, 35), "worker");
  EXPECT_EQ(PathAt(3, 50), "/app");
  EXPECT_EQ(PathAt(4, 50), "/app");
  EXPECT_EQ(PathAt(1, 50), "/later");
  EXPECT_EQ((*table_)[table_->At(3, 50)].parent, table_->At(1, 50));
}

TEST_F(ProcessHistoryTest, NamesOfThreads) {
  builder_.Process(Kind::kExisting, 10, 1, 1, "app");
  builder_.Process(Kind::kFork, 20, 1, 2, {}, 1, 1);
  builder_.Process(Kind::kName, 30, 1, 2, "worker");
  builder_.Process(Kind::kName, 40, 1, 1, "renamed");
  Table();
  EXPECT_EQ(NameAt(1, 2, 25), "app");
  EXPECT_EQ(NameAt(1, 2, 35), "worker");
  EXPECT_EQ(NameAt(1, 99, 25), "app");  // a thread that no record names
  EXPECT_EQ(NameAt(1, 1, 45), "renamed");
  using Threads = std::vector<std::pair<uint32_t, std::string_view>>;
  EXPECT_EQ(table_->Threads(table_->At(1, 50)), (Threads{{1, "renamed"}, {2, "worker"}}));
}

TEST_F(ProcessHistoryTest, RestatedEventsCountOnce) {
  builder_.Process(Kind::kExisting, 10, 1, 1, "app");
  builder_.Map(10, 1, 0x1000, 0x1000, 0, "/app");
  builder_.Process(Kind::kExisting, 50, 1, 1, "app").restated = true;
  builder_.Map(50, 1, 0x1000, 0x1000, 0, "/app").restated = true;
  Table();
  EXPECT_EQ(table_->size(), 1u);
  EXPECT_EQ(PathAt(1, 60), "/app");
  const SpaceId space = table_->SpaceAt(table_->At(1, 60), 60);
  EXPECT_TRUE(table_->spaces().Find(space, 0x1000, 60).at_any_time);  // one mapping, not two
}

TEST_F(ProcessHistoryTest, RestatedEventsReplaceLostOnes) {
  builder_.Process(Kind::kExisting, 50, 1, 1, "app").restated = true;
  builder_.Map(50, 1, 0x1000, 0x1000, 0, "/app").restated = true;
  Table();
  EXPECT_EQ(NameAt(1, 1, 10), "app");
  EXPECT_EQ(PathAt(1, 10), "/app");
}

TEST_F(ProcessHistoryTest, MappingsOfAProcessThatNoRecordNames) {
  builder_.Map(50, 9, 0x1000, 0x1000, 0, "/app");
  Table();
  EXPECT_EQ(PathAt(9, 60), "/app");
  EXPECT_EQ(NameAt(9, 9, 60), "");
}

}  // namespace
}  // namespace xpu
