// func_sum: CPU and GPU time of each function, alone and with what it calls.
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "report/analysis/call_paths.h"
#include "report/analysis/sampled_events.h"
#include "report/query/call_tree_builder.h"
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

constexpr size_t kWidestLabel = 100;

struct TreeRow {
  uint64_t total_ns = 0;
  uint64_t count = 0;
  size_t depth = 0;
  std::string label;
};

// Paths that share their beginning share rows. A row is a frame and those below it up to where
// paths part.
class TreeRows {
 public:
  TreeRows(const CallTree& tree, const FrameTable& frames, const std::vector<LaunchPathTime>& paths)
      : tree_(tree), frames_(frames) {
    for (const LaunchPathTime& path : paths) {
      nodes_[path.path] = {.total_ns = path.times.total, .count = path.times.count, .ends = true};
    }
    // Parents come before their children.
    for (auto at = nodes_.rbegin(); at != nodes_.rend() && at->first; ++at) {
      Node& parent = nodes_[tree[at->first].parent];
      parent.total_ns = AddSaturated(parent.total_ns, at->second.total_ns);
      parent.count += at->second.count;
    }
    for (const auto& [path, node] : nodes_) {
      if (path) nodes_[tree[path].parent].children.push_back(path);
    }
    for (auto& [path, node] : nodes_) {
      std::stable_sort(node.children.begin(), node.children.end(), [this](PathId a, PathId b) {
        return nodes_[a].total_ns > nodes_[b].total_ns;
      });
    }
    // Without recursion: paths may be as deep as a hostile capture likes.
    std::vector<std::pair<PathId, size_t>> waiting;
    const auto add_children = [&](const Node& node, size_t depth) {
      for (size_t i = node.children.size(); i-- > 0;) waiting.emplace_back(node.children[i], depth);
    };
    add_children(nodes_[PathId{}], 0);
    while (!waiting.empty()) {
      const auto [first, depth] = waiting.back();
      waiting.pop_back();
      add_children(nodes_[AddRow(first, depth)], depth + 1);
    }
  }

  // The `most` with most time, 0: all. What is above a row that is kept is kept too.
  std::vector<TreeRow> Take(uint64_t most) {
    if (most == 0 || most >= rows_.size()) return std::move(rows_);
    std::vector<size_t> order(rows_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return std::tuple(rows_[b].total_ns, rows_[a].depth, a) <
             std::tuple(rows_[a].total_ns, rows_[b].depth, b);
    });
    order.resize(most);
    std::sort(order.begin(), order.end());
    std::vector<TreeRow> kept;
    for (const size_t row : order) kept.push_back(std::move(rows_[row]));
    return kept;
  }

 private:
  struct Node {
    uint64_t total_ns = 0;
    uint64_t count = 0;
    bool ends = false;  // work has this very path
    std::vector<PathId> children = {};
  };

  // Returns the last frame of the row.
  PathId AddRow(PathId first, size_t depth) {
    PathId last = first;
    std::vector<std::string> labels = {LabelOf(first)};
    while (nodes_[last].children.size() == 1 && !nodes_[last].ends) {
      last = nodes_[last].children.front();
      labels.push_back(LabelOf(last));
    }
    const Node& node = nodes_[first];
    rows_.push_back(
        {node.total_ns, node.count, depth,
         std::string(2 * std::min<size_t>(depth, 40), ' ') + ShortPath(labels, kWidestLabel)});
    return last;
  }

  std::string LabelOf(PathId path) const {
    return ToWidth(frames_[tree_[path].frame].Label(), kWidestLabel);
  }

  const CallTree& tree_;
  const FrameTable& frames_;
  std::map<PathId, Node> nodes_;  // the one without an id holds the outermost
  std::vector<TreeRow> rows_;
};

std::vector<LaunchPathTime> PathRows(TableSource& source) {
  return LaunchPathTimes(source.analysis, source.options.PathKernelNames(), source.paths());
}

}  // namespace

void FillAllFunctions(TableSource& source, Table& table) {
  Analysis& analysis = source.analysis;
  const FrameTable& frames = analysis.frames;
  const PathOptions paths{.graph_stacks = source.options.tree.paths.graph_stacks};
  const TreeOptions cpu{.mode = TreeMode::kCpu, .paths = paths};
  FunctionCosts costs;
  const uint64_t cpu_whole = AddTree(BuildCallTree(analysis, cpu), frames, &FunctionCost::cpu_self,
                                     &FunctionCost::cpu_total, costs);
  const uint64_t gpu_whole =
      AddTree(BuildCallTree(analysis, {.mode = TreeMode::kGpu, .paths = paths}), frames,
              &FunctionCost::gpu_self, &FunctionCost::gpu_total, costs);
  if (!CountsTime(analysis, cpu)) table.unit = SampleUnit(analysis.model, analysis.shown);
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

void FillThreads(TableSource& source, Table& table) {
  std::vector<ThreadTime> rows = ThreadTimes(source.analysis);
  if (!SamplesCountTime(source.analysis.model, source.analysis.shown))
    table.unit = SampleUnit(source.analysis.model, source.analysis.shown);
  uint64_t cpu = 0;
  uint64_t gpu = 0;
  for (const ThreadTime& row : rows) {
    cpu = AddSaturated(cpu, row.cpu);
    gpu = AddSaturated(gpu, row.gpu_ns);
  }
  const Containers& containers = source.analysis.containers;
  if (!containers.empty()) table.columns.push_back({.name = "Container", .is_text = true});
  SetRows(table, std::move(rows), [cpu, gpu, &containers](const ThreadTime& row, Row& cells) {
    cells.assign({Percent(row.cpu, cpu), std::to_string(row.cpu), std::to_string(row.samples),
                  Percent(row.gpu_ns, gpu), std::to_string(row.gpu_ns),
                  std::to_string(row.gpu_work), std::to_string(row.owner.pid),
                  std::to_string(row.owner.tid), row.process_name, row.thread_name});
    if (containers.empty()) return;
    const ContainerInfo* container = containers.Of(row.owner.process, UINT64_MAX);
    cells.push_back(container == nullptr ? std::string() : containers.NameOf(*container));
  });
}

void FillPaths(TableSource& source, Table& table) {
  std::vector<LaunchPathTime> rows = PathRows(source);
  const uint64_t whole = WholeOf(rows);
  const FrameTable& frames = source.analysis.frames;
  const CallTree& tree = source.paths().tree();
  SetRows(table, std::move(rows), [whole, &tree, &frames](const LaunchPathTime& row, Row& cells) {
    AppendTimes(row.times, whole, cells);
    cells.push_back(FoldedText(frames, tree.Path(row.path)));
  });
}

void FillCallTree(TableSource& source, Table& table) {
  const std::vector<LaunchPathTime> rows = PathRows(source);
  const uint64_t whole = WholeOf(rows);
  TreeRows tree(source.paths().tree(), source.analysis.frames, rows);
  table.columns = {{"Time (%)"}, {"Total Time (ns)"}, {"Instances"}, {"Call Tree", true}};
  SetRows(table, tree.Take(source.options.rows), [whole](const TreeRow& row, Row& cells) {
    cells.assign({Percent(row.total_ns, whole), std::to_string(row.total_ns),
                  std::to_string(row.count), row.label});
  });
}

}  // namespace xpu
