#include "report/cli/version.h"

#include <zlib.h>

#include "format/base/text.h"
#include "format/version.h"

namespace xpu {

std::string ReportVersionText() {
  return Format(
      "xpu-report {}\n"
      "format     {}\n"
      "features   DWARF 2 to 5, inlined functions, names of C++, Rust and Go, Python, NVTX,\n"
      "           debuginfod, import of cupti-text\n"
      "libraries  {}, zlib {}\n"
      "build      {}\n",
      XPU_VERSION, CaptureFormatVersion(), CaptureLibraries(), ::zlibVersion(), XPU_BUILD);
}

}  // namespace xpu
