#include "report/trace/gpu_devices.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace xpu {

// GPUs take their numbers in order of the smallest that a process gives them, so that one process,
// or many that agree, read as they number.
GpuDevices::GpuDevices(const Model& model) {
  // Without a UUID devices of one number are taken for one.
  using Identity = std::pair<std::string_view, uint32_t>;
  std::map<Identity, Gpu> gpus;
  const auto identity_of = [&](const Device& device) {
    const std::string_view uuid = model.Text(device.uuid);
    return Identity{uuid, uuid.empty() ? device.device_id : 0};
  };
  for (const Device& device : model.events.devices) {
    Gpu& gpu = gpus.try_emplace(identity_of(device), Gpu{device.device_id, &device}).first->second;
    gpu.number = std::min(gpu.number, device.device_id);
  }
  for (const auto& [identity, gpu] : gpus) all_.push_back(gpu);
  std::sort(all_.begin(), all_.end(), [](const Gpu& a, const Gpu& b) {
    return std::tuple(a.number, a.device) < std::tuple(b.number, b.device);  // then as in the file
  });
  uint32_t next = 0;
  for (Gpu& gpu : all_) {
    gpu.number = std::max(gpu.number, next);
    next = gpu.number + 1;
    gpus[identity_of(*gpu.device)] = gpu;
  }
  for (const Device& device : model.events.devices) {
    by_device_.try_emplace({device.instance, device.device_id}, gpus[identity_of(device)]);
  }
  for (const GpuDevice& device : model.events.gpu_devices) {
    gpu_devices_[device.gpu] = &device;
    const std::string_view uuid = model.Text(device.uuid);
    const auto used = uuid.empty() ? gpus.end() : gpus.find(Identity{uuid, 0});
    if (used != gpus.end()) by_gpu_device_.try_emplace(device.gpu, used->second.number);
  }
  constexpr uint64_t kXid = 8;  // NVML's event type
  for (const GpuFault& fault : model.events.gpu_faults) {
    const std::optional<uint32_t> number = NumberOf(fault.gpu);
    if (fault.kind == kXid && number) xids_[*number] = fault.code;
  }
}

std::optional<uint32_t> GpuDevices::NumberOf(uint32_t gpu_device) const {
  const auto found = by_gpu_device_.find(gpu_device);
  if (found == by_gpu_device_.end()) return std::nullopt;
  return found->second;
}

const GpuDevice* GpuDevices::Find(uint32_t gpu_device) const {
  const auto found = gpu_devices_.find(gpu_device);
  return found == gpu_devices_.end() ? nullptr : found->second;
}

GpuDevices::Gpu GpuDevices::Of(InstanceId instance, uint32_t device_id) const {
  const auto found = by_device_.find({instance, device_id});
  return found == by_device_.end() ? Gpu{device_id, nullptr} : found->second;
}

}  // namespace xpu
