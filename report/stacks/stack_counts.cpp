#include "report/stacks/stack_counts.h"

#include <string_view>
#include <unordered_set>

#include "format/base/counted.h"
#include "format/base/text.h"
#include "report/output/text.h"

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
  return Format("{} % of {} {}", share, WithThousands(counts.all), ForCount(counts.all, what));
}

std::unordered_set<uint32_t> ProbesAskedFor(const LoadedEvents& events) {
  std::unordered_set<uint32_t> probes;
  for (const Probe& probe : events.probes) {
    if (probe.purpose == ProbePurpose::kUser) probes.insert(probe.probe);
  }
  return probes;
}

}  // namespace

std::string StackCountsText(const LoadedEvents& events, const EventSet& cpu_samples) {
  if (events.recording_info.empty()) return {};
  const RecordingInfo& info = events.recording_info.front();
  const bool tables = info.call_graph == CallGraph::kTables;
  Counts samples;
  Counts calls;
  Counts hits;  // of probes that the user asked for
  if (tables) {
    const std::unordered_set<uint32_t> asked = ProbesAskedFor(events);
    for (const CpuSample& sample : Selected(events.cpu_samples, cpu_samples)) {
      samples.Add(sample.stack_flags);
    }
    for (const ProbeHit& hit : events.probe_hits) {
      if (asked.contains(hit.probe)) {
        hits.Add(hit.stack_flags);
      } else if (!hit.is_return) {
        calls.Add(hit.stack_flags);
      }
    }
  }
  if (tables || info.launch_stacks == LaunchStackSource::kInProcess) {
    for (const LaunchStack& launch : events.launch_stacks) calls.Add(launch.stack_flags);
  }
  std::string text;
  const auto add = [&](const Counts& counts, std::string_view what) {
    if (counts.all > 0) text += (text.empty() ? "" : " and ") + Share(counts, what);
  };
  add(samples, "CPU {sample|samples}");
  add(calls, "CUDA {call|calls}");
  add(hits, "{hit|hits} of probes");
  if (text.empty()) return text;
  text += ForCount(samples.all + calls.all + hits.all,
                   " {reaches its|reach their} outermost frame (unwind tables");
  if (calls.in_process) text += ", those of CUDA calls in the process";
  return text + ")";
}

}  // namespace xpu
