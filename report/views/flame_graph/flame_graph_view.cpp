#include "format/base/check.h"
#include "report/views/flame_graph/flame_graph_data.h"
#include "report/views/flame_graph/flame_graph_page.h"
#include "report/views/no_stacks.h"
#include "report/views/view.h"
#include "report/views/views.h"

namespace xpu {

void WriteFlameGraph(Analysis& analysis, const FlameGraphOptions& options, Output& output,
                     std::string& notes) {
  const CallTree tree = BuildCallTree(analysis, options.merge);
  notes += LeftOutText(analysis, options.merge);
  if (tree.nodes().empty()) notes += WhyNoStacks(analysis, options.merge.mode);
  const size_t data = kFlameGraphPage.find(kFlameGraphData);
  XPU_CHECK(data != std::string_view::npos);
  output.Write(kFlameGraphPage.substr(0, data));
  WriteFlameGraphData(analysis, tree, options, output);
  output.Write(kFlameGraphPage.substr(data + kFlameGraphData.size()));
}

View FlameGraphView() {
  return {
      .option = "--flamegraph",
      .help = "one HTML file (-o FILE.html) with zoom and search",
      .takes_sample = true,
      .shows_paths = true,
      .is_for_reading = false,
      .file_name_end = ".html",
      .write =
          [](const ViewInput& input) {
            WriteFlameGraph(input.analysis, input.options.flame_graph, input.output, input.notes);
          },
  };
}

}  // namespace xpu
