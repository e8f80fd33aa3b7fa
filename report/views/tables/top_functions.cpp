// func_sum: CPU and GPU time of each function, alone and with what it calls.
#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "report/analysis/sampled_events.h"
#include "report/model/saturated.h"
#include "report/query/merge.h"
#include "report/views/tables/top_cells.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

struct FunctionCost {
  FrameId frame;
  uint64_t gpu_self = 0;
  uint64_t gpu_total = 0;
  uint64_t cpu_self = 0;
  uint64_t cpu_total = 0;
};

using FunctionCosts = std::unordered_map<FrameId, FunctionCost>;

// Returns the sum over the tree. `self` goes to the innermost function of a path and, for a path
// that has functions of Python, to the innermost of these too: what a native function does is what
// the line of Python that called it costs.
uint64_t AddTree(const CallTree& tree, const FrameTable& frames, uint64_t FunctionCost::*self,
                 uint64_t FunctionCost::*total, FunctionCosts& costs) {
  const auto add = [&](FrameId frame, uint64_t FunctionCost::*to, uint64_t ns) {
    costs[frame].*to = AddSaturated(costs[frame].*to, ns);
  };
  struct Innermost {
    FrameId function;
    FrameId python;
  };
  std::vector<Innermost> innermost(tree.nodes().size() + 1);  // by path; parents come first
  uint64_t whole = 0;
  for (size_t i = 0; i < tree.nodes().size(); ++i) {
    const CallTree::Node& node = tree.nodes()[i];
    Innermost& at = innermost[i + 1] = innermost[node.parent.value];
    if (node.parent && frames[node.frame].IsFunction()) {
      at.function = node.frame;
      if (frames[node.frame].origin == FrameOrigin::kPython) at.python = node.frame;
    }
    if (node.self_ns == 0) continue;
    whole = AddSaturated(whole, node.self_ns);
    if (at.function) add(at.function, self, node.self_ns);
    if (at.python && at.python != at.function) add(at.python, self, node.self_ns);
  }
  const std::vector<CallTree::Total> totals = tree.Totals();
  tree.WalkOutermost(frames.size(), [&](PathId path) {
    const uint64_t ns = totals[path.value - 1].ns;
    if (ns > 0 && frames[tree[path].frame].IsFunction()) add(tree[path].frame, total, ns);
  });
  return whole;
}

std::string_view LanguageOf(const NamedFrame& frame) {
  if (frame.origin == FrameOrigin::kPython) return "Python";
  return frame.origin == FrameOrigin::kKernel ? "kernel" : "native";
}

}  // namespace

void FillAllFunctions(TableSource& source, Table& table) {
  Analysis& analysis = source.analysis;
  const FrameTable& frames = analysis.frames;
  const PathOptions paths{.graph_stacks = source.options.graph_stacks};
  const MergeOptions cpu{.mode = MergeMode::kCpu, .paths = paths};
  FunctionCosts costs;
  const uint64_t cpu_whole = AddTree(BuildCallTree(analysis, cpu), frames, &FunctionCost::cpu_self,
                                     &FunctionCost::cpu_total, costs);
  const uint64_t gpu_whole =
      AddTree(BuildCallTree(analysis, {.mode = MergeMode::kGpu, .paths = paths}), frames,
              &FunctionCost::gpu_self, &FunctionCost::gpu_total, costs);
  if (!CountsTime(analysis, cpu)) table.unit = SampleUnit(analysis.model);
  std::vector<FunctionCost> rows;
  for (auto& [frame, cost] : costs) {
    cost.frame = frame;
    rows.push_back(cost);
  }
  std::sort(rows.begin(), rows.end(), [&](const FunctionCost& a, const FunctionCost& b) {
    const auto key_of = [&](const FunctionCost& cost, const FunctionCost& other) {
      return std::tuple(other.gpu_self, other.cpu_self, other.gpu_total, other.cpu_total,
                        frames[cost.frame].Label(), frames[cost.frame].module, cost.frame);
    };
    return key_of(a, b) < key_of(b, a);
  });
  SetRows(table, std::move(rows),
          [cpu_whole, gpu_whole, &frames](const FunctionCost& row, Row& cells) {
            cells.assign({Percent(row.gpu_self, gpu_whole), std::to_string(row.gpu_self),
                          Percent(row.gpu_total, gpu_whole), std::to_string(row.gpu_total),
                          Percent(row.cpu_self, cpu_whole), std::to_string(row.cpu_self),
                          Percent(row.cpu_total, cpu_whole), std::to_string(row.cpu_total),
                          std::string(LanguageOf(frames[row.frame])), frames[row.frame].module,
                          frames[row.frame].Label()});
          });
}

}  // namespace xpu
