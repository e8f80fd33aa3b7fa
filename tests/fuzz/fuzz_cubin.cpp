// GPU code that a program loads: the slice that xpu-record makes of a damaged cubin, and what
// xpu-report reads of the slice, or of any file in its place.
#include <memory>
#include <string_view>

#include "format/base/check.h"
#include "symbolize/dwarf/debug_info.h"
#include "symbolize/elf/cubin.h"
#include "symbolize/elf/elf_image.h"

namespace {

void ReadSlice(std::string_view bytes) {
  auto image = xpu::ElfImage::Parse(std::as_bytes(std::span(bytes)), "fuzz");
  if (!image.ok()) return;
  auto info = xpu::DebugInfo::Parse(bytes, "fuzz");
  if (!info.ok()) return;
  for (const xpu::ElfSymbol& symbol : image->CodeSymbols()) {
    for (uint64_t step = 0; step < 32; ++step) {
      static_cast<void>(info->At(symbol.link_address + step * 16).size());
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Of exactly the size, so that a read beyond its end is detected.
  const auto copy = std::make_unique<char[]>(size);
  std::copy_n(data, size, copy.get());
  const std::string_view bytes(copy.get(), size);
  ReadSlice(bytes);
  const auto slice =
      xpu::WriteCubinSlice(std::as_bytes(std::span(bytes)), {"_Z9fma_chainPfi", "_Z9slow_warpPfi"});
  if (!slice) return 0;
  XPU_CHECK(slice->bytes.size() <= xpu::kMaxCubinSliceBytes + (1 << 16));
  ReadSlice(slice->bytes);
  return 0;
}
