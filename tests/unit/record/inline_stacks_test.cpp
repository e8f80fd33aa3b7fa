// Launch stacks taken in the program, from messages to events and answers.
#include "record/gpu/inline_stacks.h"

#include <cstring>
#include <set>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "bpf/events.h"
#include "cupti_inject/wire_stacks.h"
#include "record/base/process_status.h"
#include "record/gpu/code_ranges.h"
#include "record/gpu/stack_copies.h"

namespace xpu {
namespace {

TEST(StackWalk, FlagsAndLosses) {
  LossLedger losses;
  EXPECT_EQ(StackFlagsOf({XPU_WALK_TABLES, XPU_STOP_COMPLETE}), kStackTables | kStackComplete);
  EXPECT_EQ(StackFlagsOf(
                {XPU_WALK_TABLES | XPU_WALK_FRAME_POINTERS | XPU_WALK_NOT_READY, XPU_STOP_DEPTH}),
            kStackTables | kStackFramePointers | kStackTableNotReady | kStackTruncated);
  EXPECT_EQ(StackFlagsOf({0, XPU_STOP_NOT_WALKED}), 0);
  EXPECT_EQ(StackFlagsOf({0, XPU_STOP_NO_STACK}), kStackComplete);
  CountStop({XPU_WALK_TABLES, XPU_STOP_COMPLETE}, losses, 1);
  CountStop({0, XPU_STOP_NOT_WALKED}, losses, 1);
  EXPECT_EQ(losses.TakeNew().size(), 0u);
  CountStop({0, XPU_STOP_NOT_CODE}, losses, 1);
  EXPECT_EQ(losses.total(LossKind::kStackBadReturn), 1u);
  EXPECT_EQ(losses.total(), 1u);
}

// Where a walk through code without its table ends says nothing, but at the limit.
TEST(StackWalk, BeforeATableIsReadyOnlyTheWaitIsCounted) {
  LossLedger losses;
  for (uint32_t stop = 0; stop < XPU_STOPS; ++stop) {
    if (stop == XPU_STOP_DEPTH) continue;
    CountStop({XPU_WALK_FRAME_POINTERS | XPU_WALK_NOT_READY, stop}, losses, 1);
  }
  EXPECT_EQ(losses.total(LossKind::kUnwindTableNotReady), XPU_STOPS - 1u);
  EXPECT_EQ(losses.total(), XPU_STOPS - 1u);
  CountStop({XPU_WALK_NOT_READY, XPU_STOP_DEPTH}, losses, 1);
  EXPECT_EQ(losses.total(LossKind::kUnwindTableNotReady), uint64_t{XPU_STOPS});
  EXPECT_EQ(losses.total(LossKind::kStackCut), 1u);
  EXPECT_EQ(losses.total(), XPU_STOPS + 1u);
}

TEST(ProcessMaps, LinesOfTheKernel) {
  const auto mappings = ParseProcessMaps(
      "55d0a0000000-55d0a0001000 r-xp 00001000 fe:01 4711                       /usr/bin/a b\n"
      "7f0000000000-7f0000001000 rwxs 00000000 00:00 0\n"
      "nonsense\n"
      "7f0000002000-7f0000001000 r-xp 00000000 00:00 0\n"
      "7ffc12345000-7ffc12347000 r-xp 00000000 00:00 0                          [vdso]\n");
  ASSERT_EQ(mappings.size(), 3u);
  EXPECT_EQ(mappings[0].start_address, 0x55d0a0000000u);
  EXPECT_EQ(mappings[0].end_address, 0x55d0a0001000u);
  EXPECT_EQ(mappings[0].file_offset, 0x1000u);
  EXPECT_EQ(mappings[0].device_major, 0xfeu);
  EXPECT_EQ(mappings[0].device_minor, 1u);
  EXPECT_EQ(mappings[0].inode, 4711u);
  EXPECT_EQ(mappings[0].protection, static_cast<uint32_t>(PROT_READ | PROT_EXEC));
  EXPECT_EQ(mappings[0].path, "/usr/bin/a b");
  EXPECT_EQ(mappings[1].path, "//anon");
  EXPECT_EQ(mappings[1].flags, static_cast<uint32_t>(MAP_SHARED));
  EXPECT_EQ(mappings[2].path, "[vdso]");
  EXPECT_EQ(FindMapping(mappings, 0x7f0000000fff), &mappings[1]);
  EXPECT_EQ(FindMapping(mappings, 0x7f0000001000), nullptr);
  EXPECT_EQ(FindMapping(mappings, 1), nullptr);
}

TEST(ProcessStat, NamesMayHoldAnything) {
  const ProcessStat stat = ParseProcessStat(
      "4711 (a) b (c) S 4242 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3");
  EXPECT_EQ(stat.parent_pid, 4242u);
  EXPECT_EQ(stat.start_ticks, 987654u);
  EXPECT_EQ(ParseProcessStat("nothing").parent_pid, 0u);
  EXPECT_EQ(ParseProcessStat("1 (a) S").start_ticks, 0u);
}

// One page of code, one row: CFA is rsp + 16.
std::vector<uint64_t> SmallTable() {
  const uint64_t bytes = UnwindTable::Bytes(1, 1, 1);
  std::vector<uint64_t> words(bytes / 8);
  auto* at = reinterpret_cast<std::byte*>(words.data());
  const UnwindTableHeader header{kUnwindMagic, kUnwindVersion, bytes, 5, 1, 1, 1, 0};
  std::memcpy(at, &header, sizeof(header));
  const uint32_t page_rows[] = {0, 1};
  std::memcpy(at + sizeof(header), page_rows, sizeof(page_rows));
  const UnwindRule rule{UnwindCfa::kRsp, UnwindRbp::kSame, 0, 16};
  std::memcpy(at + UnwindTable::RulesAt(1), &rule, sizeof(rule));
  return words;
}

TEST(TableArena, ProgramsCanReadTablesAndNoMore) {
  auto arena = TableArena::Create(1 << 20);
  ASSERT_TRUE(arena.ok()) << arena.error().ToString();
  const std::vector<uint64_t> words = SmallTable();
  UnwindTable table;
  ASSERT_TRUE(table.Open(words.data(), words.size() * 8));
  auto place = arena->Add(table);
  ASSERT_TRUE(place.ok());
  EXPECT_GT(*place, wire::kTableNone);
  EXPECT_EQ(arena->At(*place).Find(0x5123).cfa_offset, 16);
  EXPECT_EQ(arena->At(*place).Find(0x6000).cfa, UnwindCfa::kNone);

  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, arena->memfd(), 0), MAP_FAILED);
  void* memory = mmap(nullptr, 1 << 20, PROT_READ, MAP_SHARED, arena->memfd(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  UnwindTable seen;
  const uint64_t offset = uint64_t{*place} * wire::kTableUnit;
  EXPECT_TRUE(seen.Open(static_cast<std::byte*>(memory) + offset, (1 << 20) - offset));
  EXPECT_EQ(seen.Find(0x5000).cfa, UnwindCfa::kRsp);
  munmap(memory, 1 << 20);
  while (arena->Add(table).ok()) {
  }
  EXPECT_EQ(arena->At(*place).Find(0x5123).cfa_offset, 16);  // full, and as before
}

class StackCopiesTest : public testing::Test {
 protected:
  // `loads`: 0: it does not wait for a list.
  void Add(uint64_t taken_ns, uint32_t loads = 0) {
    StackCopy copy;
    copy.loads = loads;
    if (loads == 0) copy.code = ranges_.now();
    copy.call.correlation_id = 7;
    copy.registers = {0x1000, 0x7000, 0};
    copy.taken_ns = taken_ns;
    copy.bytes.resize(16);
    const uint64_t stack[] = {0, 0x2000};
    std::memcpy(copy.bytes.data(), stack, sizeof(stack));
    copies_.Add(std::move(copy));
  }
  // 0x1000: CFA is rsp + 16; the code around 0x2000 is the outermost.
  void Walk(CodeKind inner, uint64_t now_ns, bool last) {
    const auto find = [&](const CodeRanges::Version& code, uint64_t address, UnwindRule* rule) {
      used_.insert(&code);
      if (address == 0x1000) {
        *rule = {UnwindCfa::kRsp, UnwindRbp::kSame, 0, 16};
        return inner;
      }
      *rule = {UnwindCfa::kEnd, UnwindRbp::kSame, 0, 0};
      return CodeKind::kRule;
    };
    copies_.Walk(
        find, now_ns, last,
        [&](const StackCopy& copy, const WalkResult& walk, std::span<const uint64_t> frames) {
          EXPECT_EQ(copy.call.correlation_id, 7u);
          walks_.push_back(walk);
          frames_.assign(frames.begin(), frames.end());
        });
  }
  StackCopies copies_;
  CodeRanges ranges_;
  std::set<const CodeRanges::Version*> used_;
  std::vector<WalkResult> walks_;
  std::vector<uint64_t> frames_;
};

TEST_F(StackCopiesTest, WaitForTheTable) {
  Add(1000);
  Walk(CodeKind::kNotReady, 2000, false);
  EXPECT_EQ(walks_.size(), 0u);
  Walk(CodeKind::kRule, 3000, false);
  ASSERT_EQ(walks_.size(), 1u);
  EXPECT_EQ(walks_[0].stop, WalkStop::kComplete);
  EXPECT_EQ(walks_[0].flags, kWalkTables);
  EXPECT_EQ(frames_, (std::vector<uint64_t>{0x1000, 0x2000}));
  EXPECT_TRUE(copies_.empty());
}

TEST_F(StackCopiesTest, GiveUpWaitingAfterATime) {
  Add(1000);
  Walk(CodeKind::kNotReady, 1000 + StackCopies::kPatienceNs, false);
  ASSERT_EQ(walks_.size(), 1u);
  EXPECT_EQ(walks_[0].flags, kWalkFramePointers | kWalkNotReady);
  Add(1000);
  Walk(CodeKind::kNotReady, 2000, true);
  EXPECT_EQ(walks_.size(), 2u);
}

// Taken while the loader had just loaded something: walked with what was reported then only.
TEST_F(StackCopiesTest, WaitForTheMappingsOfTheirTime) {
  Add(1000, 3);
  Add(1000, 4);
  Walk(CodeKind::kRule, 2000, false);
  copies_.SetCode(2, ranges_.now());
  Walk(CodeKind::kRule, 2000, false);
  EXPECT_EQ(walks_.size(), 0u);
  ranges_.Add(0x1000, {0x3000, 0, 0});
  const auto third = ranges_.now();
  copies_.SetCode(3, third);
  ranges_.Add(0x1000, {0x3000, 0, 1});
  Walk(CodeKind::kRule, 2000, false);
  ASSERT_EQ(walks_.size(), 1u);
  EXPECT_EQ(walks_[0].stop, WalkStop::kComplete);
  EXPECT_EQ(used_, std::set{third.get()});
  // What was where after four nobody will tell any more.
  copies_.SetCode(5, ranges_.now());
  Walk(CodeKind::kRule, 2000, false);
  ASSERT_EQ(walks_.size(), 2u);
  EXPECT_EQ(walks_[1].flags, kWalkFramePointers | kWalkNotReady);
  EXPECT_EQ(used_, std::set{third.get()});
}

// A program may report a new file before each launch.
TEST_F(StackCopiesTest, TheListsThatTheyKeepAreBounded) {
  for (uint64_t i = 0; i < 8192; ++i) ranges_.Add(i << 12, {(i + 1) << 12, 0, 0});
  std::set<const void*> versions;
  for (int i = 0; i < 200; ++i) {
    ranges_.Add(0x1000, {0x2000, 0, 0});
    versions.insert(ranges_.now().get());
    Add(1000, i % 2);
    copies_.SetCode(1, ranges_.now());
  }
  EXPECT_GT(versions.size(), 50u);
  EXPECT_LT(versions.size(), 100u);
  Walk(CodeKind::kNotReady, 1000, false);
  EXPECT_GT(walks_.size(), 100u);
  Walk(CodeKind::kRule, 1000, false);
  EXPECT_EQ(walks_.size(), 200u);
  EXPECT_EQ(copies_.bytes(), 0u);
}

TEST(CodeRanges, VersionsDoNotChange) {
  CodeRanges ranges;
  ranges.Add(0x1000, {0x3000, 0x10, 1});
  ranges.Add(0x3000, {0x4000, 0x20, 2});
  const auto before = ranges.now();
  ranges.Add(0x2000, {0x3000, 0x30, 3});  // of the first, all is gone
  ranges.Remove(0x3000);
  const auto after = ranges.now();
  ASSERT_NE(before->Find(0x2fff), nullptr);
  EXPECT_EQ(before->Find(0x2fff)->file, 1u);
  EXPECT_EQ(before->Find(0x3000)->bias, 0x20u);
  EXPECT_EQ(before->Find(0x4000), nullptr);
  EXPECT_EQ(before->Find(0xfff), nullptr);
  EXPECT_EQ(after->Find(0x2fff)->file, 3u);
  EXPECT_EQ(after->Find(0x1fff), nullptr);
  EXPECT_EQ(after->Find(0x3000), nullptr);
}

}  // namespace
}  // namespace xpu
