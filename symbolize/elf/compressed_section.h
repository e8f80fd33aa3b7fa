// Sections whose content is compressed: SHF_COMPRESSED with zlib or Zstandard, and the older
// .zdebug_ with zlib. libelf 0.188 cannot inflate Zstandard.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "symbolize/elf/elf_image.h"

namespace xpu {

enum class Compression : uint8_t { kNone, kZlib, kZstd, kUnknown };

// The kind that the header of the section names, which need not be true.
Compression CompressionOf(const ElfSection& section);

// The largest size of a section when it is inflated: a header that promises more is damaged.
struct InflateLimits {
  uint64_t bytes = 0;
  uint64_t ratio = 0;  // times its compressed size
};

// nullopt: damaged, larger than the limits, or of a kind that is not known.
std::optional<std::string> InflateSection(const ElfSection& section, const InflateLimits& limits);

}  // namespace xpu
