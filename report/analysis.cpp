#include "report/analysis.h"

#include <utility>

#include "report/model/order.h"
#include "report/model/run_time.h"

namespace xpu {
namespace {

Model Ordered(Model model) {
  OrderByTime(model.events);
  return model;
}

}  // namespace

Analysis::Analysis(Model loaded, SymbolOptions options, const CorrelateOptions& correlate)
    : model(Ordered(std::move(loaded))),
      lines_if_any(options.lines_if_any),
      call_trees(model.file_bytes),
      recorded_until_ns(RecordedUntilNs(model)),
      processes(model),
      clocks(model),
      api_names(model),
      gpus(model),
      graph_nodes(model.events.graph_nodes.rows()),
      correlation(Correlate(model, clocks, api_names, graph_nodes, correlate)),
      nvtx(model, correlation),
      slices(CollectSlices(model)),
      symbolizer(std::move(options.symbolizer)),
      resolver(model, processes, api_names, symbolizer, frames, options.places),
      stacks(model, resolver, frames, options.places, options.python) {
  for (const AssembledSlice& slice : slices.slices) {
    symbolizer.SetSlice(symbolizer.Module(slice.path, slice.build_id), slice.parts, slice.older);
  }
}

}  // namespace xpu
