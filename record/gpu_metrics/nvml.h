// The driver's management library (NVML), loaded by name: clocks, power, temperature, errors of
// each GPU of the machine. Its declarations are ours, from NVML's documentation: its binary
// interface is stable, and most build machines have no nvml.h.
//
// It is loaded into the helper process only (metrics_helper.h): calls may take milliseconds, and
// wake a GPU that sleeps. What a GPU or a driver does not have reads as 0.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/gpu_metrics/metrics_packets.h"

namespace xpu::gpu_metrics {

class Nvml {
 public:
  // `library`: empty: the one that the loader finds. kNotFound: there is no NVIDIA driver.
  static Result<std::unique_ptr<Nvml>> Open(const std::string& library);
  ~Nvml();

  // Numbered from 1.
  const std::vector<DevicePacket>& devices() const { return devices_; }
  // Of all devices, one after the other; each with the time at which it was read. Energy and the
  // time that clocks were held down are those of the last call `with_counters`: asking for them
  // takes 4 ms, for all others together 10 us.
  std::vector<StatePacket> ReadStates(bool with_counters);
  // What has happened since the last call.
  std::vector<FaultPacket> TakeFaults();

 private:
  struct Functions;
  Nvml();
  Status Load(const std::string& library);
  Status FindDevices();
  void AddDevice(uint32_t index, const char* driver_version);
  void WatchFaults();

  std::unique_ptr<Functions> call_;
  struct Counters {
    uint64_t energy = 0;
    uint64_t power_capped = 0;
    uint64_t thermal_capped = 0;
  };

  std::vector<void*> handles_;      // by device
  std::vector<Counters> counters_;  // likewise
  std::vector<DevicePacket> devices_;
  void* fault_set_ = nullptr;
};

}  // namespace xpu::gpu_metrics
