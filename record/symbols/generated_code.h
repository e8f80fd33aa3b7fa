// Names of code that programs generate at run time, as their compilers describe it: in the text
// file /tmp/perf-PID.map and in jitdump files, both conventions of perf.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/base/clock.h"
#include "record/sink/event_sink.h"
#include "record/symbols/hit_files.h"

namespace xpu {

// The cost limit for all files of one call: with -a the recorder reads files of every user.
class ReadBudget {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{512} << 20;
  static constexpr uint64_t kMaxNs = 5'000'000'000;
  // `timeout` may send a signal that requests the end twice; a second Ctrl-C comes later than this.
  static constexpr uint64_t kPatienceNs = 1'000'000'000;

  explicit ReadBudget(uint64_t patience_ns = kPatienceNs) : patience_ns_(patience_ns) {}

  // How many bytes may be read now; 0 if the budget is exhausted.
  uint64_t Left() const;
  void Spend(uint64_t bytes) { left_ -= std::min(bytes, left_); }

 private:
  uint64_t left_ = kMaxBytes;
  uint64_t begin_ns_ = MonotonicNs();
  uint64_t patience_ns_ = 0;
};

struct GeneratedCode {
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC, valid from then on; 0: unknown
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  std::string name;
};

// Both parsers keep only entries that cover one of the ascending `addresses`, so that the rest of
// the file costs no memory, and at most kMaxGeneratedCode of them.
inline constexpr size_t kMaxGeneratedCode = size_t{1} << 20;
inline constexpr size_t kMaxGeneratedNameBytes = size_t{128} << 20;  // in a jitdump

// Parses lines "START SIZE name" with hexadecimal numbers and skips others. Of several entries for
// one address the last one applies.
std::vector<GeneratedCode> ParsePerfMap(std::string_view text,
                                        const std::vector<uint64_t>& addresses);

// Parses functions that were created and moved in a jitdump file (version 1, 64-bit, in this
// machine's byte order). Stops at damaged or missing data.
std::vector<GeneratedCode> ParseJitDump(std::string_view bytes,
                                        const std::vector<uint64_t>& addresses);

// Writes about `max_bytes` at most. Reads files for a few seconds and some hundred megabytes at
// most, because the processes may belong to any user. Counts what is cut off.
void WriteGeneratedSymbols(const std::vector<HitCode>& code, uint64_t max_bytes, EventSink& sink);

}  // namespace xpu
