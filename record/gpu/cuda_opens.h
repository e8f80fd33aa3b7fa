// Tells which processes may begin to use CUDA: cuInit opens the device /dev/nvidia-uvm, and so does
// NVML.
//
// Needs fanotify(7) with CAP_SYS_ADMIN. Rejected: BPF programs, for there is no tracepoint that
// only opened devices reach, and functions of the kernel cannot be traced everywhere.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "format/base/handle.h"

namespace xpu {

class CudaOpens {
 public:
  CudaOpens();

  // The device as process `pid` sees it is watched from now on. A container may have its own.
  // False: it cannot be.
  bool WatchDeviceOf(uint32_t pid);
  // The processes that have opened a device, each at least once. Any user may open it as often as
  // they like: so nothing wakes the recorder for it.
  std::vector<uint32_t> Take();

 private:
  UniqueFd events_;
  std::map<std::string, bool> mount_namespaces_;  // whether the device is watched there
};

}  // namespace xpu
