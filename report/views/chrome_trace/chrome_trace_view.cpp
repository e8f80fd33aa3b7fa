#include "report/views/chrome_trace/trace_writer.h"
#include "report/views/timeline/timeline.h"
#include "report/views/view.h"

namespace xpu {

void WriteChromeTrace(Analysis& analysis, const TraceOptions& options, Output& output,
                      std::string& notes) {
  const uint64_t base_ns = FirstTimeOf(analysis);
  TraceWriter writer(output, base_ns);
  WriteTimeline(analysis, options, base_ns, writer, output, notes);
}

View ChromeTraceView() {
  return {
      .option = "--chrome-trace",
      .help = "JSON for chrome://tracing, Perfetto and speedscope",
      .takes_sample = true,
      .shows_slices = true,
      .is_for_reading = false,
      .shows_lines = true,
      .file_name_end = ".json",
      .events = View::Events::kOneClockAndMoments,
      .write =
          [](const ViewInput& input) {
            WriteChromeTrace(input.analysis, input.options.trace, input.output, input.notes);
          },
  };
}

}  // namespace xpu
