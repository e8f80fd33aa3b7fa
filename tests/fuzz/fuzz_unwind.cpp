// Call frame information: whole ELF files, and, because those rarely survive a change of their
// headers, the content of .eh_frame and .debug_frame alone. Start from small shared libraries and
// from their sections (objcopy -O binary --only-section=.eh_frame).
#include <cstring>
#include <span>
#include <string>

#include "format/base/check.h"
#include "tests/unit/symbolize/cfi_builder.h"

namespace {

// Also checks that every table that is made is sound.
void Build(const std::string& file) {
  const auto built = xpu::test::BuildTable(file);
  if (!built.ok()) return;
  const xpu::UnwindTable table = built.value().view();
  const uint64_t begin = table.header->first_page << xpu::kUnwindPageShift;
  for (uint64_t at = 0; at < 0x2000; at += 16) static_cast<void>(table.Find(begin + at));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Build(bytes);
  xpu::test::CfiElf elf;
  elf.content = bytes;
  Build(elf.Build());
  elf.with_header = true;
  elf.with_sections = false;
  Build(elf.Build());
  elf.with_sections = true;
  elf.name = ".debug_frame";
  elf.with_header = false;
  Build(elf.Build());
  return 0;
}
