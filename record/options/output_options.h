// How much a recording writes, and to how many files, as given on the command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/result.h"

namespace xpu {

struct OutputOptions {
  static constexpr uint64_t kLeastBytes = uint64_t{1} << 20;  // of a part
  static constexpr uint64_t kLeastBufferBytes = uint64_t{64} << 10;
  static constexpr uint32_t kLeastKept = 2;

  uint64_t rotate_bytes = 0;  // start a new part after about this size; 0: one file
  uint32_t rotate_keep = 0;   // keep at most this many parts; 0: all
  uint64_t buffer_bytes = uint64_t{64} << 20;  // that may wait for a slow output
};

// "1M", "1.5G", "512K", "1048576"; K, M and G are powers of 1024. Errors are of ErrorKind::kUsage.
Result<uint64_t> ParseSize(std::string_view option, std::string_view text, uint64_t least_bytes);

}  // namespace xpu
