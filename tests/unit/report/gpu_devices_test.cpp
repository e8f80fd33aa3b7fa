#include "report/trace/gpu_devices.h"

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

class GpuDevicesTest : public testing::Test {
 protected:
  void Add(uint64_t instance, uint32_t device_id, const char* uuid) {
    Device& device = builder_.events.devices.emplace_back();
    device.instance = {instance};
    device.device_id = device_id;
    device.name = builder_.Text("NVIDIA H200");
    device.uuid = builder_.Text(uuid);
  }
  test::ModelBuilder builder_;
};

TEST_F(GpuDevicesTest, ProcessesThatAgree) {
  for (const uint64_t instance : {1, 2}) {
    Add(instance, 1, "b");
    Add(instance, 0, "a");
  }
  const Model model = builder_.Build();
  const GpuDevices gpus(model);
  ASSERT_EQ(gpus.all().size(), 2u);
  EXPECT_EQ(model.Text(gpus.all()[0].device->uuid), "a");
  for (const uint64_t instance : {1, 2}) {
    EXPECT_EQ(gpus.Of({instance}, 0).number, 0u);
    EXPECT_EQ(gpus.Of({instance}, 1).number, 1u);
  }
}

// CUDA_VISIBLE_DEVICES: each process sees one GPU and calls it 0.
TEST_F(GpuDevicesTest, ProcessesThatSeeOneEach) {
  Add(1, 0, "x");
  Add(2, 0, "a");
  Add(3, 0, "x");
  const Model model = builder_.Build();
  const GpuDevices gpus(model);
  EXPECT_EQ(gpus.Of({1}, 0).number, 0u);  // as they come in the file
  EXPECT_EQ(gpus.Of({2}, 0).number, 1u);
  EXPECT_EQ(gpus.Of({3}, 0).number, 0u);
}

TEST_F(GpuDevicesTest, WhatTheCaptureDoesNotSay) {
  Add(1, 3, "");
  Add(2, 3, "");
  const Model model = builder_.Build();
  const GpuDevices gpus(model);
  EXPECT_EQ(gpus.all().size(), 1u);  // no UUID: taken for one
  EXPECT_EQ(gpus.Of({2}, 3).number, 3u);
  EXPECT_EQ(gpus.Of({9}, 5).number, 5u);
  EXPECT_EQ(gpus.Of({9}, 5).device, nullptr);
}

}  // namespace
}  // namespace xpu
