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
    : loaded_(Ordered(std::move(loaded))),
      model(loaded_),
      recorded_until_ns(RecordedUntilNs(model)),
      processes(model),
      job(model, processes),
      containers(model, processes),
      tracks(model, processes, job, containers),
      clocks(model),
      api_names(model),
      gpus(model),
      graph_nodes(model.events.graph_nodes.rows()),
      correlation(Correlate(model, tracks, clocks, api_names, gpus, graph_nodes, correlate)),
      nvtx(model, tracks, correlation),
      sources(model) {
  LoadedEvents& events = loaded_.events;
  events.cpu_samples.FindTracks<&CpuSample::pid, &CpuSample::tid, &CpuSample::time_ns>(tracks);
  events.probe_hits.FindTracks(tracks);
  events.off_cpu_waits.FindTracks(tracks);
  events.off_cpu_sums.FindTracks(tracks);
  events.allocator_events.FindTracks(tracks);
}

}  // namespace xpu
