#include "report/trace_writer.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "format/base/text.h"
#include "report/text.h"

namespace xpu {
namespace {

// A trace has tens of millions of numbers; a format string for each was half of its time.
void AppendNumber(std::string& out, uint64_t number) {
  char digits[20];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), number);
  out.append(digits, end);
}

}  // namespace

TraceWriter::TraceWriter(Output& output, uint64_t base_ns) : output_(output), base_ns_(base_ns) {
  output_.Write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

void TraceWriter::Open(std::string_view phase, TraceTrack track) {
  event_.assign(first_ ? "\n" : ",\n");
  first_ = false;
  event_ += "{\"ph\":\"";
  event_ += phase;
  event_ += "\",\"pid\":";
  AppendNumber(event_, track.pid);
  event_ += ",\"tid\":";
  AppendNumber(event_, track.tid);
}

void TraceWriter::BeginMember(std::string_view key) {
  event_ += ",\"";
  event_ += key;
  event_ += "\":";
}

void TraceWriter::Time(std::string_view key, uint64_t ns) {
  BeginMember(key);
  AppendNumber(event_, ns / 1000);
  event_ += '.';
  event_ += static_cast<char>('0' + ns / 100 % 10);
  event_ += static_cast<char>('0' + ns / 10 % 10);
  event_ += static_cast<char>('0' + ns % 10);
}

void TraceWriter::Text(std::string_view key, std::string_view text) {
  BeginMember(key);
  AppendJsonString(event_, text);
}

void TraceWriter::Close() {
  event_ += '}';
  output_.Write(event_);
}

void TraceWriter::Slice(TraceTrack track, std::string_view name, std::string_view category,
                        uint64_t start_ns, uint64_t end_ns, std::string_view args) {
  Open("X", track);
  Text("name", name);
  Text("cat", category);
  Time("ts", start_ns - std::min(start_ns, base_ns_));
  Time("dur", end_ns - std::min(end_ns, start_ns));
  if (!args.empty()) AppendFormat(event_, ",\"args\":{{{}}}", args);
  Close();
}

void TraceWriter::Begin(TraceTrack track, std::string_view name, std::string_view category,
                        uint64_t time_ns) {
  Open("B", track);
  Text("name", name);
  Text("cat", category);
  Time("ts", time_ns - std::min(time_ns, base_ns_));
  Close();
}

void TraceWriter::End(TraceTrack track, uint64_t time_ns) {
  Open("E", track);
  Time("ts", time_ns - std::min(time_ns, base_ns_));
  Close();
}

void TraceWriter::Arrow(TraceTrack from, uint64_t from_ns, TraceTrack to, uint64_t to_ns) {
  ++arrows_;
  const auto end_of_arrow = [&](std::string_view phase, TraceTrack track, uint64_t time_ns,
                                std::string_view binding) {
    Open(phase, track);
    AppendFormat(event_, ",\"id\":{},\"name\":\"launch\",\"cat\":\"launch\"{}", arrows_, binding);
    Time("ts", time_ns - std::min(time_ns, base_ns_));
    Close();
  };
  end_of_arrow("s", from, from_ns, "");
  end_of_arrow("f", to, to_ns, ",\"bp\":\"e\"");
}

void TraceWriter::Metadata(TraceTrack track, std::string_view what, std::string_view name,
                           uint64_t sort_index) {
  Open("M", track);
  AppendFormat(event_, ",\"name\":\"{}_name\",\"args\":{{\"name\":", what);
  AppendJsonString(event_, name);
  event_ += '}';
  Close();
  Open("M", track);
  AppendFormat(event_, ",\"name\":\"{}_sort_index\",\"args\":{{\"sort_index\":{}}}", what,
               sort_index);
  Close();
}

void TraceWriter::NameProcess(uint64_t pid, std::string_view name, uint64_t sort_index) {
  Metadata({pid, 0}, "process", name, sort_index);
}

void TraceWriter::NameThread(TraceTrack track, std::string_view name, uint64_t sort_index) {
  Metadata(track, "thread", name, sort_index);
}

void TraceWriter::Finish(std::string_view other_data) {
  output_.Write("\n],\"otherData\":{");
  output_.Write(other_data);
  output_.Write("}}\n");
}

}  // namespace xpu
