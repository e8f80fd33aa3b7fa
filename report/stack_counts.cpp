#include "report/stack_counts.h"

#include <string_view>

#include "format/base/text.h"
#include "report/text.h"

namespace xpu {
namespace {

struct Counts {
  uint64_t all = 0;
  uint64_t complete = 0;
  bool in_process = false;

  void Add(uint8_t stack_flags) {
    ++all;
    complete += (stack_flags & kStackComplete) != 0;
    in_process = in_process || (stack_flags & kStackInProcess) != 0;
  }
};

std::string Share(const Counts& counts, std::string_view what) {
  const uint64_t tenths = static_cast<uint64_t>(
      1000.0L * static_cast<long double>(counts.complete) / static_cast<long double>(counts.all));
  std::string share = Format("{}", tenths / 10);
  if (tenths < 1000) AppendFormat(share, ".{}", tenths % 10);
  return Format("{} % of {} {}", share, WithThousands(counts.all), what);
}

}  // namespace

std::string StackCountsText(const EventBatch& events) {
  if (events.recording_info.empty()) return {};
  const RecordingInfo& info = events.recording_info.front();
  const bool tables = info.call_graph == CallGraph::kTables;
  Counts samples;
  Counts calls;
  if (tables) {
    for (const CpuSample& sample : events.cpu_samples) samples.Add(sample.stack_flags);
    for (const ProbeHit& hit : events.probe_hits) {
      if (!hit.is_return) calls.Add(hit.stack_flags);
    }
  }
  if (tables || info.launch_stacks == LaunchStackSource::kInProcess) {
    for (const LaunchStack& launch : events.launch_stacks) calls.Add(launch.stack_flags);
  }
  std::string text;
  if (samples.all > 0) text = Share(samples, "CPU samples");
  if (samples.all > 0 && calls.all > 0) text += " and ";
  if (calls.all > 0) text += Share(calls, "CUDA calls");
  if (text.empty()) return text;
  text += " reach their outermost frame (unwind tables";
  if (calls.in_process) text += ", those of CUDA calls in the process";
  return text + ")";
}

}  // namespace xpu
