// Names of code that programs make while they run, from what their compilers say of it: the text
// file /tmp/perf-PID.map and jitdump files, both conventions of perf.
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

// What all files of one call may cost together. Who records with -a reads files of every user.
class ReadBudget {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{512} << 20;
  static constexpr uint64_t kMaxNs = 5'000'000'000;
  // A signal that asks for the end comes twice from `timeout`, and is a second Ctrl-C later on.
  static constexpr uint64_t kPatienceNs = 1'000'000'000;

  explicit ReadBudget(uint64_t patience_ns = kPatienceNs) : patience_ns_(patience_ns) {}

  // How much of a file may be read now; 0: nothing any more.
  uint64_t Left() const;
  void Spend(uint64_t bytes) { left_ -= std::min(bytes, left_); }

 private:
  uint64_t left_ = kMaxBytes;
  uint64_t begin_ns_ = MonotonicNs();
  uint64_t patience_ns_ = 0;
};

struct GeneratedCode {
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC, from then on; 0: not known
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  std::string name;
};

// Both keep what covers one of the ascending `addresses`, so that what a program writes there costs
// no memory, and no more than kMaxGeneratedCode of it.
inline constexpr size_t kMaxGeneratedCode = size_t{1} << 20;
inline constexpr size_t kMaxGeneratedNameBytes = size_t{128} << 20;  // of a jitdump

// Lines "START SIZE name", numbers in hexadecimal; others are left out. Of several at one place the
// last one is meant.
std::vector<GeneratedCode> ParsePerfMap(std::string_view text,
                                        const std::vector<uint64_t>& addresses);

// The functions that a jitdump file (format version 1, of either byte order of 64-bit machines that
// is this one's) says were made and moved. What is damaged or cut ends the list.
std::vector<GeneratedCode> ParseJitDump(std::string_view bytes,
                                        const std::vector<uint64_t>& addresses);

// Writes at most about `max_bytes`. All files together are read for a few seconds and some hundred
// megabytes at most: the processes may be anybody's. What is cut is counted.
void WriteGeneratedSymbols(const std::vector<HitCode>& code, uint64_t max_bytes, EventSink& sink);

}  // namespace xpu
