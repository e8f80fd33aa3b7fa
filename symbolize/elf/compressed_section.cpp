#include "symbolize/elf/compressed_section.h"

#include <utility>

#include <elf.h>
#include <zlib.h>
#include <zstd.h>

#include "symbolize/elf/elf_bytes.h"

namespace xpu {
namespace {

constexpr uint32_t kCompressZstd = 2;  // ELFCOMPRESS_ZSTD, which glibc 2.36 does not know

struct Compressed {
  Compression compression = Compression::kNone;
  uint64_t size_bytes = 0;  // inflated
  std::span<const std::byte> content;
};

Compressed HeaderOf(const ElfSection& section) {
  constexpr std::string_view kOldMagic = "ZLIB";  // then the size, big-endian
  constexpr size_t kOldHeaderBytes = 12;
  if (!section.is_compressed) {
    uint64_t size_bytes = 0;
    const std::span<const char> text = AsChars(section.bytes);
    if (!std::string_view(text.data(), text.size()).starts_with(kOldMagic) ||
        !ReadAt(section.bytes, kOldMagic.size(), size_bytes)) {
      return {};
    }
    return {Compression::kZlib, __builtin_bswap64(size_bytes),
            section.bytes.subspan(kOldHeaderBytes)};
  }
  Elf64_Chdr header;
  if (!ReadAt(section.bytes, 0, header)) return {Compression::kUnknown, 0, {}};
  const auto kind = header.ch_type == ELFCOMPRESS_ZLIB ? Compression::kZlib
                    : header.ch_type == kCompressZstd  ? Compression::kZstd
                                                       : Compression::kUnknown;
  return {kind, header.ch_size, section.bytes.subspan(sizeof(header))};
}

}  // namespace

Compression CompressionOf(const ElfSection& section) { return HeaderOf(section).compression; }

std::optional<std::string> InflateSection(const ElfSection& section, const InflateLimits& limits) {
  const auto [compression, size_bytes, content] = HeaderOf(section);
  if (size_bytes > limits.bytes || size_bytes / limits.ratio > content.size()) return std::nullopt;
  std::string inflated(size_bytes, '\0');
  uint64_t made = ~uint64_t{0};
  if (compression == Compression::kZstd) {
    made = ZSTD_decompress(inflated.data(), size_bytes, content.data(), content.size());
  } else if (compression == Compression::kZlib) {
    uLongf room = size_bytes;
    const int result = ::uncompress(reinterpret_cast<Bytef*>(inflated.data()), &room,
                                    reinterpret_cast<const Bytef*>(content.data()), content.size());
    if (result == Z_OK) made = room;
  }
  return made == size_bytes ? std::optional(std::move(inflated)) : std::nullopt;
}

}  // namespace xpu
