// --chrome-trace: events of the Trace Event Format, streamed.
#include <algorithm>
#include <array>

#include "format/base/json_text.h"
#include "report/base/json_writer.h"
#include "report/views/timeline/timeline.h"
#include "report/views/timeline/trace_sink.h"
#include "report/views/view.h"

namespace xpu {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;

}  // namespace

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
  void NestedSlice(TraceTrack track, const TraceName& name, uint64_t start_ns,
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

TraceWriter::TraceWriter(Output& output, uint64_t base_ns) : output_(output), base_ns_(base_ns) {
  text_.Put("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

TraceName TraceWriter::Name(std::string_view name, std::string_view category) {
  TraceName members;
  members.text_ = ",\"name\":";
  AppendJsonString(members.text_, name);
  members.text_ += ",\"cat\":";
  AppendJsonString(members.text_, category);
  return members;
}

TraceText TraceWriter::Text(std::string_view text) {
  TraceText quoted;
  AppendJsonString(quoted.text_, text);
  return quoted;
}

// The event before is closed when the next one begins, so that arguments can follow it.
void TraceWriter::Close() {
  if (has_args_) text_.Put('}');
  if (is_open_) text_.Put('}');
  is_open_ = false;
  has_args_ = false;
}

void TraceWriter::Open(char phase, TraceTrack track) {
  if (is_open_) {
    Close();
    text_.Put(',');
  }
  if (text_.size() >= kBufferBytes) {
    output_.Write(text_);
    text_.Clear();
  }
  text_.Put("\n{\"ph\":\"");
  text_.Put(phase);
  text_.Put("\",\"pid\":");
  text_.PutNumber(track.pid);
  text_.Put(",\"tid\":");
  text_.PutNumber(track.tid);
  is_open_ = true;
}

void TraceWriter::BeginArg(Literal key) {
  PutArgs();
  text_.Put('"');
  text_.Put(key);
  text_.Put("\":");
}

void TraceWriter::PutArgs() {
  if (has_args_) {
    text_.Put(',');
  } else {
    text_.Put(",\"args\":{");
  }
  has_args_ = true;
}

void TraceWriter::PutTime(uint64_t time_ns) {
  text_.Put(",\"ts\":");
  text_.PutThousandths(SinceBase(time_ns));
}

void TraceWriter::Slice(TraceTrack track, const TraceName& name, uint64_t start_ns,
                        uint64_t end_ns) {
  Open('X', track);
  text_.Append(name.text_);
  PutTime(start_ns);
  text_.Put(",\"dur\":");
  text_.PutThousandths(end_ns - std::min(end_ns, start_ns));
  ++slices_;
}

void TraceWriter::NestedSlice(TraceTrack track, const TraceName& name, uint64_t start_ns,
                              uint64_t end_ns) {
  constexpr uint64_t kEighth = 125;
  const uint64_t start = SinceBase(start_ns) / kEighth;
  const uint64_t end = std::max(start + 1, SinceBase(end_ns) / kEighth);
  Slice(track, name, base_ns_ + start * kEighth, base_ns_ + (end - 1) * kEighth);
}

void TraceWriter::AdjacentSlice(TraceTrack track, const TraceName& name, uint64_t start_ns,
                                uint64_t end_ns) {
  Slice(track, name, start_ns, end_ns - (end_ns > start_ns ? 1 : 0));
}

void TraceWriter::Sample(const TraceSample& /*sample*/, const CallTree& /*tree*/) {}

void TraceWriter::Stack(PathId /*path*/, const CallTree& /*tree*/) {}

void TraceWriter::BeginArrows(uint64_t /*first*/, uint64_t /*count*/) {}

void TraceWriter::PutArrowEnd(char phase, Literal name, TraceTrack track, uint64_t time_ns) {
  Open(phase, track);
  text_.Put(",\"name\":\"");
  text_.Put(name);
  text_.Put("\",\"cat\":\"");
  text_.Put(name);
  text_.Put(phase == 'f' ? Literal("\",\"bp\":\"e\",\"id\":") : Literal("\",\"id\":"));
  text_.PutNumber(arrows_);
  PutTime(time_ns);
}

void TraceWriter::Arrow(Literal name, uint64_t /*number*/, TraceTrack from, uint64_t from_ns,
                        TraceTrack to, uint64_t to_ns) {
  ++arrows_;
  PutArrowEnd('s', name, from, from_ns);
  PutArrowEnd('f', name, to, to_ns);
}

void TraceWriter::Counter(uint32_t pid, std::string_view name, std::string_view series,
                          uint64_t time_ns, double value) {
  Open('C', {pid, 0});
  text_.Put(",\"name\":");
  text_.PutString(name);
  PutTime(time_ns);
  PutArgs();
  text_.PutString(series);
  text_.Put(':');
  text_.PutFormat("{:.3f}", value);
}

void TraceWriter::Instant(TraceTrack track, const TraceName& name, uint64_t time_ns) {
  Open('i', track);
  text_.Append(name.text_);
  text_.Put(",\"s\":\"t\"");
  PutTime(time_ns);
  ++slices_;
}

void TraceWriter::Mark(std::string_view name, uint64_t time_ns) {
  Open('i', {});
  text_.Put(",\"name\":");
  text_.PutString(name);
  text_.Put(",\"s\":\"g\"");
  PutTime(time_ns);
}

void TraceWriter::Arg(Literal key, const std::array<int32_t, 3>& values) {
  BeginArg(key);
  text_.Put('[');
  text_.PutNumber(values[0]);
  text_.Put(',');
  text_.PutNumber(values[1]);
  text_.Put(',');
  text_.PutNumber(values[2]);
  text_.Put(']');
}

void TraceWriter::ArgText(Literal key, std::string_view text) {
  BeginArg(key);
  text_.PutString(text);
}

void TraceWriter::ArgText(Literal key, const TraceText& text) {
  BeginArg(key);
  text_.Append(text.text_);
}

void TraceWriter::ArgSigned(Literal key, int64_t value) {
  BeginArg(key);
  text_.PutNumber(value);
}

void TraceWriter::ArgUnsigned(Literal key, uint64_t value) {
  BeginArg(key);
  text_.PutNumber(value);
}

void TraceWriter::ArgThousandths(Literal key, uint64_t thousandths) {
  BeginArg(key);
  text_.PutThousandths(thousandths);
}

void TraceWriter::Metadata(TraceTrack track, Literal what, std::string_view name,
                           uint64_t sort_index) {
  Open('M', track);
  text_.Put(",\"name\":\"");
  text_.Put(what);
  text_.Put("_name\"");
  ArgText("name", name);
  Open('M', track);
  text_.Put(",\"name\":\"");
  text_.Put(what);
  text_.Put("_sort_index\"");
  Arg("sort_index", sort_index);
}

void TraceWriter::NameProcess(uint32_t pid, TraceGroup /*group*/, std::string_view name,
                              uint64_t sort_index) {
  Metadata({pid, 0}, "process", name, sort_index);
}

void TraceWriter::NameThread(TraceTrack track, TraceTrackKind /*kind*/, std::string_view name,
                             uint64_t sort_index) {
  Metadata(track, "thread", name, sort_index);
}

void TraceWriter::Finish(std::span<const Fact> facts) {
  Close();
  text_.Put("\n],\"otherData\":{");
  for (size_t i = 0; i < facts.size(); ++i) {
    if (i != 0) text_.Put(',');
    text_.PutString(facts[i].first);
    text_.Put(':');
    text_.PutString(facts[i].second);
  }
  text_.Put("}}\n");
  output_.Write(text_);
  text_.Clear();
}

void WriteChromeTrace(Analysis& analysis, const ViewOptions& options, Output& output,
                      std::string& notes) {
  const uint64_t base_ns = FirstTimeOf(analysis);
  TraceWriter writer(output, base_ns);
  WriteTimeline(analysis, options, base_ns, writer, output, notes);
}

View ChromeTraceView() {
  return {
      .option = "--chrome-trace",
      .help = "JSON for chrome://tracing, Perfetto and speedscope",
      .takes_sample = true,
      .shows_slices = true,
      .is_for_reading = false,
      .shows_lines = true,
      .file_name_end = ".json",
      .events = View::Events::kOneClockAndMoments,
      .write =
          [](const ViewInput& input) {
            WriteChromeTrace(input.analysis, input.options, input.output, input.notes);
          },
  };
}

}  // namespace xpu
