#include "report/trace/trace.h"

#include <utility>

#include "report/model/loaded_events.h"
#include "report/model/recorded_time.h"
#include "report/trace/correlate.h"

namespace xpu {
namespace {

Model Ordered(Model model) {
  OrderByTime(model.events);
  return model;
}

}  // namespace

Trace::Trace(Model loaded, const CorrelateOptions& correlate)
    : model(Ordered(std::move(loaded))),
      recorded_until_ns(RecordedUntilNs(model)),
      processes(model),
      job(model, processes),
      containers(model, processes),
      clocks(model),
      api_names(model),
      gpus(model),
      graph_nodes(model.events.graph_nodes.rows()),
      correlation(Correlate(model, clocks, api_names, graph_nodes, correlate)),
      nvtx(model, correlation),
      sources(model) {}

}  // namespace xpu
