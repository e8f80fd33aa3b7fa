// Captures made by hand: right checksums around whatever a test wants to be inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/block.h"

namespace xpu::test {

inline constexpr uint64_t kCaptureId = 0x0123456789abcdef;

// The header with its checksum (the last 8 bytes) made right again.
std::string WithFileHeaderChecksum(std::string header);

// A block with these numbers and a right header checksum, whatever the limits.
std::string RawBlock(const BlockHeader& header, std::string_view payload);

// A block that is right around `message`.
std::string BlockOf(std::span<const std::byte> message, uint64_t sequence, uint32_t events);

// A file header and these blocks.
std::vector<std::byte> FileOf(const std::vector<std::string>& blocks);

std::string Zstd(std::string_view bytes);
uint64_t Xxh3(std::string_view bytes);

}  // namespace xpu::test
