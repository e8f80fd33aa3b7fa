// Events of the Trace Event Format, streamed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "report/output.h"

namespace xpu {

// Where an event is drawn. Both numbers are positive.
struct TraceTrack {
  uint64_t pid = 0;
  uint64_t tid = 0;
};

class TraceWriter {
 public:
  // Times are written as microseconds since `base_ns`, with nanosecond digits.
  TraceWriter(Output& output, uint64_t base_ns);

  // A slice with both ends. `args`: the members of a JSON object, may be empty.
  void Slice(TraceTrack track, std::string_view name, std::string_view category, uint64_t start_ns,
             uint64_t end_ns, std::string_view args);
  // A slice opened and closed; on one track in order of time, well nested.
  void Begin(TraceTrack track, std::string_view name, std::string_view category, uint64_t time_ns);
  void End(TraceTrack track, uint64_t time_ns);
  // An arrow from inside a slice to the slice that encloses (or begins at) `to_ns`.
  void Arrow(TraceTrack from, uint64_t from_ns, TraceTrack to, uint64_t to_ns);

  void NameProcess(uint64_t pid, std::string_view name, uint64_t sort_index);
  void NameThread(TraceTrack track, std::string_view name, uint64_t sort_index);

  // The rest of the document; `other_data`: the members of a JSON object.
  void Finish(std::string_view other_data);

 private:
  void Open(std::string_view phase, TraceTrack track);
  void BeginMember(std::string_view key);
  void Time(std::string_view key, uint64_t ns);
  void Text(std::string_view key, std::string_view text);
  void Metadata(TraceTrack track, std::string_view what, std::string_view name,
                uint64_t sort_index);
  void Close();

  Output& output_;
  const uint64_t base_ns_;
  std::string event_;
  bool first_ = true;
  uint64_t arrows_ = 0;
};

}  // namespace xpu
