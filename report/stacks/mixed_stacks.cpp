#include "report/stacks/mixed_stacks.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace xpu {
namespace {

// Marks instead of the group that runs in a frame of the loop.
constexpr size_t kNative = ~size_t{0};   // no function yet, or no more
constexpr size_t kCut = ~size_t{0} - 1;  // functions that are not known

// Native frames that are one activation of the loop: itself, and what was inlined into it.
struct Loop {
  size_t begin = 0;
  size_t end = 0;
  size_t group = kNative;
};

class Merge {
 public:
  Merge(std::span<const FrameId> native, StackEnd end, const PythonStack& python, FrameId cut,
        const FrameTable& frames)
      : native_(native), end_(end), python_(python), cut_(cut), frames_(frames) {}

  MergedStack Run() {
    FindLoops();
    Match();
    AddNative(0, loops_.empty() ? native_.size() : loops_.front().begin, true);
    for (size_t i = 0; i < loops_.size(); ++i) {
      AddLoop(loops_[i]);
      if (i + 1 < loops_.size()) AddNative(loops_[i].end, loops_[i + 1].begin, false);
    }
    if (end_ == StackEnd::kWhole) AddOuterGroups();
    if (!loops_.empty()) AddStart(loops_.back().end);
    if (end_ != StackEnd::kWhole) AddOuterGroups();
    return std::move(merged_);
  }

 private:
  const NamedFrame& At(size_t i) const { return frames_[native_[i]]; }

  void FindLoops();
  void Match();
  void AddNative(size_t begin, size_t end, bool is_innermost);
  void AddLoop(const Loop& loop);
  void AddGroup(size_t group);
  void AddCut();
  void AddOuterGroups();
  void AddStart(size_t begin);

  // Whether the frame is how the interpreter gets from one Python function to the next.
  static bool IsInterpreter(const NamedFrame& frame) {
    return frame.python_role == PythonRole::kCall || IsPythonModule(frame.module);
  }

  const std::span<const FrameId> native_;
  const StackEnd end_;
  const PythonStack& python_;
  const FrameId cut_;
  const FrameTable& frames_;
  std::vector<Loop> loops_;  // innermost first
  MergedStack merged_;
};

void Merge::FindLoops() {
  bool is_open = false;  // parts of a loop were seen, and not yet the loop itself
  for (size_t begin = 0; begin < native_.size();) {
    size_t last = begin;
    while (At(last).is_inlined && last + 1 < native_.size()) ++last;
    const PythonRole role = At(last).python_role;
    const bool is_part = role == PythonRole::kLoopPart;
    if (is_part || role == PythonRole::kLoop) {
      if (!is_open) loops_.push_back({.begin = begin});
      loops_.back().end = last + 1;
    }
    is_open = is_part;
    begin = last + 1;
  }
}

void Merge::Match() {
  const size_t loops = loops_.size();
  const size_t groups = python_.groups.size();
  const bool has_surplus = python_.is_whole && loops > groups;
  // A function is entered and left inside the loop: there the innermost loop runs none. Other loops
  // without functions are the outermost ones, as below a greenlet, whose functions end with it.
  const bool is_in_loop =
      has_surplus &&
      std::all_of(native_.begin(), native_.begin() + static_cast<ptrdiff_t>(loops_[0].begin),
                  [this](FrameId id) { return frames_[id].origin == FrameOrigin::kKernel; });
  const bool has_greenlet =
      has_surplus && std::any_of(native_.begin(), native_.end(), [this](FrameId id) {
        return frames_[id].module.find("greenlet") != std::string::npos;
      });
  const size_t idle =
      is_in_loop && !python_.is_on_top && (python_.is_top_known || !has_greenlet) ? 1 : 0;
  for (size_t i = idle; i < loops; ++i) loops_[i].group = i - idle < groups ? i - idle : kCut;
  merged_.is_doubtful = (has_surplus && (loops > groups + idle || has_greenlet)) ||
                        (groups > loops && end_ == StackEnd::kWhole);
}

void Merge::AddNative(size_t begin, size_t end, bool is_innermost) {
  for (size_t i = begin; i < end; ++i) {
    // Where the innermost function's time goes is shown: the very end, and what it has called.
    const bool is_left_out =
        is_innermost ? i > 0 && At(i).python_role == PythonRole::kCall : IsInterpreter(At(i));
    if (!is_left_out) merged_.frames.push_back(native_[i]);
  }
}

void Merge::AddLoop(const Loop& loop) {
  if (loop.group == kNative) {
    const auto frames = native_.subspan(loop.begin, loop.end - loop.begin);
    merged_.frames.insert(merged_.frames.end(), frames.begin(), frames.end());
  } else if (loop.group == kCut) {
    AddCut();
  } else {
    AddGroup(loop.group);
  }
}

void Merge::AddGroup(size_t group) {
  const std::vector<FrameId>& frames = python_.groups[group].frames;
  merged_.frames.insert(merged_.frames.end(), frames.begin(), frames.end());
}

void Merge::AddCut() {
  if (merged_.frames.empty() || merged_.frames.back() != cut_) merged_.frames.push_back(cut_);
}

// Adds the groups of loops that the native stack does not show.
void Merge::AddOuterGroups() {
  for (size_t i = loops_.size(); i < python_.groups.size(); ++i) AddGroup(i);
  if (!python_.is_whole && loops_.size() <= python_.groups.size()) AddCut();
}

// Adds what started the thread and the interpreter; a program that embeds it is its own reader's
// code.
void Merge::AddStart(size_t begin) {
  const auto is_start = [this](FrameId id) {
    const NamedFrame& frame = frames_[id];
    const bool is_libc = frame.nameless_in && frame.module.starts_with("libc.so");
    return frame.python_role == PythonRole::kStart || is_libc || IsInterpreter(frame);
  };
  const auto outer = native_.subspan(begin);
  if (!std::all_of(outer.begin(), outer.end(), is_start)) AddNative(begin, native_.size(), false);
}

}  // namespace

