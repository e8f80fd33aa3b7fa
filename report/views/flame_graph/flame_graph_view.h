// The data of the page of a flame graph, as JSON:
//
//   title, command, host   texts
//   mode                   "merge", "gpu" and what else --mode takes
//   unit                   what the nodes' "ns" are: "ns", "hits", the event that samples count
//   startMs, durationNs    of the recording; startMs since 1970; null when the capture does not say
//   losses                 [{severity, count, what, advice}]
//   modules                names of files
//   frames                 {name: [...], module: [...], kind: [...], family: [...]}: each frame
//                          once; module is an index or -1, kind a FrameOrigin, family an index
//   families               names of families of frames, the first for those of none
//   nodes                  {depth: [...], frame: [...], ns: [...], count: [...]}: the tree, depth
//                          first, of siblings the largest first; ns and count are the node's own,
//                          without those below it; of --slow-steps also before: [...], what a
//                          median step has, the ns being a slow one's
//   compared               of --slow-steps only: a text that says what is compared, as lines
//
//   strip                  what is above the picture (flame_graph_strip.h), or null
//   code                   what a click on a kernel shows (flame_graph_code.h), or null
//   sources                {path: [[first line, text], ...]}: what the capture has of files
//
// Columns of numbers and no objects: a capture has up to millions of nodes. No `<` is in it, so
// that no name can end the script element around it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_tree.h"
#include "report/base/output.h"
#include "report/views/flame_graph/flame_graph_code.h"
#include "report/views/flame_graph/flame_graph_strip.h"
#include "report/views/view.h"

namespace xpu {

// The page of the flame graph with its style and code; made at build time from flame_graph.html,
// .css and .js.
// kFlameGraphData stands where the data go.
extern const std::string_view kFlameGraphPage;
inline constexpr std::string_view kFlameGraphData = "@DATA@";

// A node of a tree that has time, or had some before, in the order in which the page gets them.
struct FlameNode {
  PathId path;
  uint32_t depth = 0;
};
std::vector<FlameNode> InFlameOrder(const CallTree& tree, const FrameTable& frames,
                                    std::span<const uint64_t> before_ns = {});

// The times that those of a tree are compared with.
struct FlameComparison {
  std::string_view text;                // what is compared, as lines
  std::span<const uint64_t> before_ns;  // by path - 1
};

// `compared`, `strip`, `code`: nullptr where nothing is compared, or above the picture, or no
// kernel has samples.
void WriteFlameGraphData(Analysis& analysis, const CallTree& tree, const ViewOptions& options,
                         Output& output, const FlameComparison* compared = nullptr,
                         const FlameStrip* strip = nullptr, const FlameCode* code = nullptr);

}  // namespace xpu
