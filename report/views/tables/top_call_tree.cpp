// callpath_sum: GPU time by the path that launched it, a row for each; or, for reading, a tree.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "report/analysis/call_paths.h"
#include "report/model/saturated.h"
#include "report/output/text.h"
#include "report/query/statistics.h"
#include "report/views/tables/top_cells.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

constexpr size_t kWidestLabel = 100;

struct TreeRow {
  uint64_t total_ns = 0;
  uint64_t count = 0;
  size_t depth = 0;
  std::string label;
};

// Paths that share their begin share rows. A row is a frame and those below it up to where paths
// part.
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

struct Paths {
  std::shared_ptr<CallPaths> paths;
  std::vector<LaunchPathTime> rows;
};

Paths PathsOf(TableSource& source) {
  Paths found{std::make_shared<CallPaths>(source.analysis,
                                          PathOptions{.graph_stacks = source.options.graph_stacks}),
              {}};
  found.rows = LaunchPathTimes(source.analysis, source.options.path_kernel_names, *found.paths);
  return found;
}

}  // namespace

void FillPaths(TableSource& source, Table& table) {
  Paths found = PathsOf(source);
  const uint64_t whole = WholeOf(found.rows);
  const FrameTable& frames = source.analysis.frames;
  SetRows(table, std::move(found.rows),
          [whole, paths = found.paths, &frames](const LaunchPathTime& row, Row& cells) {
            AppendTimes(row.times, whole, cells);
            cells.push_back(FoldedText(frames, paths->tree().Path(row.path)));
          });
}

void FillCallTree(TableSource& source, Table& table) {
  const Paths found = PathsOf(source);
  const uint64_t whole = WholeOf(found.rows);
  TreeRows tree(found.paths->tree(), source.analysis.frames, found.rows);
  table.columns = {{"Time (%)"}, {"Total Time (ns)"}, {"Instances"}, {"Call Tree", true}};
  SetRows(table, tree.Take(source.options.rows), [whole](const TreeRow& row, Row& cells) {
    cells.assign({Percent(row.total_ns, whole), std::to_string(row.total_ns),
                  std::to_string(row.count), row.label});
  });
}

}  // namespace xpu
