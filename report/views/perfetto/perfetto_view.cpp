#include "report/views/perfetto/perfetto_writer.h"
#include "report/views/timeline/timeline.h"
#include "report/views/view.h"

namespace xpu {

void WritePerfetto(Analysis& analysis, const TraceOptions& options, Output& output,
                   std::string& notes) {
  const uint64_t base_ns = FirstTimeOf(analysis);
  PerfettoWriter writer(analysis, base_ns, output);
  WriteTimeline(analysis, options, base_ns, writer, output, notes);
}

View PerfettoView() {
  return {
      .option = "--perfetto",
      .help = "a trace for Perfetto, with CPU stacks; -o FILE.pftrace",
      .takes_sample = true,
      .shows_slices = true,
      .is_for_reading = false,
      .shows_lines = true,
      .file_name_end = ".pftrace",
      .events = View::Events::kOneClockAndMoments,
      .write =
          [](const ViewInput& input) {
            WritePerfetto(input.analysis, input.options.trace, input.output, input.notes);
          },
  };
}

}  // namespace xpu
