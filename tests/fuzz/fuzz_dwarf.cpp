// Debug information of damaged files: every address that the file can name, what a slice is made
// of, and the same file as the one that dwz shares. Start from small programs and their objcopy
// --only-keep-debug files, some compiled with -gsplit-dwarf.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/mman.h>

#include "format/base/check.h"
#include "format/base/file.h"
#include "format/base/handle.h"
#include "format/base/text.h"
#include "symbolize/dwarf/debug_info.h"
#include "symbolize/dwarf/debug_writer.h"
#include "symbolize/elf/elf_image.h"

namespace {

std::vector<uint64_t> SomeAddresses(const xpu::ElfImage& image) {
  std::vector<uint64_t> addresses = {0, 1, UINT64_MAX};
  for (const xpu::ElfSegment& segment : image.segments()) {
    if (!segment.executable || addresses.size() > 256) continue;
    for (uint64_t step = 0; step < 64; ++step) {
      addresses.push_back(segment.link_address + segment.memory_bytes / 64 * step + step % 3);
    }
  }
  return addresses;
}

void Ask(xpu::DebugInfo& info, const std::vector<uint64_t>& addresses) {
  for (const uint64_t address : addresses) static_cast<void>(info.At(address).size());
  static_cast<void>(xpu::WriteDebugSections(info.FunctionsAt(addresses)));
}

void ReadAsFile(std::string_view bytes, const std::vector<uint64_t>& addresses) {
  const xpu::UniqueFd fd(::memfd_create("dwarf", MFD_CLOEXEC));
  XPU_CHECK(fd && xpu::WriteAll(fd.get(), bytes, "memfd").ok());
  const std::string path = xpu::Format("/proc/self/fd/{}", fd.get());
  auto info = xpu::DebugInfo::Open(path, {.alternate_path = path});
  if (info.ok()) Ask(info.value(), addresses);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Of exactly the size, so that a read beyond its end is detected.
  const auto copy = std::make_unique<char[]>(size);
  std::copy_n(data, size, copy.get());
  const std::string_view bytes(copy.get(), size);
  const auto image = xpu::ElfImage::Parse(
      {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, "fuzz");
  if (!image.ok()) return 0;
  const std::vector<uint64_t> addresses = SomeAddresses(image.value());
  auto info = xpu::DebugInfo::Parse(bytes, "fuzz");
  if (info.ok()) Ask(info.value(), addresses);
  ReadAsFile(bytes, addresses);
  return 0;
}
