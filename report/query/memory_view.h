// Which memory `--mode memory` shows.
#pragma once

#include <cstdint>

namespace xpu {

enum class MemoryView : uint8_t {
  kPeak,    // what was there when most was
  kGrowth,  // what came since the beginning and was there at the end; of --time, where it is given
  kLeft,    // what was there at the end
};

}  // namespace xpu
