// .gnu_debugdata ("mini debug information"): a compressed ELF file inside a stripped one, with the
// function symbols that stripping removed. Fedora, RHEL and similar ones ship it in every file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace xpu {

// What real sections hold is 3 to 6 times their size, 1 to 2 MB; a file may hold anything.
constexpr size_t kMaxDebugDataBytes = size_t{64} << 20;
constexpr size_t kMaxDebugDataRatio = 64;
constexpr size_t kSmallDebugDataBytes = size_t{1} << 20;  // whatever the ratio

// The bytes of the inner file. Empty: damaged, or larger than these limits.
std::string DecompressDebugData(std::span<const std::byte> section);

}  // namespace xpu
