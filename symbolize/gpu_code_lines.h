// The source lines that the functions of a slice of GPU code are made from (elf/cubin.h), where the
// slice is made: what the recorder asks to know which source files it stores.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/result.h"
#include "symbolize/dwarf/debug_info.h"

namespace xpu {

// A slice may hold any code, so this many instructions and lines of it are looked at.
inline constexpr size_t kMostGpuInstructions = 65536;
inline constexpr size_t kMostGpuLines = 65536;

// `slice`: an ELF file; `name`: what errors call it. Empty: it has no lines. An error: it is
// damaged, or the process that reads its lines failed.
Result<FileLines> LinesOfGpuCode(std::string_view slice, const std::string& name,
                                 DebugReading reading);

}  // namespace xpu
