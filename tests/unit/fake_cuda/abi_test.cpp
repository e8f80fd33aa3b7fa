// Our headers against those of the toolkit that was found.
#include "abi.h"

#include <gtest/gtest.h>

namespace xpu::fake_cuda_test {
namespace {

TEST(Abi, OurHeadersAgreeWithTheToolkit) {
  const auto fake = FakeAbi();
  const auto real = RealAbi();
  EXPECT_GT(fake.size(), 150U);
  for (const auto& [name, value] : real) EXPECT_EQ(fake.at(name), value) << name;
}

}  // namespace
}  // namespace xpu::fake_cuda_test
