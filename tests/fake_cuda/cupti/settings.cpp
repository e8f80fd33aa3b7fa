#include "settings.h"

#include <string>

#include <cuda.h>

#include "../settings.h"

namespace xpu::fake_cupti {
namespace {

using fake_cuda::EnvFlag;
using fake_cuda::EnvNumber;
using fake_cuda::EnvSigned;
using fake_cuda::EnvText;

// "10:160,1:64": kind and bytes.
std::map<uint32_t, uint32_t> ParseSizes(std::string_view text) {
  std::map<uint32_t, uint32_t> sizes;
  const std::string copy(text);
  const char* at = copy.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    const auto kind = static_cast<uint32_t>(std::strtoul(at, &end, 10));
    if (*end != ':') break;
    sizes[kind] = static_cast<uint32_t>(std::strtoul(end + 1, &end, 10));
    at = *end == ',' ? end + 1 : end;
  }
  return sizes;
}

Settings Read() {
  Settings settings;
  settings.cuda = fake_cuda::EnvCudaVersion("XPU_FAKE_CUPTI_VERSION", CUDA_VERSION);
  const std::string_view order = EnvText("XPU_FAKE_ORDER", "api");
  settings.order = order == "reverse"   ? Order::kReverse
                   : order == "shuffle" ? Order::kShuffle
                                        : Order::kAsIs;
  settings.zero_times_every = EnvNumber("XPU_FAKE_ZERO_TIMES_EVERY", 0);
  settings.backward_times_every = EnvNumber("XPU_FAKE_BACKWARD_TIMES_EVERY", 0);
  settings.unknown_kind_every = EnvNumber("XPU_FAKE_UNKNOWN_KIND_EVERY", 0);
  settings.drop_every = EnvNumber("XPU_FAKE_DROP_EVERY", 0);
  settings.delivery_delay_us = EnvNumber("XPU_FAKE_DELIVERY_DELAY_US", 0);
  settings.poison_names = EnvText("XPU_FAKE_NAMES", "poison") != "keep";
  settings.hold_back = EnvFlag("XPU_FAKE_HOLD_BACK", true);
  settings.per_thread = EnvFlag("XPU_FAKE_PER_THREAD", settings.cuda >= 13000);
  settings.has_worker = EnvFlag("XPU_FAKE_WORKER", true);
  settings.overheads = EnvFlag("XPU_FAKE_OVERHEADS", true);
  settings.set_up_ms = EnvNumber("XPU_FAKE_SET_UP_MS", 0);
  settings.confidential = EnvFlag("XPU_FAKE_CONFIDENTIAL", false);
  settings.subscribed = EnvFlag("XPU_FAKE_SUBSCRIBED", false);
  // What the second subscriber of the captures saw of the first.
  settings.holder = EnvText("XPU_FAKE_HOLDER", "CUPTI for <not provided>");
  settings.device_buffer_records = EnvNumber("XPU_FAKE_DEVICE_BUFFER_RECORDS", 0);
  settings.clock_offset_ns = EnvSigned("XPU_FAKE_CLOCK_OFFSET_NS", 0);
  settings.clock_drift_ppm = EnvSigned("XPU_FAKE_CLOCK_DRIFT_PPM", 0);
  settings.timestamp_before_context =
      static_cast<int32_t>(EnvNumber("XPU_FAKE_TIMESTAMP_BEFORE_CONTEXT", 0));
  settings.record_size = ParseSizes(EnvText("XPU_FAKE_RECORD_BYTES", ""));
  return settings;
}

}  // namespace

const Settings& TheSettings() {
  static const auto* const settings = new Settings(Read());
  return *settings;
}

}  // namespace xpu::fake_cupti
