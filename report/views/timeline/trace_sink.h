// Where a timeline goes: a format of traces. The timeline (timeline.h) decides what is shown on
// which track; a sink writes it. So all formats show the same slices, arrows, counters and samples.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "report/analysis/call_tree.h"
#include "report/base/text.h"

namespace xpu {

// Where an event is drawn. Both numbers are positive.
struct TraceTrack {
  uint32_t pid = 0;
  uint32_t tid = 0;
};

// The name of an event, prepared by the sink once for what is written often.
class TraceName {
 public:
  bool empty() const { return text_.empty(); }

 private:
  friend class PerfettoWriter;
  friend class TraceWriter;
  std::string text_;      // as the sink writes it
  uint64_t name_id_ = 0;  // what else a sink has for it
  uint64_t category_id_ = 0;
};

// The text of an argument, prepared in the same way.
class TraceText {
 public:
  bool empty() const { return text_.empty(); }

 private:
  friend class PerfettoWriter;
  friend class TraceWriter;
  std::string text_;
  uint64_t id_ = 0;
};

// The kind of owner of the tracks of a number in TraceTrack::pid.
enum class TraceGroup : uint8_t { kProcess, kOther };
// The owner of a track: a thread as the system numbers it, or something else in its group.
enum class TraceTrackKind : uint8_t { kThread, kOther };

// A thread was seen running.
struct TraceSample {
  TraceTrack thread;
  uint64_t time_ns = 0;
  uint32_t cpu = 0;
  PathId path;  // its first frame is the name of the thread
};

class TraceSink {
 public:
  TraceSink() = default;
  TraceSink(const TraceSink&) = delete;
  TraceSink& operator=(const TraceSink&) = delete;
  virtual ~TraceSink() = default;

  virtual TraceName Name(std::string_view name, std::string_view category) = 0;
  virtual TraceText Text(std::string_view text) = 0;

  // Both ends of a slice, in order of start, but for NestedSlice and Slice of what NestedSlice is
  // for. Arguments may follow.
  virtual void Slice(TraceTrack track, const TraceName& name, uint64_t start_ns,
                     uint64_t end_ns) = 0;
  // Whether the format has stacks; else those of samples come as NestedSlice.
  virtual bool has_stacks() const = 0;
  // In order of time, as slices.
  virtual void Sample(const TraceSample& sample, const CallTree& tree) = 0;
  // Where the slice before was called from.
  virtual void Stack(PathId path, const CallTree& tree) = 0;
  // Slices that follow and enclose one another without a gap, innermost first.
  virtual void NestedSlice(TraceTrack track, const TraceName& name, uint64_t start_ns,
                           uint64_t end_ns) {
    Slice(track, name, start_ns, end_ns);
  }
  // Slices that follow one another without a gap and enclose none.
  virtual void AdjacentSlice(TraceTrack track, const TraceName& name, uint64_t start_ns,
                             uint64_t end_ns) {
    Slice(track, name, start_ns, end_ns);
  }
  // Announces that `count` arrows will begin in the slice before, numbered from `first`.
  virtual void BeginArrows(uint64_t first, uint64_t count) = 0;
  // One of them (number 0: one that was not announced) ends at the slice before, on `to` at
  // `to_ns`. It began on `from` at `from_ns`. `name` is its category too.
  virtual void Arrow(Literal name, uint64_t number, TraceTrack from, uint64_t from_ns,
                     TraceTrack to, uint64_t to_ns) = 0;
  // A value from `time_ns` on, with three digits after the point. Viewers name it by all three.
  // Counters come after all slices, each in order of time.
  virtual void Counter(uint32_t pid, std::string_view name, std::string_view series,
                       uint64_t time_ns, double value) = 0;
  // A moment on a track, in order of time. Arguments may follow.
  virtual void Instant(TraceTrack track, const TraceName& name, uint64_t time_ns) = 0;
  // A mark through all tracks.
  virtual void Mark(std::string_view name, uint64_t time_ns) = 0;

  // Arguments of the slice before.
  template <std::integral Number>
  void Arg(Literal key, Number value) {
    if constexpr (std::signed_integral<Number>) {
      ArgSigned(key, value);
    } else {
      ArgUnsigned(key, value);
    }
  }
  virtual void Arg(Literal key, const std::array<int32_t, 3>& values) = 0;
  virtual void ArgText(Literal key, std::string_view text) = 0;
  virtual void ArgText(Literal key, const TraceText& text) = 0;
  // With three digits after the point: nanoseconds as microseconds for instance.
  virtual void ArgThousandths(Literal key, uint64_t thousandths) = 0;

  virtual void NameProcess(uint32_t pid, TraceGroup group, std::string_view name,
                           uint64_t sort_index) = 0;
  virtual void NameThread(TraceTrack track, TraceTrackKind kind, std::string_view name,
                          uint64_t sort_index) = 0;

  // Slices written so far.
  uint64_t slices() const { return slices_; }

  // The rest of the document; `facts`: about the recording, keys and texts.
  using Fact = std::pair<std::string, std::string>;
  virtual void Finish(std::span<const Fact> facts) = 0;

 protected:
  uint64_t slices_ = 0;

 private:
  virtual void ArgSigned(Literal key, int64_t value) = 0;
  virtual void ArgUnsigned(Literal key, uint64_t value) = 0;
};

}  // namespace xpu
