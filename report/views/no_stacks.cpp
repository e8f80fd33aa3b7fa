#include "report/views/no_stacks.h"

#include <algorithm>
#include <string_view>

#include "format/base/text.h"

namespace xpu {
namespace {

// Whether the capture has what the mode shows, be it that a filter leaves it out.
bool HasAny(const LoadedEvents& events, MergeMode mode) {
  switch (mode) {
    case MergeMode::kCpu:
      return !events.cpu_samples.empty();
    case MergeMode::kProbe:
      return !events.probe_hits.empty();
    case MergeMode::kOff:
    case MergeMode::kWall:
      return !events.off_cpu_waits.empty() || !events.off_cpu_sums.empty();
    default:
      return true;
  }
}

// Why GPU work is missing from the view.
std::string_view WithoutGpuTimes(const Model& model, bool has_work) {
  if (has_work) return "the GPU records have no times";
  if (model.events.recording_info.empty()) return "the capture has no GPU records";
  const RecordingInfo& info = model.events.recording_info.front();
  if (info.launch_stacks == LaunchStackSource::kProbes) {
    return "recorded without injection: no GPU times";
  }
  const std::string_view settings = model.Text(info.settings);
  return settings.find("--cpu-only") == std::string_view::npos
             ? "the capture has no GPU records"
             : "the GPU was not recorded (--cpu-only)";
}

// What no sample was taken of; empty: the capture does not say.
std::string EventsWithoutSamples(const Analysis& analysis) {
  std::string names;
  for (const SampledEvent& event : analysis.sampled_events) {
    if (event.samples == 0) AppendFormat(names, "{}{}", names.empty() ? "" : ", ", event.Text());
  }
  return names;
}

}  // namespace

std::string WhyNoStacks(const Analysis& analysis, MergeMode mode) {
  if (!analysis.shown.filter_text.empty() && HasAny(analysis.model.events, mode)) {
    return Format("no stacks to show: none match {}\n", analysis.shown.filter_text);
  }
  if (mode == MergeMode::kProbe) {
    return "no stacks to show: the capture has no probe hits\n"
           "  hint: xpu-record --uprobe LIBRARY:FUNCTION records them\n";
  }
  if (mode == MergeMode::kMemory) {
    return "no stacks to show: the capture has no allocations of GPU memory\n"
           "  hint: xpu-record --gpu-memory records them\n";
  }
  if (mode == MergeMode::kOff || mode == MergeMode::kWall) {
    return "no stacks to show: the capture has no off-CPU time\n"
           "  hint: xpu-record --off-cpu records it\n";
  }
  const Model& model = analysis.model;
  const Correlation::Counts& counts = analysis.counts();
  const auto works = analysis.Work();
  const bool has_samples = !analysis.CpuSamples().empty();
  const auto is_gpu = [](const GpuWork& work) { return work.kind != WorkKind::kSynchronization; };
  const bool has_work = std::any_of(works.begin(), works.end(), is_gpu);
  const bool has_times = std::any_of(works.begin(), works.end(), [&](const GpuWork& work) {
    return is_gpu(work) && work.duration_ns > 0;
  });
  const bool has_launches =
      counts.launches_probed > 0 || counts.launches_pending + counts.launches_lost > 0;
  const std::string events = EventsWithoutSamples(analysis);
  if (mode != MergeMode::kGpu && !has_samples && !has_work && !has_launches) {
    if (events.empty()) return {};
    return Format("no stacks to show: no samples were taken of {}\n", events);
  }
  const std::string_view why =
      mode == MergeMode::kCpu ? "the capture has no CPU samples" : WithoutGpuTimes(model, has_work);
  std::string text = Format("no stacks to show: {}\n", why);
  if (mode == MergeMode::kCpu && has_times) {
    text += "  hint: --mode gpu shows GPU work\n";
  } else if (mode != MergeMode::kMerge && (has_samples || has_launches)) {
    AppendFormat(text, "  hint: --mode merge shows {}{}{}\n", has_samples ? "CPU samples" : "",
                 has_samples && has_launches ? " and " : "", has_launches ? "launches" : "");
  }
  return text;
}

}  // namespace xpu
