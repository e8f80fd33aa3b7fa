#include "report/cli/report_options.h"

#include <algorithm>
#include <array>

#include "format/base/check.h"

namespace xpu {

View SummaryView();
View FoldedView();
View FlameGraphView();
View PerfettoView();
View ChromeTraceView();
View TopView();
View DiffView();
View ScriptView();
View DumpView();
View ExportView();
View PprofView();
View AnnotateView();

std::span<const View> Views() {
  static const std::array views = {SummaryView(),  FoldedView(),      FlameGraphView(),
                                   PerfettoView(), ChromeTraceView(), TopView(),
                                   DiffView(),     ScriptView(),      DumpView(),
                                   ExportView(),   PprofView(),       AnnotateView()};
  return views;
}

const View& FindView(std::string_view option) {
  const auto found = std::find_if(Views().begin(), Views().end(),
                                  [&](const View& view) { return view.option == option; });
  XPU_CHECK(found != Views().end());
  return *found;
}

}  // namespace xpu
