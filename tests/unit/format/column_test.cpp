#include "format/column.h"

#include <numeric>

#include <capnp/message.h>
#include <gtest/gtest.h>

#include "filled.h"

namespace xpu::test {
namespace {

using Values = std::vector<uint64_t>;

struct Encoded {
  capnp::MallocMessageBuilder message;
  schema::Column::Reader column;
};

// Encodes, checks that decoding gives the same, and returns the column's own bytes: its planes.
size_t PlaneBytes(const Values& values, const Values& before = {}) {
  capnp::MallocMessageBuilder message;
  auto column = message.initRoot<schema::Column>();
  EncodeColumn(values, before, column);
  Values decoded(values.size(), 99);
  EXPECT_TRUE(DecodeColumn(column.asReader(), before, decoded));
  EXPECT_EQ(decoded, values);
  size_t bytes = 0;
  for (auto plane : column.asReader().getPlanes()) bytes += plane.size();
  return bytes;
}

Values Make(size_t count, uint64_t (*value)(uint64_t)) {
  Values values(count);
  for (size_t i = 0; i < count; ++i) values[i] = value(i);
  return values;
}

TEST(Column, EqualValuesTakeNoPlane) {
  EXPECT_TRUE(IsZeroColumn(Values(100, 0)));
  EXPECT_FALSE(IsZeroColumn(Values(100, 7)));
  EXPECT_EQ(PlaneBytes(Values(100, 7)), 0u);
  EXPECT_EQ(PlaneBytes(Values(1, UINT64_MAX)), 0u);
}

TEST(Column, EqualStepsTakeNoPlane) {
  EXPECT_EQ(PlaneBytes(Make(1000, [](uint64_t i) { return 5'000'000'000 + 3 * i; })), 0u);
  EXPECT_EQ(PlaneBytes(Make(1000, [](uint64_t i) { return 5'000'000'000 - 3 * i; })), 0u);
}

TEST(Column, SmallRangesAndStepsTakeOnePlane) {
  EXPECT_EQ(PlaneBytes(Make(1000, [](uint64_t i) { return 123456 + NumberOf("", i) % 200; })),
            1000u);
  Values times = Make(1000, [](uint64_t i) { return 50 + NumberOf("", i) % 200; });
  times[0] = 86'400'000'000'000;
  std::partial_sum(times.begin(), times.end(), times.begin());
  EXPECT_EQ(PlaneBytes(times), 1000u);
}

TEST(Column, EndsAreCountedFromTheirStarts) {
  const Values starts = Make(1000, [](uint64_t i) { return NumberOf("start", i) >> 20; });
  Values ends = starts;
  for (size_t i = 0; i < ends.size(); ++i) ends[i] += 1000 + NumberOf("duration", i) % 200;
  EXPECT_EQ(PlaneBytes(ends, starts), 1000u);
}

TEST(Column, AnyValuesComeBack) {
  PlaneBytes({0, UINT64_MAX});
  PlaneBytes({UINT64_MAX, 0, 1});
  PlaneBytes({uint64_t{1} << 63, 0, (uint64_t{1} << 63) - 1});
  PlaneBytes(Make(999, [](uint64_t i) { return NumberOf("", i); }));
  PlaneBytes(Make(999, [](uint64_t i) { return i % 2 ? NumberOf("", i) : 0; }),
             Make(999, [](uint64_t i) { return NumberOf("", i + 1); }));
  // An address of the kernel among those of a process.
  PlaneBytes(Make(999, [](uint64_t i) {
    return (i % 3 ? 0x7f0000000000 : 0xffffffff81000000) + NumberOf("", i) % 100000;
  }));
}

TEST(Column, WrongOnesAreRefused) {
  capnp::MallocMessageBuilder message;
  auto column = message.initRoot<schema::Column>();
  Values values(10);
  auto planes = column.initPlanes(2);
  planes.init(1, 9);
  EXPECT_FALSE(DecodeColumn(column.asReader(), {}, values)) << "a value is missing";
  planes.init(1, 11);
  EXPECT_FALSE(DecodeColumn(column.asReader(), {}, values)) << "a value too many";
  column.initPlanes(9);
  EXPECT_FALSE(DecodeColumn(column.asReader(), {}, values)) << "more than 64 bits";
  column.initPlanes(0);
  EXPECT_TRUE(DecodeColumn(column.asReader(), {}, values));
  column.setOrigin(static_cast<schema::Column::Origin>(77));
  EXPECT_FALSE(DecodeColumn(column.asReader(), {}, values)) << "an unknown origin";
  column.setOrigin(schema::Column::Origin::COLUMN_BEFORE);
  EXPECT_FALSE(DecodeColumn(column.asReader(), {}, values)) << "no column before";
}

}  // namespace
}  // namespace xpu::test
