// --folded, and why a view of stacks has none.
#include <algorithm>
#include <utility>

#include "format/base/counted.h"
#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/base/text.h"
#include "report/critical_path/critical_path.h"
#include "report/views/view.h"

namespace xpu {
namespace {

// Whether the capture has what the mode shows, be it that a filter leaves it out.
bool HasAny(const LoadedEvents& events, TreeMode mode) {
  switch (mode) {
    case TreeMode::kCpu:
      return !events.cpu_samples.empty();
    case TreeMode::kProbe:
      return !events.probe_hits.empty();
    case TreeMode::kOff:
    case TreeMode::kWall:
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

// The events of which no sample was taken; empty: the capture does not say.
std::string EventsWithoutSamples(const Analysis& analysis) {
  std::string names;
  for (const SampledEvent& event : analysis.sampled_events) {
    if (event.samples == 0) AppendFormat(names, "{}{}", names.empty() ? "" : ", ", event.Text());
  }
  return names;
}

// Stacks as lists of numbers of names: as texts, those of a C++ compiler take gigabytes.
class FoldedStacks {
 public:
  struct Line {
    size_t begin = 0;  // in numbers_
    size_t count = 0;
    uint64_t ns = 0;
    uint64_t other_ns = 0;
  };

  // In the order of their frames' names, stacks that read the same joined. `other`: a second value
  // of each path, by path - 1, or none.
  FoldedStacks(const CallTree& tree, std::span<const uint64_t> other, const FrameTable& frames,
               const ViewOptions& options);

  const std::vector<Line>& lines() const { return lines_; }
  std::string TextOf(const Line& line) const;
  std::vector<uint64_t> Rounded(uint64_t Line::*value, uint64_t unit_ns) const;

 private:
  void NameFrames(const FrameTable& frames);
  std::span<const uint32_t> StackOf(const Line& line) const {
    return std::span(numbers_).subspan(line.begin, line.count);
  }
  void SortAndJoin();

  std::vector<std::string> names_;         // ascending
  std::vector<uint32_t> number_of_frame_;  // by frame id: in names_
  std::vector<uint32_t> numbers_;
  std::vector<Line> lines_;
};

FoldedStacks::FoldedStacks(const CallTree& tree, std::span<const uint64_t> other,
                           const FrameTable& frames, const ViewOptions& options) {
  NameFrames(frames);
  const ptrdiff_t group = options.tree.by == GroupBy::kNothing ? 0 : 1;  // stays first
  for (uint32_t i = 0; i < tree.nodes().size(); ++i) {
    const uint64_t ns = tree.nodes()[i].self_ns;
    const uint64_t other_ns = other.empty() ? 0 : other[i];
    if (ns == 0 && other_ns == 0) continue;
    std::vector<FrameId> path = tree.Path(PathId{i + 1});
    if (options.reverse) std::reverse(path.begin() + group, path.end());
    lines_.push_back({numbers_.size(), path.size(), ns, other_ns});
    for (const FrameId frame : path) numbers_.push_back(number_of_frame_[frame.value]);
  }
  SortAndJoin();
}

void FoldedStacks::NameFrames(const FrameTable& frames) {
  std::vector<std::pair<std::string, uint32_t>> named;
  for (uint32_t id = 1; id <= frames.size(); ++id) {
    named.emplace_back(ToFoldedFrame(frames[FrameId{id}].Label()), id);
  }
  std::sort(named.begin(), named.end());
  number_of_frame_.resize(frames.size() + 1);
  for (auto& [name, id] : named) {
    if (names_.empty() || names_.back() != name) names_.push_back(std::move(name));
    number_of_frame_[id] = static_cast<uint32_t>(names_.size() - 1);
  }
}

void FoldedStacks::SortAndJoin() {
  std::sort(lines_.begin(), lines_.end(), [this](const Line& a, const Line& b) {
    return std::ranges::lexicographical_compare(StackOf(a), StackOf(b));
  });
  size_t kept = 0;
  for (const Line& line : lines_) {
    if (kept > 0 && std::ranges::equal(StackOf(lines_[kept - 1]), StackOf(line))) {
      Line& same = lines_[kept - 1];
      same.ns = AddSaturated(same.ns, line.ns);
      same.other_ns = AddSaturated(same.other_ns, line.other_ns);
    } else {
      lines_[kept++] = line;
    }
  }
  lines_.resize(kept);
}

std::string FoldedStacks::TextOf(const Line& line) const {
  std::string text;
  for (const uint32_t number : StackOf(line)) {
    if (!text.empty()) text += ';';
    text += names_[number];
  }
  return text;
}

std::vector<uint64_t> FoldedStacks::Rounded(uint64_t Line::*value, uint64_t unit_ns) const {
  std::vector<uint64_t> values;
  values.reserve(lines_.size());
  for (const Line& line : lines_) values.push_back(line.*value);
  return RoundToUnit(values, unit_ns);
}

// Events that do not count time have no units: their lines are whole numbers.
uint64_t UnitNs(const Analysis& analysis, const ViewOptions& options) {
  if (!CountsTime(analysis, options.tree)) return 1;
  switch (options.unit) {
    case TimeUnit::kMicroseconds:
      return 1000;
    case TimeUnit::kNanoseconds:
      return 1;
    case TimeUnit::kSamples:
      return SampleUnitNs(analysis.model, analysis.shown);
  }
  return 1;
}

}  // namespace

std::string WhyNoStacks(const Analysis& analysis, TreeMode mode) {
  if (!analysis.shown.filter_text.empty() && HasAny(analysis.model.events, mode)) {
    return Format("no stacks to show: none match {}\n", analysis.shown.filter_text);
  }
  if (mode == TreeMode::kProbe) {
    return "no stacks to show: the capture has no probe hits\n"
           "  hint: xpu-record --uprobe LIBRARY:FUNCTION records them\n";
  }
  if (mode == TreeMode::kMemory) {
    return "no stacks to show: the capture has no allocations of GPU memory\n"
           "  hint: xpu-record --gpu-memory records them\n";
  }
  if (mode == TreeMode::kOff || mode == TreeMode::kWall) {
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
  if (mode != TreeMode::kGpu && !has_samples && !has_work && !has_launches) {
    if (events.empty()) return {};
    return Format("no stacks to show: no samples were taken of {}\n", events);
  }
  const std::string_view why =
      mode == TreeMode::kCpu ? "the capture has no CPU samples" : WithoutGpuTimes(model, has_work);
  std::string text = Format("no stacks to show: {}\n", why);
  if (mode == TreeMode::kCpu && has_times) {
    text += "  hint: --mode gpu shows GPU work\n";
  } else if (mode != TreeMode::kCpuAndGpu && (has_samples || has_launches)) {
    AppendFormat(text, "  hint: --mode merge shows {}{}{}\n", has_samples ? "CPU samples" : "",
                 has_samples && has_launches ? " and " : "", has_launches ? "launches" : "");
  }
  return text;
}

void WriteFolded(Analysis& analysis, const ViewOptions& options, Output& output,
                 std::string& notes) {
  TreeOptions tree_options = options.tree;
  tree_options.count_samples =
      options.unit == TimeUnit::kSamples && !CountsTime(analysis, options.tree);
  const CallTree tree = tree_options.mode == TreeMode::kCritical
                            ? BuildCriticalTree(analysis, options.steps, tree_options.kernel_names,
                                                tree_options.paths)
                            : BuildCallTree(analysis, tree_options);
  const FoldedStacks stacks(tree, {}, analysis.frames, options);
  const std::vector<FoldedStacks::Line>& lines = stacks.lines();
  const std::vector<uint64_t> rounded =
      stacks.Rounded(&FoldedStacks::Line::ns, UnitNs(analysis, options));
  uint64_t left_out = 0;
  uint64_t left_out_ns = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (rounded[i] == 0) {
      ++left_out;
      left_out_ns = AddSaturated(left_out_ns, lines[i].ns);
      continue;
    }
    output.Write(ShownText::Of("{} {}\n", stacks.TextOf(lines[i]), rounded[i]));
  }
  notes += LeftOutText(analysis, options.tree) + EstimateText(tree);
  if (lines.empty()) notes += WhyNoStacks(analysis, options.tree.mode);
  if (left_out > 0) {
    AppendFormat(
        notes, "{} {}, {} ns in total\n", left_out,
        ForCount(left_out, "{stack rounds to 0 and is|stacks round to 0 and are} left out"),
        left_out_ns);
    notes += "  hint: --unit ns shows them\n";
  }
}

void WriteSlowStepsFolded(const SlowSteps& steps, Analysis& slow, Analysis& median,
                          const ViewOptions& options, Output& output, std::string& notes) {
  const StepComparison compared = CompareSteps(steps, slow, median, options.tree);
  const FoldedStacks stacks(compared.tree, compared.median_ns, slow.frames, options);
  const uint64_t unit_ns = UnitNs(slow, options);
  const std::vector<uint64_t> after = stacks.Rounded(&FoldedStacks::Line::ns, unit_ns);
  const std::vector<uint64_t> before = stacks.Rounded(&FoldedStacks::Line::other_ns, unit_ns);
  for (size_t i = 0; i < after.size(); ++i) {
    if (before[i] == 0 && after[i] == 0) continue;
    output.Write(
        ShownText::Of("{} {} {}\n", stacks.TextOf(stacks.lines()[i]), before[i], after[i]));
  }
  notes += LeftOutText(slow, options.tree) + SlowStepsText(steps, compared, slow.frames);
}

View FoldedView() {
  return {
      .option = "--folded",
      .help = "folded stacks, for flamegraph.pl, inferno, speedscope",
      .takes_sample = true,
      .compares_steps = true,
      .shows_paths = true,
      .write =
          [](const ViewInput& input) {
            const ViewOptions& options = input.options;
            if (input.slow_steps == nullptr) {
              WriteFolded(input.analysis, options, input.output, input.notes);
            } else {
              WriteSlowStepsFolded(*input.slow_steps, input.analysis, *input.median_steps, options,
                                   input.output, input.notes);
            }
          },
  };
}

}  // namespace xpu
