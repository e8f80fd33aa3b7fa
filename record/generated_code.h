// Names of code that programs make while they run, from what their compilers say of it: the text
// file /tmp/perf-PID.map and jitdump files, both conventions of perf.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record/event_sink.h"
#include "record/hit_files.h"

namespace xpu {

struct GeneratedCode {
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC, from then on; 0: not known
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  std::string name;
};

// Lines "START SIZE name", numbers in hexadecimal; others are left out. Of several at one place the
// last one is meant.
std::vector<GeneratedCode> ParsePerfMap(std::string_view text);

// The functions that a jitdump file (format version 1, of either byte order of 64-bit machines that
// is this one's) says were made and moved. What is damaged or cut ends the list.
std::vector<GeneratedCode> ParseJitDump(std::string_view bytes);

// Those of `code` that cover one of the ascending `addresses`.
std::vector<GeneratedCode> Covering(std::vector<GeneratedCode> code,
                                    const std::vector<uint64_t>& addresses);

void WriteGeneratedSymbols(const std::vector<HitCode>& code, EventSink& sink);

}  // namespace xpu
