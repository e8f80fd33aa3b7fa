// Sections whose content is compressed: SHF_COMPRESSED with zlib or Zstandard, and the older
// .zdebug_ with zlib. libelf 0.188 cannot inflate Zstandard.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "symbolize/elf/elf_image.h"

namespace xpu {

enum class Compression : uint8_t { kNone, kZlib, kZstd, kUnknown };

// By its header, which a file may lie in.
Compression CompressionOf(const ElfSection& section);

// What a section may become: a header that promises more lies.
struct InflateLimits {
  uint64_t bytes = 0;
  uint64_t ratio = 0;  // times its compressed size
};

// nullopt: damaged, larger than the limits, or of a kind that is not known.
std::optional<std::string> InflateSection(const ElfSection& section, const InflateLimits& limits);

}  // namespace xpu
