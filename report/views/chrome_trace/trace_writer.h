// Events of the Trace Event Format, streamed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "report/output/json_writer.h"
#include "report/output/output.h"
#include "report/views/timeline/trace_sink.h"

namespace xpu {

class TraceWriter : public TraceSink {
 public:
  // Times are written as microseconds since `base_ns`, with nanosecond digits.
  TraceWriter(Output& output, uint64_t base_ns);

  TraceName Name(std::string_view name, std::string_view category) override;
  TraceText Text(std::string_view text) override;

  // Slices within one another are given innermost first, as they end, which is what
  // chrome://tracing takes the order for when they begin together.
  void Slice(TraceTrack track, const TraceName& name, uint64_t start_ns, uint64_t end_ns) override;
  // Viewers do not import stacks of samples from JSON.
  bool has_stacks() const override { return false; }
  void Sample(const TraceSample& sample, const CallTree& tree) override;
  void Stack(PathId path, const CallTree& tree) override;
  // In eighths of a microsecond, rounded down, which are exact in binary: where viewers convert and
  // add decimal fractions each on its own, an inner slice would stick out of its outer one by a
  // nanosecond, and Perfetto drops it. And with an eighth before what comes next: speedscope takes
  // what begins when something of the same name ends for a part of it.
  void RoundSlice(TraceTrack track, const TraceName& name, uint64_t start_ns,
                  uint64_t end_ns) override;
  // One nanosecond shorter: where viewers add decimal fractions, it would end after the next one
  // begins.
  void AdjacentSlice(TraceTrack track, const TraceName& name, uint64_t start_ns,
                     uint64_t end_ns) override;
  void BeginArrows(uint64_t first, uint64_t count) override;
  // From inside a slice to the slice that encloses (or begins at) `to_ns`.
  void Arrow(Literal name, uint64_t number, TraceTrack from, uint64_t from_ns, TraceTrack to,
             uint64_t to_ns) override;
  void Counter(uint32_t pid, std::string_view name, std::string_view series, uint64_t time_ns,
               double value) override;
  void Instant(TraceTrack track, const TraceName& name, uint64_t time_ns) override;
  void Mark(std::string_view name, uint64_t time_ns) override;

  using TraceSink::Arg;
  void Arg(Literal key, const std::array<int32_t, 3>& values) override;
  void ArgText(Literal key, std::string_view text) override;
  void ArgText(Literal key, const TraceText& text) override;
  void ArgThousandths(Literal key, uint64_t thousandths) override;

  void NameProcess(uint32_t pid, TraceGroup group, std::string_view name,
                   uint64_t sort_index) override;
  void NameThread(TraceTrack track, TraceTrackKind kind, std::string_view name,
                  uint64_t sort_index) override;

  void Finish(std::span<const Fact> facts) override;

 private:
  void ArgSigned(Literal key, int64_t value) override;
  void ArgUnsigned(Literal key, uint64_t value) override;
  void Open(char phase, TraceTrack track);
  void PutArrowEnd(char phase, Literal name, TraceTrack track, uint64_t time_ns);
  void BeginArg(Literal key);
  void PutArgs();
  void Close();
  void PutTime(uint64_t time_ns);
  uint64_t SinceBase(uint64_t time_ns) const { return time_ns - std::min(time_ns, base_ns_); }
  void Metadata(TraceTrack track, Literal what, std::string_view name, uint64_t sort_index);

  Output& output_;
  const uint64_t base_ns_;
  JsonWriter text_;  // what the output does not have yet
  bool is_open_ = false;
  bool has_args_ = false;
  uint64_t arrows_ = 0;
};

}  // namespace xpu
