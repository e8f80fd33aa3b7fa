#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/base/text.h"
#include "report/largest_remainder.h"
#include "report/text.h"
#include "report/views.h"

namespace xpu {
namespace {

// Stacks as lists of numbers of names: as texts, those of a C++ compiler take gigabytes.
class FoldedStacks {
 public:
  struct Line {
    size_t begin = 0;  // in numbers_
    size_t count = 0;
    uint64_t ns = 0;
  };

  // In the order of their frames' names, stacks that read the same joined.
  FoldedStacks(const CallTree& tree, const FrameTable& frames);

  const std::vector<Line>& lines() const { return lines_; }
  std::string TextOf(const Line& line) const;

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

FoldedStacks::FoldedStacks(const CallTree& tree, const FrameTable& frames) {
  NameFrames(frames);
  for (uint32_t i = 0; i < tree.nodes().size(); ++i) {
    const uint64_t ns = tree.nodes()[i].self_ns;
    if (ns == 0) continue;
    const std::vector<FrameId> path = tree.Path(PathId{i + 1});
    lines_.push_back({numbers_.size(), path.size(), ns});
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
      lines_[kept - 1].ns = AddSaturated(lines_[kept - 1].ns, line.ns);
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

uint64_t UnitNs(const Model& model, TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kMicroseconds:
      return 1000;
    case TimeUnit::kNanoseconds:
      return 1;
    case TimeUnit::kSamples:
      return SampleUnitNs(model);
  }
  return 1;
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
             : "recorded with --cpu-only: no GPU side";
}

// For a view without lines: why, and which mode shows something. Empty when the capture is.
std::string WhyEmpty(const Analysis& analysis, MergeMode mode) {
  const Model& model = analysis.model;
  const Correlation& correlation = analysis.correlation;
  const bool has_samples = !model.events.cpu_samples.empty();
  const auto is_gpu = [](const GpuWork& work) { return work.kind != WorkKind::kSynchronization; };
  const bool has_work = std::any_of(correlation.work.begin(), correlation.work.end(), is_gpu);
  const bool has_times =
      std::any_of(correlation.work.begin(), correlation.work.end(),
                  [&](const GpuWork& work) { return is_gpu(work) && work.duration_ns > 0; });
  const bool has_launches =
      correlation.counts.launches_probed > 0 ||
      correlation.counts.launches_pending + correlation.counts.launches_lost > 0;
  if (mode != MergeMode::kGpu && !has_samples && !has_work && !has_launches) return {};
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

}  // namespace

void WriteFolded(Analysis& analysis, const FoldedOptions& options, Output& output,
                 std::string& notes) {
  const CallTree tree = BuildCallTree(analysis, options.merge);
  const FoldedStacks stacks(tree, analysis.frames);
  const std::vector<FoldedStacks::Line>& lines = stacks.lines();
  std::vector<uint64_t> values;
  values.reserve(lines.size());
  for (const FoldedStacks::Line& line : lines) values.push_back(line.ns);
  const std::vector<uint64_t> rounded = RoundToUnit(values, UnitNs(analysis.model, options.unit));
  uint64_t left_out = 0;
  uint64_t left_out_ns = 0;
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (rounded[i] == 0) {
      ++left_out;
      left_out_ns = AddSaturated(left_out_ns, lines[i].ns);
      continue;
    }
    text = stacks.TextOf(lines[i]);
    AppendFormat(text, " {}\n", rounded[i]);
    output.Write(text);
  }
  if (lines.empty()) notes += WhyEmpty(analysis, options.merge.mode);
  if (left_out > 0) {
    AppendFormat(notes, "{} stacks round to 0 and are left out, {} ns in all\n", left_out,
                 left_out_ns);
    notes += "  hint: --unit ns shows them\n";
  }
}

}  // namespace xpu
