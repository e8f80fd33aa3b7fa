#include "report/stacks/stack_names.h"

#include <utility>

namespace xpu {

StackNames::StackNames(const Trace& trace, SymbolOptions options)
    : lines_if_any(options.lines_if_any),
      slices(CollectSlices(trace.model)),
      symbolizer(std::move(options.symbolizer)),
      resolver(trace.model, trace.processes, trace.api_names, symbolizer, frames, options.places),
      stacks(trace.model, resolver, frames, options.places, options.python) {
  for (const AssembledSlice& slice : slices.slices) {
    symbolizer.SetSlice(symbolizer.Module(slice.path, slice.build_id), slice.parts, slice.older);
  }
}

}  // namespace xpu
