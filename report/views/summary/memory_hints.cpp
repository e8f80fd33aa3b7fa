#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "format/base/saturated.h"
#include "format/base/source_name.h"
#include "format/base/text.h"
#include "format/python_lines.h"
#include "report/analysis/call_paths.h"
#include "report/base/text.h"
#include "report/query/gpu_memory.h"
#include "report/views/summary/summary_hints.h"

namespace xpu {
namespace {

// Windows of as many events of an allocator each, up to its peak: time passes unevenly, and at its
// end a program gives back what it kept. What a program keeps grows in all of them but the first
// quarter, in which it makes what it works with, and the last one, in which it holds what it works
// on.
constexpr size_t kWindows = 16;
constexpr size_t kFirstWindow = kWindows / 4;
// A leak of less than this part of the peak is not worth advice.
constexpr double kMuchKept = 0.01;
// Least share of the reserved memory; less is the rounding of every allocator.
constexpr double kMuchUnused = 0.2;
constexpr double kMuchAdded = 0.05;
constexpr uint64_t kLeastReservedBytes = 64'000'000;

// Blocks of one stack that stay.
struct Kept {
  const Owned<AllocatorEvent>* first = nullptr;
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  std::array<bool, kWindows> windows{};

  bool Grows() const {
    return std::all_of(windows.begin() + kFirstWindow, windows.end() - 1,
                       [](bool has) { return has; });
  }
  void Add(const Kept& other) {
    if (other.bytes > bytes) first = other.first;
    count += other.count;
    bytes = AddSaturated(bytes, other.bytes);
    start_ns = start_ns == 0 ? other.start_ns : std::min(start_ns, other.start_ns);
    end_ns = std::max(end_ns, other.end_ns);
  }
};

class MemoryHints {
 public:
  explicit MemoryHints(Analysis& analysis) : analysis_(analysis), memory_(analysis) {
    for (const PythonCode& code : analysis.model.events.python_codes) codes_[code.code] = &code;
    for (const AllocatorBlock& block : memory_.blocks()) {
      if (memory_.IsIn(MemoryView::kPeak, block)) peaks_[block.use].push_back(&block);
    }
  }

  std::vector<Hint> Find() {
    for (uint32_t use = 0; use < memory_.uses().size(); ++use) {
      AddLeak(use);
      AddFragmentation(memory_.uses()[use]);
    }
    return std::move(hints_);
  }

 private:
  void AddLeak(uint32_t use);
  void AddFragmentation(const AllocatorUse& use);
  std::map<std::string, Kept> GrowingPlaces(uint32_t use);
  std::string PlaceOf(const Owned<AllocatorEvent>& event);
  std::optional<std::string> PythonPlaceOf(StackId stack) const;
  std::string NativePlaceOf(const Owned<AllocatorEvent>& event);
  double StepsOf(const AllocatorUse& use, const Kept& kept);

