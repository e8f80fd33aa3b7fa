#include "report/analysis/analysis.h"

#include <utility>

namespace xpu {

Analysis::Analysis(Model loaded, SymbolOptions options, const CorrelateOptions& correlate)
    : Trace(std::move(loaded), correlate),
      StackNames(static_cast<const Trace&>(*this), std::move(options)),
      call_trees(model.file_bytes) {}

}  // namespace xpu
