#include "report/analysis/analysis.h"

#include <utility>

namespace xpu {

Analysis::Analysis(Model loaded, SymbolOptions options, const CorrelateOptions& correlate)
    : trace_(std::make_shared<NamedTrace>(std::move(loaded), std::move(options), correlate)),
      model(trace_->model),
      recorded_until_ns(trace_->recorded_until_ns),
      processes(trace_->processes),
      job(trace_->job),
      containers(trace_->containers),
      tracks(trace_->tracks),
      clocks(trace_->clocks),
      api_names(trace_->api_names),
      gpus(trace_->gpus),
      graph_nodes(trace_->graph_nodes),
      correlation(trace_->correlation),
      nvtx(trace_->nvtx),
      sources(trace_->sources),
      lines_if_any(trace_->lines_if_any),
      slices(trace_->slices),
      symbolizer(trace_->symbolizer),
      frames(trace_->frames),
      resolver(trace_->resolver),
      stacks(trace_->stacks),
      memo(trace_->memo),
      call_trees(model.file_bytes) {}

bool Analysis::ShowsNothing() const {
  return CpuSamples().empty() && ProbeHits().empty() && Launches().empty() && Work().empty() &&
         MemoryOperations().empty() && AllocatorEvents().empty() && Ranges().empty() &&
         OffCpuWaits().empty() && OffCpuSums().empty();
}

}  // namespace xpu
