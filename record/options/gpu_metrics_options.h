// Clocks, power and hardware counters of GPUs, as given on the command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"

namespace xpu {

struct GpuMetricsOptions {
  static constexpr uint64_t kLeastIntervalNs = 5'000;
  static constexpr uint64_t kMostIntervalNs = 1'000'000'000;

  bool no_clocks = false;  // leave out clocks, power, temperature
  bool counters = false;   // record hardware counters
  std::string set_text;    // as given, before they are parsed
  std::string interval_text;
  std::vector<std::string> sets;  // of counters, or single ones; empty: the usual ones
  uint64_t interval_ns = 0;       // 0: the usual one, which depends on how many GPUs there are
  // Empty: that of an installed toolkit. Otherwise as for the program (RecordOptions).
  std::string cupti_library;
  std::string nvml_library;                     // empty: the driver's; only tests set it
  std::string cuda_library;                     // likewise
  std::vector<std::string> helper_environment;  // likewise
};

// Sets `sets` and `interval_ns`. Errors are of ErrorKind::kUsage. Whether a GPU has a counter is
// known only later.
Status ParseGpuMetrics(GpuMetricsOptions& options);

}  // namespace xpu
