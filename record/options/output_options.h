// How much a recording writes, and into how many files, as the command line says it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/result.h"

namespace xpu {

struct OutputOptions {
  static constexpr uint64_t kLeastBytes = uint64_t{1} << 20;  // of a file
  static constexpr uint64_t kLeastBufferBytes = uint64_t{64} << 10;
  static constexpr uint32_t kLeastKept = 2;

  uint64_t rotate_bytes = 0;                   // a new part about every so many; 0: one file
  uint32_t rotate_keep = 0;                    // at most so many parts; 0: all
  uint64_t buffer_bytes = uint64_t{64} << 20;  // what may wait for a slow output
};

// "1M", "1.5G", "512K", "1048576"; K, M and G are powers of 1024. Errors are of ErrorKind::kUsage.
Result<uint64_t> ParseSize(std::string_view option, std::string_view text, uint64_t least_bytes);

}  // namespace xpu
