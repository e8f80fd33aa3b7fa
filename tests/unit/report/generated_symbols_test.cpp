#include <gtest/gtest.h>

#include "report/analysis/analysis.h"
#include "report/stacks/stack_resolver.h"
#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

class GeneratedSymbolsTest : public testing::Test {
 protected:
  GeneratedSymbolsTest() { builder_.Process(ProcessEventKind::kExisting, 1, 5, 5, "python"); }

  void Add(uint64_t time_ns, uint32_t pid, uint64_t address, uint64_t size, const char* name) {
    builder_.events.generated_symbols.push_back({.time_ns = time_ns,
                                                 .pid = pid,
                                                 .address = address,
                                                 .size_bytes = size,
                                                 .name = builder_.Text(name)});
  }
  void Build() { analysis_ = std::make_unique<Analysis>(builder_.Build()); }
  // "name", and "?" when it is not the same at any time.
  std::string At(uint32_t pid, uint64_t address, uint64_t time_ns) {
    const SpaceId space =
        analysis_->processes.SpaceAt(analysis_->processes.At(pid, time_ns), time_ns);
    const GeneratedSymbols symbols(analysis_->model, analysis_->processes);
    const GeneratedSymbols::Found found = symbols.Find(space, address, time_ns);
    std::string text;
    if (found.symbol != nullptr) text = analysis_->model.Text(found.symbol->name);
    return found.at_any_time ? text : text + "?";
  }

  test::ModelBuilder builder_;
  std::unique_ptr<Analysis> analysis_;
};

TEST_F(GeneratedSymbolsTest, RangesOfAMap) {
  Add(0, 5, 0x1000, 0x10, "py::f");
  Add(0, 5, 0x1010, 0x10, "py::g");
  Build();
  EXPECT_EQ(At(5, 0xfff, 10), "");
  EXPECT_EQ(At(5, 0x1000, 10), "py::f");
  EXPECT_EQ(At(5, 0x100f, 10), "py::f");
  EXPECT_EQ(At(5, 0x1010, 10), "py::g");
  EXPECT_EQ(At(5, 0x1020, 10), "");
}

TEST_F(GeneratedSymbolsTest, TheNewestThatIsNotLater) {
  Add(100, 5, 0x1000, 0x10, "first");
  Add(200, 5, 0x1000, 0x20, "second");
  Add(300, 5, 0x2000, 0x10, "only");
  Build();
  EXPECT_EQ(At(5, 0x1008, 50), "?");
  EXPECT_EQ(At(5, 0x1008, 150), "first?");
  EXPECT_EQ(At(5, 0x1008, 200), "second?");
  EXPECT_EQ(At(5, 0x1018, 50), "second");  // nothing else was usual there
  EXPECT_EQ(At(5, 0x2008, 10), "only");
}

TEST_F(GeneratedSymbolsTest, OfTwoWithoutATimeTheLastOfTheFile) {
  Add(0, 5, 0x1000, 0x10, "old");
  Add(0, 5, 0x1000, 0x10, "new");
  Build();
  EXPECT_EQ(At(5, 0x1000, 10), "new");
}

TEST_F(GeneratedSymbolsTest, AForkedChildInheritsWhatWasThere) {
  builder_.Process(ProcessEventKind::kFork, 150, 6, 6, {}, 5, 5);
  Add(100, 5, 0x1000, 0x10, "before");
  Add(200, 5, 0x2000, 0x10, "after");
  Add(250, 6, 0x1000, 0x10, "its own");
  Build();
  EXPECT_EQ(At(6, 0x1000, 180), "before?");
  EXPECT_EQ(At(6, 0x1000, 260), "its own?");
  EXPECT_EQ(At(6, 0x2000, 260), "");
  EXPECT_EQ(At(5, 0x2000, 260), "after");
}

TEST_F(GeneratedSymbolsTest, AfterAnExecTheyAreGone) {
  Add(100, 5, 0x1000, 0x10, "before");
  builder_.Process(ProcessEventKind::kExec, 150, 5, 5, "other");
  Build();
  EXPECT_EQ(At(5, 0x1000, 120), "before");
  EXPECT_EQ(At(5, 0x1000, 180), "");
}

TEST_F(GeneratedSymbolsTest, HostileRanges) {
  for (int i = 0; i < 2000; ++i) Add(10 + static_cast<uint64_t>(i), 5, 0, ~uint64_t{0}, "all");
  Add(5, 77, 0x1000, 0x10, "of nobody");
  Add(5, 5, ~uint64_t{0} - 4, 100, "wraps");
  Build();
  EXPECT_EQ(At(5, 0x1000, 10'000), "all?");
  EXPECT_EQ(At(5, ~uint64_t{0} - 2, 10'000), "all?");
}

}  // namespace
}  // namespace xpu