MergedStack MergePython(std::span<const FrameId> native, StackEnd end, const PythonStack& python,
                        FrameId cut, const FrameTable& frames) {
  return Merge(native, end, python, cut, frames).Run();
}

MixedStacks::MixedStacks(const Model& model, const SourceParts& sources, StackResolver& native,
                         FrameTable& frames, FramePlaces places, PythonView view)
    : native_(native),
      python_(model, sources, frames, places),
      frames_(frames),
      view_(view),
      no_python_(frames.Intern("[native]")) {}

EventStack MixedStacks::Shown(EventStack stack) const {
  switch (view_) {
    case PythonView::kMerge:
      break;
    case PythonView::kOnly:
      return {.native = {}, .python = stack.python};
    case PythonView::kNative:
      return {.native = stack.native, .python = {}};
  }
  return stack;
}

size_t MixedStacks::KeyHash::operator()(const Key& key) const {
  const uint64_t stacks = uint64_t{key.stack.native.value} << 32 | key.stack.python.value;
  const uint64_t others = uint64_t{key.space.value} << 8 | static_cast<uint64_t>(key.stack.end);
  return std::hash<uint64_t>()((stacks ^ others * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull);
}

ResolvedStack MixedStacks::Resolve(const EventStack& shown, SpaceId space, uint64_t time_ns) {
  constexpr size_t kMostFrames = size_t{1} << 22;
  const Key key{shown, space};
  if (const auto known = known_.find(key); known != known_.end()) {
    return {.frames = known->second};
  }
  ResolvedStack resolved = Merge(shown, space, time_ns);
  if (!resolved.at_any_time) return resolved;
  known_frames_ += resolved.frames.size() + 1;
  if (known_frames_ > kMostFrames) {
    known_.clear();
    known_frames_ = resolved.frames.size() + 1;
  }
  known_.emplace(key, resolved.frames);
  return resolved;
}

ResolvedStack MixedStacks::Merge(const EventStack& shown, SpaceId space, uint64_t time_ns) {
  if (!shown.python) {
    if (view_ == PythonView::kOnly) return {.frames = {no_python_}};
    return native_.Resolve(shown.native, space, time_ns);
  }
  ResolvedStack resolved = native_.Resolve(shown.native, space, time_ns);
  const PythonStack python = python_.Resolve(shown.python);
  native_.CountFrames(python.walked);
  MergedStack merged = MergePython(resolved.frames, shown.end, python, python_.cut(), frames_);
  resolved.frames = std::move(merged.frames);
  if (merged.is_doubtful) {
    SeenId& seen = doubtful_[uint64_t{shown.native.value} << 32 | shown.python.value];
    if (!seen) ++doubtful_count_;
    seen = SeenId{1};
  }
  return resolved;
}

}  // namespace xpu
