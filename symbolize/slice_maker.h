// The symbol slice of a file, made where the file is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "format/base/result.h"
#include "symbolize/dwarf/debug_info.h"

namespace xpu {

enum class SliceDetail : uint8_t { kNames, kLines };

struct SliceOrder {
  std::string path;             // where the file can be opened now
  std::string name;             // what errors call it
  std::string build_id;         // raw; a file with another one is refused; empty: any is believed
  std::string debug_directory;  // "/usr/lib/debug": holds .build-id/ab/cdef.debug; empty: none
  SliceDetail detail = SliceDetail::kNames;
  bool wants_source_lines = false;  // with kLines: MadeSlice::source_lines
  DebugReading reading = DebugReading::kHere;
};

struct MadeSlice {
  std::string bytes;
  bool has_lines = false;
  FileLines source_lines;     // of the instructions that occur, if it has lines and they are wanted
  std::string lines_failure;  // why it has none where there are some; empty: nothing failed
};

// `file_offsets`: of the instructions that occur in stacks. kInvalid: not an ELF file; kNotFound:
// the file, or that build of it, is not there.
Result<MadeSlice> MakeSymbolSlice(const SliceOrder& order, std::span<const uint64_t> file_offsets);

}  // namespace xpu
