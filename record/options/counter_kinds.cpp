#include "record/options/counter_kinds.h"

#include <algorithm>

namespace xpu::gpu_metrics {
namespace {

// The names with "realtime" are of counters that are sampled in one pass with others.
constexpr CounterKind kKinds[] = {
    {"sm",
     "sm_active",
     "%",
     "multiprocessors with at least one warp",
     {"sm__cycles_active.avg.pct_of_peak_sustained_elapsed"}},
    {"sm",
     "sm_issue",
     "%",
     "cycles in which schedulers issued an instruction",
     {"sm__inst_executed_realtime.avg.pct_of_peak_sustained_elapsed",
      "sm__inst_executed.avg.pct_of_peak_sustained_elapsed"}},
    {"tensor",
     "tensor_active",
     "%",
     "cycles in which tensor cores worked",
     {"sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
      "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
      "sm__inst_executed_pipe_tensor_realtime.avg.pct_of_peak_sustained_elapsed"}},
    {"fp",
     "fp32_issue",
     "%",
     "instructions of the FP32 pipe",
     {"sm__inst_executed_pipe_fma_realtime.avg.pct_of_peak_sustained_elapsed",
      "sm__inst_executed_pipe_fmaheavy_realtime.avg.pct_of_peak_sustained_elapsed",
      "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_elapsed"}},
    {"fp",
     "fp64_active",
     "%",
     "cycles in which the FP64 pipe worked",
     {"sm__pipe_fp64_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed",
      "sm__inst_executed_pipe_fp64_realtime.avg.pct_of_peak_sustained_elapsed",
      "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed"}},
    {"fp",
     "fp16_issue",
     "%",
     "instructions of the FP16 pipe",
     {"sm__inst_executed_pipe_fp16_realtime.avg.pct_of_peak_sustained_elapsed",
      "sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_elapsed"}},
    {"dram",
     "dram_read",
     "bytes",
     "bytes read from the GPU's memory",
     {"dram__bytes_read.sum", "dram__read_bytes.sum", "dramc__read_bytes.sum",
      "dramc__read_throughput.avg.pct_of_peak_sustained_elapsed"}},
    {"dram",
     "dram_write",
     "bytes",
     "bytes written to the GPU's memory",
     {"dram__bytes_write.sum", "dram__write_bytes.sum", "dramc__write_bytes.sum",
      "dramc__write_throughput.avg.pct_of_peak_sustained_elapsed"}},
    {"l2",
     "l2_throughput",
     "%",
     "the busiest part of the second-level cache",
     {"lts__throughput.avg.pct_of_peak_sustained_elapsed",
      "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"}},
    {"l2",
     "l2_hit_rate",
     "%",
     "accesses that found their data in the second-level cache",
     {"lts__average_t_sector_hit_rate_realtime.pct", "lts__t_sector_hit_rate.pct"}},
    {"pcie",
     "pcie_read",
     "bytes",
     "bytes that the GPU received over PCIe",
     {"pcie__read_bytes.sum", "pcie__read_bytes.avg.pct_of_peak_sustained_elapsed"}},
    {"pcie",
     "pcie_write",
     "bytes",
     "bytes that the GPU sent over PCIe",
     {"pcie__write_bytes.sum", "pcie__write_bytes.avg.pct_of_peak_sustained_elapsed"}},
    {"nvlink",
     "nvlink_receive",
     "bytes",
     "bytes received over NVLink",
     {"nvlrx__bytes.sum", "nvlrx__bytes.avg.pct_of_peak_sustained_elapsed"}},
    {"nvlink",
     "nvlink_send",
     "bytes",
     "bytes sent over NVLink",
     {"nvltx__bytes.sum", "nvltx__bytes.avg.pct_of_peak_sustained_elapsed"}},
};

void Add(const CounterKind& kind, std::vector<WantedCounter>& wanted) {
  WantedCounter counter{std::string(kind.name), std::string(kind.unit), {}};
  for (const std::string_view source : kind.sources) {
    if (!source.empty()) counter.sources.emplace_back(source);
  }
  wanted.push_back(std::move(counter));
}

}  // namespace

std::span<const CounterKind> CounterKinds() { return kKinds; }

std::vector<WantedCounter> WantedCounters(std::span<const std::string> names) {
  std::vector<std::string> all(names.begin(), names.end());
  if (all.empty()) all.assign(kUsualSets.begin(), kUsualSets.end());
  std::vector<WantedCounter> wanted;
  const auto is_there = [&](std::string_view name) {
    return std::any_of(wanted.begin(), wanted.end(),
                       [&](const WantedCounter& counter) { return counter.name == name; });
  };
  for (const std::string& name : all) {
    bool is_known = false;
    for (const CounterKind& kind : kKinds) {
      if (kind.set != name && kind.name != name) continue;
      is_known = true;
      if (!is_there(kind.name)) Add(kind, wanted);
    }
    if (is_known || is_there(name)) continue;
    const bool is_percent = name.find("pct") != std::string::npos;
    wanted.push_back({name, is_percent ? "%" : "", {name}});
  }
  return wanted;
}

}  // namespace xpu::gpu_metrics
