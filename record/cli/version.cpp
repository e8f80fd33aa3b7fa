#include "record/cli/version.h"

#include <string_view>

#include <bpf/libbpf.h>

#include "format/base/text.h"
#include "format/version.h"

namespace xpu {

std::string RecordVersionText() {
  std::string_view libbpf = ::libbpf_version_string();
  if (libbpf.starts_with('v')) libbpf.remove_prefix(1);
  return Format(
      "xpu-record {}\n"
      "format     {}\n"
      "CUPTI      {}\n"
      "features   stacks by unwind tables in BPF and in the program, Python 3.11 to 3.14, NVTX,\n"
      "           CUDA graphs, uprobes, kprobes, tracepoints, perf events\n"
      "libraries  libbpf {}, {}\n"
      "build      {}\n",
      XPU_VERSION, CaptureFormatVersion(), XPU_CUPTI_CHECK, libbpf, CaptureLibraries(), XPU_BUILD);
}

}  // namespace xpu
