// The GPUs of a capture. Each process numbers the GPUs that it may see from 0, in its own way; the
// UUID says which one it is. Reports number them once for the whole capture.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "report/model/model.h"

namespace xpu {

class GpuDevices {
 public:
  explicit GpuDevices(const Model& model);

  struct Gpu {
    uint32_t number = 0;  // in reports: the number that its processes use, when it is free
    const Device* device = nullptr;  // the first record about it; nullptr: there is none
  };
  // The GPU that a process means by its number; that number when the capture does not say.
  Gpu Of(InstanceId instance, uint32_t device_id) const;
  // The GPUs that have a record, by number.
  const std::vector<Gpu>& all() const { return all_; }
  // Keyed by the instance and its number of the GPU.
  using ByDevice = std::map<std::pair<InstanceId, uint32_t>, Gpu>;
  const ByDevice& by_device() const { return by_device_; }
  // The number of a gpu_device that a process of the recording uses, by its UUID. nullopt: none
  // does.
  std::optional<uint32_t> NumberOf(uint32_t gpu_device) const;
  // The last error that the driver reported for each GPU (Xid), by number.
  const std::map<uint32_t, uint64_t>& xids() const { return xids_; }
  // The last record about it; nullptr: there is none.
  const GpuDevice* Find(uint32_t gpu_device) const;

 private:
  ByDevice by_device_;
  std::vector<Gpu> all_;
  std::map<uint32_t, uint32_t> by_gpu_device_;
  std::map<uint32_t, const GpuDevice*> gpu_devices_;
  std::map<uint32_t, uint64_t> xids_;
};

}  // namespace xpu
