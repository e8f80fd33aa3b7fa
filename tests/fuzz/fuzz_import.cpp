// --import cupti-text: from the text to the capture that is written of it.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <fcntl.h>

#include "format/base/check.h"
#include "format/base/handle.h"
#include "report/import/import.h"
#include "report/import/import_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace xpu;
  // Of exactly the size, so that a read beyond its end is detected.
  const auto copy = std::make_unique<char[]>(size);
  std::memcpy(copy.get(), data, size);
  ImportedTrace trace = ParseCuptiText({copy.get(), size});
  DropInnerCalls(trace.calls);
  UniqueFd fd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  auto writer = CaptureWriter::Create(std::move(fd), "null", {.compression_level = -50});
  XPU_CHECK(writer.ok());
  XPU_CHECK(WriteImported(trace, "fuzz", *writer).ok());
  XPU_CHECK(writer->Close().ok());
  return 0;
}
