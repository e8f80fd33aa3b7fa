#include "record/options/gpu_sample_options.h"

#include <algorithm>
#include <bit>

#include "format/base/text.h"
#include "record/options/output_options.h"

namespace xpu {
namespace {

// What CUPTI takes.
constexpr uint64_t kLeastPeriod = uint64_t{1} << 5;
constexpr uint64_t kMostPeriod = uint64_t{1} << 31;
constexpr uint64_t kLeastSampleBuffer = uint64_t{1} << 20;

}  // namespace

Status GpuSampleOptions::Set(uint64_t period, std::string_view buffer) {
  if (period != 0) {
    if (period < kLeastPeriod || period > kMostPeriod || !std::has_single_bit(period)) {
      const uint64_t next = std::bit_ceil(std::clamp(period, kLeastPeriod, kMostPeriod));
      return Error{ErrorKind::kUsage,
                   Format("--gpu-sample-period: {} is not a power of two from {} to {}", period,
                          kLeastPeriod, kMostPeriod),
                   Format("the next one is {}", next)};
    }
    period_bits = static_cast<uint32_t>(std::countr_zero(period));
  }
  if (buffer.empty()) return Ok();
  XPU_ASSIGN_OR_RETURN(buffer_bytes, ParseSize("--gpu-sample-buffer", buffer, kLeastSampleBuffer));
  return Ok();
}

}  // namespace xpu
