// A capture in memory: the input of all passes. Filled by load.h from a file, or by hand in tests.
//
// It owns the events, the interned strings and the stacks, with the long lists compact
// (compact_list.h). Nothing in it is interpreted, and an id whose definition was lost stays lost:
// it never becomes another string or stack. Passes read it and keep what they compute beside it, so
// that each can be tested without a file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/reader.h"
#include "report/model/loaded_events.h"

namespace xpu {

// The interned texts and stacks that the events refer to. An id that is not known is lost.
class CaptureTables {
 public:
  virtual ~CaptureTables() = default;
  virtual std::string_view String(StringId id) const = 0;
  virtual StackNode Node(StackId id) const = 0;
  virtual bool IsLost(StackId id) const = 0;
};

// Which parts of a recording that was cut into several captures are here.
struct PartRange {
  uint32_t first = 0;  // 0: it was not cut
  uint32_t last = 0;
  uint32_t missing = 0;       // between these
  bool is_continued = false;  // there is one after the last
};

// One of several captures that are shown as one; its times and ids are those of the whole.
struct MergedCapture {
  std::string path;
  RecordingInfo info = {};
  std::optional<RecordingEnd> end = {};
  uint64_t until_ns = 0;  // when it ended or, without an end, had its last event
};

// How times of one of several hosts became times of the first one's CLOCK_MONOTONIC.
struct HostClock {
  std::string host;  // its name
  uint32_t captures = 0;
  // Its clock was ahead of the first host's, after both were aligned by the wall clock, by
  // `ahead_ns` at `at_ns`, on the first host's clock, and by `drift` more per nanosecond.
  int64_t ahead_ns = 0;
  double drift = 0;
  uint64_t at_ns = 0;
  // The difference that is left: the median of the absolute differences between the collectives
  // that this was found from. 0 collectives: it was found from the wall clock alone.
  uint64_t residual_ns = 0;
  uint64_t collectives = 0;
};

struct Model {
  std::string path;
  std::vector<MergedCapture> captures;  // none: there is one alone
  std::vector<HostClock> host_clocks;   // of these, by the start of their recordings
  PartRange parts;
  LoadedEvents events;  // after OrderByTime: each list in order of time
  std::unique_ptr<CaptureTables> tables;
  ReadProblems problems;
  uint64_t file_bytes = 0;  // what a report may cost grows with it

  // A name, a path, a message: whatever is shown. A small file may refer to a large text from many
  // places, and no compiler or program makes names of 16 KiB: there they are cut.
  std::string_view Text(StringId id) const {
    std::string_view text = tables->String(id);
    if (text.size() <= kLongestText) return text;
    text = text.substr(0, kLongestText + 1);
    while (!text.empty() && (text.back() & 0xc0) == 0x80) text.remove_suffix(1);  // of UTF-8
    if (!text.empty()) text.remove_suffix(1);
    return text;
  }
  // Whole: parts of files, and what is shown whatever its size.
  std::string_view Bytes(StringId id) const { return tables->String(id); }

  static constexpr size_t kLongestText = size_t{16} << 10;
};

// No recorder has made the capture, and of the host and the program's end nothing is known.
inline bool IsImported(const Model& model, const RecordingInfo& info) {
  return model.Text(info.settings).starts_with("--import ");
}

}  // namespace xpu