  Analysis& analysis_;
  const AllocatorMemory memory_;
  std::map<uint32_t, const PythonCode*> codes_;
  std::optional<CallPaths> paths_;
  std::map<uint32_t, std::vector<const AllocatorBlock*>> peaks_;  // by use
  std::optional<std::vector<StepSeries>> steps_;
  std::map<uint32_t, const StepSeries*> steps_of_;  // by process
  std::vector<Hint> hints_;
};

// "train.py:12 (train_step)", of the innermost function that is not of an installed package.
std::optional<std::string> MemoryHints::PythonPlaceOf(StackId stack) const {
  for (; stack && !analysis_.model.tables->IsLost(stack);
       stack = analysis_.model.tables->Node(stack).caller) {
    const Frame& frame = analysis_.model.tables->Node(stack).frame;
    const PythonFrame python = PythonFrame::OfBits(frame.address);
    const auto code = codes_.find(python.code);
    if (frame.kind != FrameKind::kPython || code == codes_.end()) continue;
    const std::string_view path = analysis_.model.Text(code->second->path);
    if (IsInstalledPython(path) || path.starts_with('<')) continue;
    const PythonLines lines(analysis_.model.Text(code->second->line_table));
    const int64_t line = code->second->first_line + lines.At(python.offset).value_or(0);
    return Format("{}:{} ({})", path.substr(path.rfind('/') + 1), line,
                  ToWidth(analysis_.model.Text(code->second->name), 40));
  }
  return std::nullopt;
}

std::string MemoryHints::NativePlaceOf(const Owned<AllocatorEvent>& event) {
  if (!paths_) paths_.emplace(analysis_, PathOptions{});
  const std::vector<FrameId> frames = paths_->tree().Path(paths_->Of(event));
  std::string innermost = "[unknown]";
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    const NamedFrame& named = analysis_.frames[*frame];
    if (!named.IsFunction()) continue;
    if (innermost == "[unknown]") innermost = ToWidth(named.name, 60);
    const bool is_of_torch =
        named.module.starts_with("libc10") || named.module.starts_with("libtorch");
    if (!is_of_torch) return ToWidth(named.name, 60);
  }
  return innermost;
}

std::string MemoryHints::PlaceOf(const Owned<AllocatorEvent>& event) {
  if (std::optional<std::string> place = PythonPlaceOf(event.python_stack)) return *place;
  return NativePlaceOf(event);
}

std::map<std::string, Kept> MemoryHints::GrowingPlaces(uint32_t use) {
  const uint32_t first = memory_.uses()[use].first_event;
  const uint32_t peak = memory_.uses()[use].peak_event;
  const uint32_t each = (peak - std::min(peak, first)) / kWindows + 1;
  std::map<std::pair<StackId, StackId>, Kept> stacks;
  for (const AllocatorBlock* block : peaks_[use]) {
    const Owned<AllocatorEvent>& event = *block->event;
    const Kept one{.first = &event,
                   .count = 1,
                   .bytes = static_cast<uint64_t>(event.size_bytes),
                   .start_ns = event.time_ns,
                   .end_ns = event.time_ns};
    Kept& kept = stacks[{event.stack, event.python_stack}];
    kept.Add(one);
    kept.windows[std::min<size_t>((block->begin - first) / each, kWindows - 1)] = true;
  }
  std::map<std::string, Kept> places;
  for (const auto& [stack, kept] : stacks) {
    if (kept.Grows()) places[PlaceOf(*kept.first)].Add(kept);
  }
  return places;
}

// 0: not known.
double MemoryHints::StepsOf(const AllocatorUse& use, const Kept& kept) {
  if (!steps_) {
    steps_ = FindSteps(analysis_, {});
    for (const StepSeries& series : *steps_) steps_of_.try_emplace(series.thread.pid, &series);
  }
  const auto of = steps_of_.find(use.pid);
  if (of == steps_of_.end()) return 0;
  const std::vector<Step>& steps = of->second->steps;
  const auto first = std::partition_point(
      steps.begin(), steps.end(), [&](const Step& step) { return step.end_ns < kept.start_ns; });
  const auto last = std::partition_point(
      first, steps.end(), [&](const Step& step) { return step.start_ns <= kept.end_ns; });
  return static_cast<double>(last - first);
}

void MemoryHints::AddLeak(uint32_t number) {
  const AllocatorUse& use = memory_.uses()[number];
  if (use.levels.empty()) return;
  const std::map<std::string, Kept> places = GrowingPlaces(number);
  const auto worst = std::max_element(
      places.begin(), places.end(),
      [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
  if (worst == places.end()) return;
  const Kept& kept = worst->second;
  if (ShareOf(kept.bytes, use.peak_bytes) < kMuchKept) return;
  const double steps = StepsOf(use, kept);
  const double per_step = steps == 0 ? 0 : static_cast<double>(kept.count) / steps;
  std::string what = Format("{} tensors leak", kept.count);
  if (per_step >= 0.9) {
    const auto whole = static_cast<uint64_t>(std::llround(per_step));
    what = whole == 1 ? std::string("A tensor per step leaks")
                      : Format("{} tensors per step leak", whole);
  }
  hints_.push_back(
      {Format("{} at {}: {} of GPU memory at the peak, {} of what PyTorch had handed out on GPU {} "
              "then. What else was there:",
              what, worst->first, HumanBytes(kept.bytes),
              ShareText(ShareOf(kept.bytes, use.peak_bytes)), use.gpu),
       "--flamegraph --mode memory -o peak.html"});
}

void MemoryHints::AddFragmentation(const AllocatorUse& use) {
  const Fragmentation& worst = use.worst;
  if (worst.event == nullptr || worst.reserved_bytes < kLeastReservedBytes) return;
  const double unused = ShareOf(worst.unused_bytes, worst.reserved_bytes);
  if (unused < kMuchUnused) return;
  const uint64_t over_bytes =
      use.reserved_peak_bytes - std::min(use.reserved_peak_bytes, use.peak_bytes);
  const uint64_t added_bytes = std::min(worst.added_bytes, over_bytes);
  if (ShareOf(added_bytes, use.reserved_peak_bytes) < kMuchAdded) return;
  hints_.push_back(
      {Format("PyTorch's memory on GPU {} is fragmented: {} of the {} that it had reserved ({}) "
              "were unused when it asked CUDA for more, since no piece was large enough for the {} "
              "of {}. So it took {} more than it needed to. "
              "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True avoids most of that. What was in "
              "use at the peak:",
              use.gpu, HumanBytes(worst.unused_bytes), HumanBytes(worst.reserved_bytes),
              ShareText(unused), HumanBytes(static_cast<uint64_t>(worst.event->size_bytes)),
              PlaceOf(*worst.event), HumanBytes(added_bytes)),
       "--flamegraph --mode memory -o peak.html"});
}

}  // namespace

std::vector<Hint> FindMemoryHints(Analysis& analysis) {
  if (analysis.AllocatorEvents().empty()) return {};
  return MemoryHints(analysis).Find();
}

}  // namespace xpu
