// The symbols of whole ELF files, the content of .gnu_debugdata, and slices. Start from small
// shared libraries and from slices. A slice must be an ELF file that gives each hit the name that
// the file gives it.
#include <span>
#include <string>
#include <vector>

#include "format/base/check.h"
#include "symbolize/elf/debug_data.h"
#include "symbolize/elf/symbol_slice.h"
#include "symbolize/file_symbols.h"

namespace {

using xpu::ElfImage;
using xpu::ElfSymbol;
using xpu::FileSymbols;

std::vector<uint64_t> Hits(const ElfImage& image, const FileSymbols& symbols) {
  std::vector<uint64_t> hits;
  for (const ElfSymbol& symbol : symbols.table().symbols()) {
    if (hits.size() == 1000) break;
    hits.push_back(symbol.link_address + symbol.size_bytes * (hits.size() % 3) / 2);
  }
  for (const uint64_t offset : {0, 0x1000, 0x1234}) {
    if (const auto address = image.LinkAddressOf(offset)) hits.push_back(*address);
  }
  return hits;
}

void MakeSlice(const ElfImage& image) {
  const FileSymbols symbols(image);
  const std::vector<uint64_t> hits = Hits(image, symbols);
  const std::string bytes = WriteSymbolSlice(image, symbols.table(), hits);
  const auto slice = ElfImage::Parse(std::as_bytes(std::span(bytes)), "slice");
  XPU_CHECK(slice.ok());
  XPU_CHECK(slice.value().build_id() == image.build_id());
  if (image.segments().size() > 256) return;  // more than a slice keeps
  const FileSymbols again(slice.value());
  for (const uint64_t hit : hits) {
    const ElfSymbol* expected = symbols.table().Find(hit);
    const ElfSymbol* found = again.table().Find(hit);
    if (expected == nullptr) continue;
    XPU_CHECK(found != nullptr && found->link_address == expected->link_address &&
              found->name == expected->name);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  static_cast<void>(xpu::DecompressDebugData(bytes));
  const auto image = ElfImage::Parse(bytes, "input");
  if (image.ok()) MakeSlice(image.value());
  return 0;
}
