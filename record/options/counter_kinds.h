// The hardware counters that users choose by name, and which metrics of CUPTI they are on which
// GPU.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xpu::gpu_metrics {

struct CounterKind {
  std::string_view set;
  std::string_view name;
  std::string_view unit;  // "%": of the most that is possible; "bytes"
  std::string_view about;
  // Metrics of CUPTI, the first that the GPU has and that fits, also where it is one of a group
  // ("TPC.TriageCompute.sm__..."). One in percent is recorded so whatever the unit is.
  std::array<std::string_view, 4> sources;
};

std::span<const CounterKind> CounterKinds();

// The sets that are recorded when none is named.
inline constexpr std::array<std::string_view, 3> kUsualSets = {"sm", "tensor", "dram"};

// One counter as requested.
struct WantedCounter {
  std::string name;
  std::string unit;
  std::vector<std::string> sources;
};
// Of sets ("sm"), counters ("dram_read"), and metrics of CUPTI, which contain two underscores. The
// usual ones if `names` is empty. Each only once.
std::vector<WantedCounter> WantedCounters(std::span<const std::string> names);

}  // namespace xpu::gpu_metrics
