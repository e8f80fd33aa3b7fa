// The input of a view: a trace, the names of its stacks, and which part of it is shown.
//
// Copies share the trace and the names, which are costly, and differ only in what they show. Views
// go through its lists of selected events instead of the model's, so that no view implements
// filters.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "report/analysis/call_tree.h"
#include "report/analysis/sampled_events.h"
#include "report/base/event_set.h"
#include "report/stacks/stack_names.h"
#include "report/trace/selection.h"
#include "report/trace/trace.h"

namespace xpu {

// Answers about a whole trace, each found when it is asked for first. Not for several threads.
class Memo {
 public:
  // Calls find() if no answer of this type and key is there. The answer must not depend on what is
  // shown.
  template <typename Answer, typename Find>
  const Answer& Get(const std::string& key, Find&& find) {
    std::shared_ptr<const void>& answer = answers_[{std::type_index(typeid(Answer)), key}];
    if (!answer) answer = std::make_shared<const Answer>(find());
    return *static_cast<const Answer*>(answer.get());
  }

 private:
  std::map<std::pair<std::type_index, std::string>, std::shared_ptr<const void>> answers_;
};

// A trace, the names of its stacks, and what was found out about it.
struct NamedTrace : Trace, StackNames {
  NamedTrace(Model loaded, SymbolOptions options, const CorrelateOptions& correlate)
      : Trace(std::move(loaded), correlate),
        StackNames(static_cast<const Trace&>(*this), std::move(options)) {}

  Memo memo;
};

// Copies share the trace and the names, and may show other parts of it.
class Analysis {
  std::shared_ptr<NamedTrace> trace_;  // what the references are to

 public:
  // Shows all.
  explicit Analysis(Model loaded, SymbolOptions options = {},
                    const CorrelateOptions& correlate = {});

  const Trace& trace() const { return *trace_; }

  // The members of Trace, which nothing changes.
  const Model& model;
  const uint64_t recorded_until_ns;
  const ProcessHistory& processes;
  const Job& job;
  const Containers& containers;
  const Tracks& tracks;
  const Clocks& clocks;
  const ApiNames& api_names;
  const GpuDevices& gpus;
  const GraphNodes& graph_nodes;
  const Correlation& correlation;
  const NvtxRanges& nvtx;
  const SourceParts& sources;
  // The members of StackNames, which grows as names are asked for.
  const bool lines_if_any;
  const SliceCollection& slices;
  Symbolizer& symbolizer;
  FrameTable& frames;
  StackResolver& resolver;
  MixedStacks& stacks;
  Memo& memo;

  // Which part views show, and what they go through then.
  Selection shown;
  auto CpuSamples() const { return Selected(model.events.cpu_samples, shown.events.cpu_samples); }
  auto SamplesOfSources() const {
    return Selected(model.events.cpu_samples, shown.samples_of_sources);
  }
  auto SampleSources() const {
    return Selected(model.events.sample_sources, shown.events.sample_sources);
  }
  auto ProbeHits() const { return Selected(model.events.probe_hits, shown.events.probe_hits); }
  auto OffCpuWaits() const {
    return Selected(model.events.off_cpu_waits, shown.events.off_cpu_waits);
  }
  auto OffCpuSums() const { return Selected(model.events.off_cpu_sums, shown.events.off_cpu_sums); }
  auto Overheads() const { return Selected(model.events.overheads, shown.events.overheads); }
  auto JitOperations() const {
    return Selected(model.events.jit_operations, shown.events.jit_operations);
  }
  auto MemoryOperations() const {
    return Selected(model.events.memory_operations, shown.events.memory_operations);
  }
  auto GpuStates() const { return Selected(model.events.gpu_states, shown.events.gpu_states); }
  auto GpuMetricSamples() const {
    return Selected(model.events.gpu_metric_samples, shown.events.gpu_metric_samples);
  }
  auto GpuSamples() const { return Selected(model.events.gpu_samples, shown.events.gpu_samples); }
  auto AllocatorEvents() const {
    return Selected(model.events.allocator_events, shown.events.allocator_events);
  }
  auto Ranges() const { return Selected(nvtx.all(), shown.nvtx_ranges); }
  auto Launches() const { return Selected(correlation.launches, shown.launches); }
  auto Work() const { return Selected(correlation.work, shown.work); }
  auto FilteredWork() const { return Selected(correlation.work, shown.filtered_work); }
  // No event of a program is shown.
  bool ShowsNothing() const;
  const Correlation::Counts& counts() const { return CountsOf(correlation, shown); }

  // The events that CPU samples were taken at, when only the samples of one are shown.
  std::vector<SampledEvent> sampled_events;
  bool event_is_asked_for = false;  // that one, by its name
  // Demangled, of the capture that this one is compared with: short names are the same in both.
  std::vector<std::string> other_kernels;
  CallTreeLimit call_trees;
};

}  // namespace xpu
