// How program counters of the GPU are sampled, as given on the command line.
#pragma once

#include <cstdint>
#include <string_view>

#include "format/base/result.h"

namespace xpu {

struct GpuSampleOptions {
  bool is_on = false;
  uint32_t period_bits = 18;                   // a sample each 2^N cycles of a multiprocessor
  uint64_t buffer_bytes = uint64_t{64} << 20;  // of each GPU's memory

  // `period`: in cycles, 0: not given. `buffer`: a size, empty: not given. Errors are of
  // ErrorKind::kUsage.
  Status Set(uint64_t period, std::string_view buffer);
};

}  // namespace xpu
