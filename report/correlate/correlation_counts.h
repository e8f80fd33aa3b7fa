// The numbers of a correlation: what was matched, what is missing, and what explains it.
#pragma once

#include "report/correlate/correlate.h"

namespace xpu {

// Fills correlation.counts and worst_margin_ns from the rest.
void CountCorrelation(const Model& model, const GraphNodes& graph_nodes, Correlation& correlation);

}  // namespace xpu
