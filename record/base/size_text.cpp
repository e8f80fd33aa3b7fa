#include "record/base/size_text.h"

#include <cstddef>
#include <iterator>

#include "format/base/text.h"

namespace xpu {

std::string SizeText(uint64_t bytes) {
  constexpr const char* kSizeUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return Format("{} B", bytes);
  double size = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (size >= 1023.95 && unit + 1 < std::size(kSizeUnits)) {
    size /= 1024;
    ++unit;
  }
  return Format("{:.1f} {}", size, kSizeUnits[unit]);
}

}  // namespace xpu
