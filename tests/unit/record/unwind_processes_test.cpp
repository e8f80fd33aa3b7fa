#include "record/unwind/unwind_processes.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

using Entry = CodeMappings::Entry;

struct Row {
  uint64_t start, end, file_offset;
  UnwindTables::Id table;
  friend bool operator==(const Row&, const Row&) = default;
  friend void PrintTo(const Row& row, std::ostream* out) {
    *out << std::hex << "[" << row.start << ", " << row.end << ") +" << row.file_offset << " of "
         << row.table;
  }
};

std::vector<Row> Rows(const CodeMappings& code) {
  std::vector<Row> rows;
  for (const auto& [start, entry] : code.entries()) {
    rows.push_back({start, entry.end, entry.file_offset, entry.table});
  }
  return rows;
}

TEST(CodeMappings, ANewMappingReplacesWhatItCovers) {
  CodeMappings code;
  code.Add(0x1000, {0x5000, 0, 1});
  code.Add(0x9000, {0xa000, 0x7000, 2});
  code.Add(0x1000, {0x5000, 0, 3});
  EXPECT_EQ(Rows(code), (std::vector<Row>{{0x1000, 0x5000, 0, 3}, {0x9000, 0xa000, 0x7000, 2}}));
  code.Add(0, {0x10000, 0, 4});
  EXPECT_EQ(Rows(code), (std::vector<Row>{{0, 0x10000, 0, 4}}));
}

TEST(CodeMappings, WhatIsLeftKeepsItsPlaceInTheFile) {
  CodeMappings code;
  code.Add(0x1000, {0x9000, 0x200, 1});
  code.Add(0x3000, {0x4000, 0, 2});  // a hole in the middle
  EXPECT_EQ(Rows(code),
            (std::vector<Row>{
                {0x1000, 0x3000, 0x200, 1}, {0x3000, 0x4000, 0, 2}, {0x4000, 0x9000, 0x3200, 1}}));
  code.Add(0x3800, {0x5000, 0, 3});  // over an end and a beginning
  EXPECT_EQ(Rows(code), (std::vector<Row>{{0x1000, 0x3000, 0x200, 1},
                                          {0x3000, 0x3800, 0, 2},
                                          {0x3800, 0x5000, 0, 3},
                                          {0x5000, 0x9000, 0x4200, 1}}));
}

TEST(CodeMappings, OneThatFindsNoRoomIsRefused) {
  CodeMappings code;
  constexpr uint64_t kRoom = 65536;
  for (uint64_t i = 0; i < kRoom; ++i) {
    ASSERT_TRUE(code.Add(0x2000 * i, {0x2000 * i + 0x1000, 0, 1}));
  }
  EXPECT_FALSE(code.Add(0x2000 * kRoom, {0x2000 * kRoom + 0x1000, 0, 1}));
  EXPECT_TRUE(code.Add(0, {0x1000, 0, 2})) << "replaces one";
}

// As a program that maps code all the time has its list published: the ranges that rest and the one
// in use never take all there are.
TEST(MappingRanges, TheLargestListIsPublishedWithoutEnd) {
  constexpr uint32_t kLargest = 65536;
  MappingRanges ranges;
  uint32_t in_use = ranges.Take(kLargest, 0);
  for (uint64_t i = 1; i < 100; ++i) {
    const uint64_t now_ns = i * PublishIntervalNs(kLargest);
    const uint32_t next = ranges.Take(kLargest, now_ns);
    ASSERT_NE(next, MappingRanges::kNone) << i;
    ranges.GiveBack(in_use, kLargest, now_ns);
    in_use = next;
  }
}

TEST(MappingRanges, ARangeRestsBeforeItIsGivenOutAgain) {
  MappingRanges ranges;
  const uint32_t first = ranges.Take(10, 0);
  EXPECT_EQ(ranges.Take(17, 0), first + 16);
  ranges.GiveBack(first, 10, 5);
  EXPECT_EQ(ranges.Take(16, 5 + MappingRanges::kRestNs - 1), first + 48);
  EXPECT_EQ(ranges.Take(16, 5 + MappingRanges::kRestNs), first);
}

TEST(MappingRanges, TellsWhenAllAreTaken) {
  MappingRanges ranges;
  EXPECT_EQ(ranges.Take(XPU_MAX_MAPPINGS / 2 + 1, 0), 0u);
  EXPECT_EQ(ranges.Take(1, 0), MappingRanges::kNone);
}

}  // namespace
}  // namespace xpu
