#include "symbolize/gpu_code_lines.h"

#include <algorithm>
#include <span>
#include <vector>

#include "format/base/text.h"
#include "symbolize/elf/cubin.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {
namespace {

// Of all GPUs whose program counters CUPTI samples: Volta and newer.
constexpr uint64_t kInstructionBytes = 16;

std::vector<uint64_t> InstructionsOf(const ElfImage& image) {
  std::vector<uint64_t> addresses;
  for (const ElfSymbol& symbol : image.CodeSymbols()) {
    if (!symbol.is_function) continue;
    for (uint64_t at = 0; at < symbol.size_bytes; at += kInstructionBytes) {
      if (addresses.size() >= kMostGpuInstructions) return addresses;
      addresses.push_back(symbol.link_address + at);
    }
  }
  return addresses;
}

}  // namespace

Result<FileLines> LinesOfGpuCode(std::string_view slice, const std::string& name,
                                 DebugReading reading) {
  XPU_ASSIGN_OR_RETURN(const ElfImage image,
                       ElfImage::Parse(std::as_bytes(std::span(slice)), name));
  if (image.machine() != kCubinMachine || !image.SectionWithoutBytes(".debug_line").exists) {
    return FileLines();
  }
  XPU_ASSIGN_OR_RETURN(DebugInfo info, DebugInfo::Parse(slice, name, reading));
  FileLines lines = info.LinesAt(InstructionsOf(image), kMostGpuLines);
  if (!info.failure().empty()) return Error{ErrorKind::kInvalid, info.failure(), {}};
  return lines;
}

}  // namespace xpu
