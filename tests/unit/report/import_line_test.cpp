#include "report/import/import_line.h"

#include <gtest/gtest.h>

namespace xpu {
namespace {

using Triple = std::array<uint32_t, 3>;

TEST(TraceLine, TheNameFollowsTheTimes) {
  const TraceLine line(
      "CONCURRENT_KERNEL [ 100, 250 ] duration 150, \"f<int [2]>(\"x\", size 9)\", correlationId "
      "7");
  EXPECT_EQ(line.kind(), "CONCURRENT_KERNEL");
  EXPECT_TRUE(line.looks_like_record());
  ASSERT_TRUE(line.times());
  EXPECT_EQ(line.times()->start_ns, 100u);
  EXPECT_EQ(line.times()->end_ns, 250u);
  EXPECT_EQ(line.quoted(), "f<int [2]>(\"x\", size 9)");
  EXPECT_EQ(line.Number({"correlationId"}), 7u);
  EXPECT_EQ(line.Number({"size"}), std::nullopt);  // what is in a name is no field
}

TEST(TraceLine, TheNameIsBeforeTheTimes) {
  const TraceLine line("CONC KERNEL \"f<int [2]>\" [ 100 - 250 ] device 3, stream 7\r\n");
  EXPECT_EQ(line.kind(), "CONC KERNEL");
  EXPECT_EQ(line.quoted(), "f<int [2]>");
  ASSERT_TRUE(line.times());
  EXPECT_EQ(line.times()->end_ns, 250u);
  EXPECT_EQ(line.Number32({"deviceId", "device"}), 3u);
  EXPECT_EQ(line.Number32({"stream"}), 7u);
}

TEST(TraceLine, FieldsBeforeTheTimes) {
  const TraceLine line("RUNTIME cbid=211 [ 1 - 2 ] process 5, thread 6, correlation 7/r8");
  EXPECT_EQ(line.word(), "cbid=211");
  EXPECT_EQ(line.Number({"cbid"}), 211u);
  EXPECT_EQ(line.Number({"correlationId", "correlation"}), 7u);
  EXPECT_EQ(line.Number({"read"}), std::nullopt);  // the end of "thread"
}

TEST(TraceLine, OneTime) {
  const TraceLine line("MEMORY2 [ 12 ] memoryOperationType RELEASE, size 4");
  ASSERT_TRUE(line.times());
  EXPECT_EQ(line.times()->start_ns, 12u);
  EXPECT_EQ(line.times()->end_ns, 12u);
  EXPECT_EQ(line.Word("memoryOperationType"), "RELEASE");
}

TEST(TraceLine, ABracketThatHoldsNoTimes) {
  EXPECT_FALSE(TraceLine("RUNTIME [ x, 2 ] \"f\"").times());
  EXPECT_FALSE(TraceLine("RUNTIME [ 1, ] \"f\"").times());
  EXPECT_FALSE(TraceLine("RUNTIME [ 1, 2 \"f\"").times());
  EXPECT_FALSE(TraceLine("RUNTIME [").times());
  EXPECT_FALSE(TraceLine("RUNTIME [ 99999999999999999999999, 2 ]").times());
}

TEST(TraceLine, AFurtherLine) {
  const TraceLine line("\tgrid [ 1, 2, 3 ], block [4,5,6], sharedMemory (static 8, dynamic 16)");
  EXPECT_TRUE(line.goes_on());
  EXPECT_EQ(line.Triple("grid"), (Triple{1, 2, 3}));
  EXPECT_EQ(line.Triple("block"), (Triple{4, 5, 6}));
  EXPECT_EQ(line.Triple("cluster"), std::nullopt);
  EXPECT_EQ(line.Number({"static"}), 8u);
  EXPECT_EQ(line.Number({"dynamic"}), 16u);
  EXPECT_EQ(TraceLine("\tgrid [ 1, 2").Triple("grid"), std::nullopt);
  EXPECT_EQ(TraceLine("\tgrid [ 1, 2, 4294967296 ]").Triple("grid"), std::nullopt);
}

TEST(TraceLine, NumbersOf32Bits) {
  const TraceLine line("\tstreamId -1, deviceId 4294967296, color 0xff00ff00");
  EXPECT_EQ(line.Number32({"streamId"}), 0xffff'ffffu);
  EXPECT_EQ(line.Number32({"deviceId"}), 0u);
  EXPECT_EQ(line.Number32({"color"}), 0xff00'ff00u);
  EXPECT_EQ(line.Number32({"missing"}), 0u);
}

TEST(TraceLine, WhatIsNoRecord) {
  EXPECT_TRUE(TraceLine(" \t\r").is_empty());
  EXPECT_FALSE(TraceLine("Device Name: x").looks_like_record());
  EXPECT_FALSE(TraceLine("OK").looks_like_record());
  EXPECT_TRUE(TraceLine("PCIE GPU 0, domain 1").looks_like_record());
}

}  // namespace
}  // namespace xpu
