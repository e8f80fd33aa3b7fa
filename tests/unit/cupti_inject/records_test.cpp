#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "cupti_inject/cupti_abi.h"
#include "cupti_inject/cupti_versions.h"

namespace xpu::cupti {
namespace {

std::vector<uint8_t> Ones(size_t size) { return std::vector<uint8_t>(size, 0xff); }

// What cupti_records_check.cpp asserts against cupti.h must hold without it too.
static_assert(sizeof(Kernel) == 216 && offsetof(Kernel, graph_id) == 156);
static_assert(sizeof(Memcpy) == 96 && sizeof(MemcpyPeer) == 96 && sizeof(Memset) == 88);
static_assert(sizeof(Synchronization) == 56 && sizeof(GraphTrace) == 56 && sizeof(Overhead) == 56);
static_assert(sizeof(Jit) == 72 && offsetof(Jit, cache_path) == 56);
static_assert(sizeof(Device) == 184 && sizeof(Context) == 32 && sizeof(Api) == 40);

TEST(Load, NewestKernelIsWhole) {
  const auto kernel = Load<Kernel>(Ones(216).data(), 216);
  EXPECT_EQ(kernel.graph_id, UINT32_MAX);
  EXPECT_EQ(kernel.is_device_launched, 0xff);
}

TEST(Load, OldestKernelHasNoChannel) {
  const auto kernel = Load<Kernel>(Ones(160).data(), 160);
  EXPECT_EQ(kernel.graph_id, UINT32_MAX);
  EXPECT_EQ(kernel.access_policy_window, 0u);
  EXPECT_EQ(kernel.channel_id, 0u);
  EXPECT_EQ(kernel.cluster_x, 0u);
}

TEST(Load, LongerThanKnownIsCut) {
  const auto kernel = Load<Kernel>(Ones(300).data(), 300);
  EXPECT_EQ(kernel.is_device_launched, 0xff);
}

TEST(Load, NothingIsZeros) {
  const auto kernel = Load<Kernel>(nullptr, 0);
  EXPECT_EQ(kernel.kind, 0u);
  EXPECT_EQ(kernel.end_ns, 0u);
}

TEST(Load, PaddingOfOldVersionsIsNoField) {
  EXPECT_EQ(Load<Memcpy>(Ones(80).data(), 80).graph_id, UINT32_MAX);
  EXPECT_EQ(Load<Memcpy>(Ones(80).data(), 80).channel_id, 0u);
  EXPECT_EQ(Load<Memcpy>(Ones(88).data(), 88).channel_id, UINT32_MAX);
  EXPECT_EQ(Load<Memcpy>(Ones(88).data(), 88).is_device_launched, 0u);
  EXPECT_EQ(Load<Memcpy>(Ones(96).data(), 96).is_device_launched, 0xffu);
  EXPECT_EQ(Load<MemcpyPeer>(Ones(88).data(), 88).channel_id, 0u);
  EXPECT_EQ(Load<MemcpyPeer>(Ones(96).data(), 96).channel_id, UINT32_MAX);
  EXPECT_EQ(Load<Memset>(Ones(80).data(), 80).channel_id, 0u);
  EXPECT_EQ(Load<Memset>(Ones(88).data(), 88).channel_id, UINT32_MAX);
}

TEST(CudaVersionOfCupti, OldAndNewNumbers) {
  EXPECT_EQ(CudaVersionOfCupti(12), 0u);
  EXPECT_EQ(CudaVersionOfCupti(17), 11060u);
  EXPECT_EQ(CudaVersionOfCupti(18), 11080u);
  EXPECT_EQ(CudaVersionOfCupti(19), 12000u);
  EXPECT_EQ(CudaVersionOfCupti(22), 12040u);
  EXPECT_EQ(CudaVersionOfCupti(25), 12060u);
  EXPECT_EQ(CudaVersionOfCupti(28), 12090u);
  EXPECT_EQ(CudaVersionOfCupti(130001), 13000u);
  EXPECT_EQ(CudaVersionOfCupti(130203), 13020u);
}

TEST(SupportOf, Versions) {
  EXPECT_EQ(SupportOf(0), Support::kNotSupported);
  EXPECT_EQ(SupportOf(11070), Support::kNotSupported);
  EXPECT_EQ(SupportOf(11080), Support::kTested);
  EXPECT_EQ(SupportOf(12020), Support::kExpected);
  EXPECT_EQ(SupportOf(13000), Support::kTested);
  EXPECT_EQ(SupportOf(13010), Support::kExpected);
}

}  // namespace
}  // namespace xpu::cupti
