// Names of functions and kernels, which come from files and programs: taken apart, shortened, and
// made fit for a terminal.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "format/base/check.h"
#include "format/base/terminal_text.h"
#include "report/analysis/kernel_name.h"
#include "symbolize/demangle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace xpu;
  // Of exactly the size, so that a read beyond its end is detected.
  const auto copy = std::make_unique<char[]>(size);
  std::memcpy(copy.get(), data, size);
  const std::string_view name(copy.get(), size);
  const std::string demangled = Demangle(name);
  for (const std::string_view text : {name, std::string_view(demangled)}) {
    static_cast<void>(ShortKernelName(text));
    for (const size_t width : {0, 1, 20, 80}) CompactKernelName(text, width);
    const std::string shown = ForTerminal(text);
    XPU_CHECK(shown.find('\x1b') == std::string::npos && ForTerminal(shown) == shown);
  }
  return 0;
}
