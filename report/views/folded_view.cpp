#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/base/counted.h"
#include "format/base/text.h"
#include "report/critical_path/critical_path.h"
#include "report/model/saturated.h"
#include "report/output/text.h"
#include "report/views/no_stacks.h"
#include "report/views/view.h"

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
  FoldedStacks(const CallTree& tree, const FrameTable& frames, const FoldedOptions& options);

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

FoldedStacks::FoldedStacks(const CallTree& tree, const FrameTable& frames,
                           const FoldedOptions& options) {
  NameFrames(frames);
  const ptrdiff_t group = options.merge.by == GroupBy::kNothing ? 0 : 1;  // stays first
  for (uint32_t i = 0; i < tree.nodes().size(); ++i) {
    const uint64_t ns = tree.nodes()[i].self_ns;
    if (ns == 0) continue;
    std::vector<FrameId> path = tree.Path(PathId{i + 1});
    if (options.reverse) std::reverse(path.begin() + group, path.end());
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

// What does not count time has no units: its lines are whole numbers.
uint64_t UnitNs(const Analysis& analysis, const FoldedOptions& options) {
  if (!CountsTime(analysis, options.merge)) return 1;
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

void WriteFolded(Analysis& analysis, const FoldedOptions& options, Output& output,
                 std::string& notes) {
  MergeOptions merge = options.merge;
  merge.count_samples = options.unit == TimeUnit::kSamples && !CountsTime(analysis, options.merge);
  const CallTree tree =
      merge.mode == MergeMode::kCritical
          ? BuildCriticalTree(analysis, options.critical, merge.kernel_names, merge.paths)
          : BuildCallTree(analysis, merge);
  const FoldedStacks stacks(tree, analysis.frames, options);
  const std::vector<FoldedStacks::Line>& lines = stacks.lines();
  std::vector<uint64_t> values;
  values.reserve(lines.size());
  for (const FoldedStacks::Line& line : lines) values.push_back(line.ns);
  const std::vector<uint64_t> rounded = RoundToUnit(values, UnitNs(analysis, options));
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
  notes += LeftOutText(analysis, options.merge);
  if (lines.empty()) notes += WhyNoStacks(analysis, options.merge.mode);
  if (left_out > 0) {
    AppendFormat(
        notes, "{} {}, {} ns in total\n", left_out,
        ForCount(left_out, "{stack rounds to 0 and is|stacks round to 0 and are} left out"),
        left_out_ns);
    notes += "  hint: --unit ns shows them\n";
  }
}

View FoldedView() {
  return {
      .option = "--folded",
      .help = "folded stacks, for flamegraph.pl, inferno, speedscope",
      .takes_sample = true,
      .shows_paths = true,
      .write =
          [](const ViewInput& input) {
            WriteFolded(input.analysis, input.options.folded, input.output, input.notes);
          },
  };
}

}  // namespace xpu
