#include "report/analysis/time_order.h"

#include <string>

#include <gtest/gtest.h>

namespace xpu {
namespace {

struct TimeOrderTest : testing::Test {
  void Add(const std::vector<uint64_t>& times, char name) {
    order_.Add(
        times, [](uint64_t time_ns) { return time_ns; },
        [this, name](uint64_t time_ns) { seen_ += name + std::to_string(time_ns) + " "; });
  }

  TimeOrder order_;
  std::string seen_;
};

TEST_F(TimeOrderTest, OfOneTimeTheListAddedFirstComesFirst) {
  const std::vector<uint64_t> a = {2, 5, 5, 9};
  const std::vector<uint64_t> b = {1, 5, 10};
  const std::vector<uint64_t> none;
  Add(a, 'a');
  Add(none, 'n');
  Add(b, 'b');
  EXPECT_EQ(order_.Visit([] { return true; }), std::nullopt);
  EXPECT_EQ(seen_, "b1 a2 a5 a5 b5 a9 b10 ");
}

TEST_F(TimeOrderTest, ReturnsTheTimeOfTheFirstEventLeftOut) {
  const std::vector<uint64_t> a = {2, 7};
  const std::vector<uint64_t> b = {3, 5};
  Add(a, 'a');
  Add(b, 'b');
  int left = 2;
  EXPECT_EQ(order_.Visit([&] { return left-- > 0; }), 5u);
  EXPECT_EQ(seen_, "a2 b3 ");
}

}  // namespace
}  // namespace xpu
