#include "report/export/pprof/pprof.h"
#include "report/views/view.h"

namespace xpu {

View PprofView() {
  return {
      .option = "--pprof",
      .help = "a profile for go tool pprof",
      .is_for_reading = false,
      .file_name_end = ".pb",
      .write =
          [](const ViewInput& input) {
            WritePprof(input.analysis, {input.options.kernel_names, input.options.graph_stacks},
                       input.output);
          },
  };
}

}  // namespace xpu
