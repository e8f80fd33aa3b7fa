#include "report/statistics.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace xpu {
namespace {

using ValuesByName = std::unordered_map<std::string_view, std::vector<uint64_t>>;

std::vector<Statistics> SummarizeAll(ValuesByName& values) {
  std::vector<Statistics> rows;
  rows.reserve(values.size());
  for (auto& [name, list] : values) rows.push_back(Summarize(std::string(name), list));
  std::sort(rows.begin(), rows.end(), [](const Statistics& a, const Statistics& b) {
    return a.total != b.total ? a.total > b.total : a.name < b.name;
  });
  return rows;
}

constexpr std::string_view kSetOperation = "[CUDA memset]";

}  // namespace

Statistics Summarize(std::string name, std::vector<uint64_t>& values) {
  Statistics row;
  row.name = std::move(name);
  row.count = values.size();
  if (values.empty()) return row;
  std::sort(values.begin(), values.end());
  row.smallest = values.front();
  row.largest = values.back();
  for (const uint64_t value : values) row.total = AddSaturated(row.total, value);
  const auto count = static_cast<double>(values.size());
  row.average = static_cast<double>(row.total) / count;
  const size_t middle = values.size() / 2;
  row.median = static_cast<double>(values[middle]);
  if (values.size() % 2 == 0) {
    row.median = (row.median + static_cast<double>(values[middle - 1])) / 2;
  }
  double squares = 0;
  for (const uint64_t value : values) {
    const double distance = static_cast<double>(value) - row.average;
    squares += distance * distance;
  }
  if (values.size() > 1) row.deviation = std::sqrt(squares / (count - 1));
  return row;
}

std::vector<Statistics> KernelTimes(const Analysis& analysis, const GpuNames& names) {
  ValuesByName values;
  for (const GpuWork& work : analysis.correlation.work) {
    if (work.kind != WorkKind::kKernel || !work.timed) continue;
    const std::string& name = names.KernelName(analysis.model.events.kernels[work.index].name);
    values[name].push_back(work.duration_ns);
  }
  return SummarizeAll(values);
}

std::vector<Statistics> CopyTimes(const Analysis& analysis) {
  const EventBatch& events = analysis.model.events;
  ValuesByName values;
  for (const GpuWork& work : analysis.correlation.work) {
    if (!work.timed) continue;
    if (work.kind == WorkKind::kMemcpy) {
      values[CopyOperationName(events.memcpys[work.index].copy_kind)].push_back(work.duration_ns);
    } else if (work.kind == WorkKind::kMemset) {
      values[kSetOperation].push_back(work.duration_ns);
    }
  }
  return SummarizeAll(values);
}

std::vector<Statistics> CopySizes(const Analysis& analysis) {
  const EventBatch& events = analysis.model.events;
  ValuesByName values;
  for (const Memcpy& copy : events.memcpys) {
    values[CopyOperationName(copy.copy_kind)].push_back(copy.size_bytes);
  }
  for (const Memset& set : events.memsets) values[kSetOperation].push_back(set.size_bytes);
  return SummarizeAll(values);
}

std::vector<Statistics> GraphTimes(const Analysis& analysis, const GpuNames& names) {
  std::set<std::string> titles;  // `values` refers to them
  ValuesByName values;
  for (const GpuWork& work : analysis.correlation.work) {
    if (!work.timed || work.kind != WorkKind::kGraph) continue;
    values[*titles.insert(names.Title(work)).first].push_back(work.duration_ns);
  }
  return SummarizeAll(values);
}

std::vector<Statistics> ApiTimes(const Analysis& analysis) {
  ValuesByName values;
  for (const ApiCall& call : analysis.model.events.api_calls) {
    const uint64_t duration_ns = call.end_ns < call.start_ns ? 0 : call.end_ns - call.start_ns;
    values[analysis.api_names.Of(call.instance, call.domain, call.callback_id)].push_back(
        duration_ns);
  }
  for (const Launch& launch : analysis.correlation.launches) {
    if (launch.probe == 0) continue;
    values[ApiNameOf(analysis.api_names, launch)].push_back(launch.end_ns - launch.start_ns);
  }
  return SummarizeAll(values);
}

std::vector<Statistics> OverheadTimes(const Analysis& analysis) {
  ValuesByName values;
  for (const Overhead& overhead : analysis.model.events.overheads) {
    if (overhead.start_ns == 0 || overhead.end_ns < overhead.start_ns) continue;
    values[OverheadName(overhead.overhead_kind)].push_back(overhead.end_ns - overhead.start_ns);
  }
  return SummarizeAll(values);
}

std::vector<FunctionTime> FunctionTimes(const CallTree& tree, const FrameTable& frames) {
  std::unordered_map<FrameId, FunctionTime> functions;
  const auto& nodes = tree.nodes();
  std::vector<FrameId> path;
  for (const CallTree::Node& node : nodes) {
    if (node.self_count == 0 || !node.parent) continue;
    FunctionTime& self = functions[node.frame];
    self.self_ns = AddSaturated(self.self_ns, node.self_ns);
    self.self_count += node.self_count;
    path.assign(1, node.frame);
    for (PathId at = node.parent; tree[at].parent; at = tree[at].parent) {
      path.push_back(tree[at].frame);
    }
    std::sort(path.begin(), path.end());
    path.erase(std::unique(path.begin(), path.end()), path.end());
    for (const FrameId frame : path) {
      FunctionTime& function = functions[frame];
      function.total_ns = AddSaturated(function.total_ns, node.self_ns);
      function.total_count += node.self_count;
    }
  }
  std::vector<FunctionTime> rows;
  for (auto& [frame, row] : functions) {
    row.frame = frame;
    rows.push_back(row);
  }
  std::sort(rows.begin(), rows.end(), [&](const FunctionTime& a, const FunctionTime& b) {
    if (a.self_ns != b.self_ns) return a.self_ns > b.self_ns;
    if (a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
    const NamedFrame& frame_a = frames[a.frame];
    const NamedFrame& frame_b = frames[b.frame];
    const auto key_of = [](const NamedFrame& frame) {
      return std::tie(frame.name, frame.place, frame.is_inlined, frame.module, frame.origin);
    };
    return key_of(frame_a) < key_of(frame_b);
  });
  return rows;
}

std::vector<PathTime> PathTimes(const CallTree& tree) {
  std::vector<PathTime> rows;
  for (uint32_t i = 0; i < tree.nodes().size(); ++i) {
    const CallTree::Node& node = tree.nodes()[i];
    if (node.self_ns > 0) rows.push_back({PathId{i + 1}, node.self_ns, node.self_count});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const PathTime& a, const PathTime& b) { return a.ns > b.ns; });
  return rows;
}

}  // namespace xpu
