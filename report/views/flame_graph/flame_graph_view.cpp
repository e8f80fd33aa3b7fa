#include "report/views/flame_graph/flame_graph_view.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "format/base/check.h"
#include "format/base/saturated.h"
#include "report/analysis/sampled_events.h"
#include "report/critical_path/critical_path.h"
#include "report/model/recorded_time.h"
#include "report/model/source_parts.h"
#include "report/query/ledger.h"
#include "report/query/time_slices.h"
#include "report/query/unfinished_work.h"
#include "report/views/flame_graph/page_data.h"
#include "report/workload/framework_names.h"
#include "report/workload/step_slices.h"
#include "report/workload/steps.h"

namespace xpu {
namespace {

constexpr uint64_t kMsNs = 1'000'000;

std::vector<uint64_t> TotalsOf(const CallTree& tree) {
  const std::vector<CallTree::Node>& nodes = tree.nodes();
  std::vector<uint64_t> totals(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    totals[i] = AddSaturated(totals[i], nodes[i].self_ns);
    if (const PathId parent = nodes[i].parent) {
      totals[parent.value - 1] = AddSaturated(totals[parent.value - 1], totals[i]);
    }
  }
  return totals;
}

std::string_view ModeName(TreeMode mode) {
  switch (mode) {
    case TreeMode::kCpuAndGpu:
      return "merge";
    case TreeMode::kGpu:
      return "gpu";
    case TreeMode::kCpu:
      return "cpu";
    case TreeMode::kIdle:
      return "idle";
    case TreeMode::kProbe:
      return "probe";
    case TreeMode::kOff:
      return "off";
    case TreeMode::kWall:
      return "wall";
    case TreeMode::kCritical:
      return "critical";
    case TreeMode::kMemory:
      return "memory";
  }
  return {};
}

// The frames of the nodes and their files, numbered as they come.
class UsedFrames {
 public:
  UsedFrames(const CallTree& tree, const FrameTable& frames, const std::vector<FlameNode>& nodes)
      : number_(frames.size() + 1, kNone) {
    for (const FlameNode& node : nodes) Use(tree[node.path].frame, frames);
  }

  uint32_t NumberOf(FrameId frame) const { return number_[frame.value]; }
  const std::vector<const NamedFrame*>& frames() const { return frames_; }
  const std::vector<std::string_view>& modules() const { return modules_; }
  bool HasModule(std::string_view name) const { return module_numbers_.contains(name); }
  // -1: the frame is of none.
  int64_t ModuleOf(const NamedFrame& frame) const {
    const auto found = module_numbers_.find(frame.module);
    return found == module_numbers_.end() ? -1 : int64_t{found->second};
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  void Use(FrameId id, const FrameTable& table) {
    uint32_t& number = number_[id.value];
    if (number != kNone) return;
    number = static_cast<uint32_t>(frames_.size());
    const NamedFrame& frame = table[id];
    frames_.push_back(&frame);
    if (frame.module.empty()) return;
    const auto next = static_cast<uint32_t>(modules_.size());
    if (module_numbers_.try_emplace(frame.module, next).second) modules_.push_back(frame.module);
  }

  std::vector<uint32_t> number_;  // by frame id
  std::vector<const NamedFrame*> frames_;
  std::vector<std::string_view> modules_;
  std::unordered_map<std::string_view, uint32_t> module_numbers_;
};

// The unit of the numbers in the tree.
std::string UnitName(const Analysis& analysis, const TreeOptions& options) {
  if (options.mode == TreeMode::kProbe) return "hits";
  if (options.mode == TreeMode::kMemory) return "bytes";
  return CountsTime(analysis, options) ? "ns" : SampleUnit(analysis.model, analysis.shown);
}

void WriteRecording(Analysis& analysis, const ViewOptions& options, PageData& writer) {
  const Model& model = analysis.model;
  RecordingInfo info;
  const auto& infos = model.events.recording_info;
  if (!infos.empty()) info = infos.front();
  const std::string_view command = model.Text(info.command_line);
  const std::string unit = UnitName(analysis, options.tree);
  const std::pair<std::string_view, std::string_view> texts[] = {
      {"title", options.title.empty() ? command : options.title},
      {"command", command},
      {"host", model.Text(info.host_name)},
      {"mode", ModeName(options.tree.mode)},
      {"unit", unit}};
  for (const auto& [key, text] : texts) {
    writer.String(key);
    writer.Raw(":");
    writer.String(text);
    writer.Raw(",");
  }
  if (const std::string unfinished = UnfinishedText(analysis); !unfinished.empty()) {
    writer.Raw("\"unfinished\":");
    writer.String(unfinished);
    writer.Raw(",");
  }
  const auto& ends = model.events.recording_end;
  const uint64_t end_ns = ends.empty() ? 0 : ends.back().time_ns;
  std::optional<uint64_t> start;
  std::optional<uint64_t> duration;
  if (info.start_realtime_ns != 0) start = info.start_realtime_ns / kMsNs;
  if (end_ns >= info.start_ns && !infos.empty()) duration = end_ns - info.start_ns;
  writer.Raw("\"startMs\":");
  writer.Number(start);
  writer.Raw(",\"durationNs\":");
  writer.Number(duration);
  writer.Raw(",\n");
}

void WriteLosses(const Analysis& analysis, PageData& writer) {
  std::vector<LedgerEntry> losses = BuildLedger(analysis);
  std::erase_if(losses, [](const LedgerEntry& e) { return e.severity == Severity::kNote; });
  writer.Array("losses", losses, [&](const LedgerEntry& entry) {
    writer.Raw("{\"severity\":");
    writer.String(SeverityName(entry));
    writer.Numbers(",\"count\":{},\"what\":", entry.count);
    writer.String(entry.what);
    writer.Raw(",\"advice\":");
    writer.String(entry.advice);
    writer.Raw("}");
  });
  writer.Raw(",\n");
}

// The text that the capture has of source files: of those that frames are in and kernels are made
// from; of what compilers write all, for the names of kernels lead to it.
class PageSources {
 public:
  PageSources(const SourceParts& sources, const UsedFrames& used, const FlameCode* code) {
    std::unordered_set<std::string_view> native;
    for (const NamedFrame* frame : used.frames()) native.insert(frame->source);
    for (const SourcePart& part : sources.parts) {
      const bool is_generated = part.path.find("/torchinductor_") != std::string_view::npos;
      const bool is_code = code != nullptr && code->HasFile(part.path);
      if (is_generated || is_code || used.HasModule(part.path) || native.contains(part.path)) {
        files_[part.path].push_back(part);
      }
    }
    for (const auto& [path, texts] : files_) numbers_.emplace(path, numbers_.size());
  }

  // In the order in which they are written; -1: there is nothing of it.
  int64_t NumberOf(std::string_view path) const {
    const auto found = numbers_.find(path);
    return found == numbers_.end() ? -1 : static_cast<int64_t>(found->second);
  }
  bool HasNativeCode(const UsedFrames& used) const {
    return std::any_of(used.frames().begin(), used.frames().end(),
                       [&](const NamedFrame* frame) { return NumberOf(frame->source) >= 0; });
  }

  void Write(PageData& writer) const {
    if (files_.empty()) return;
    writer.Raw("\"sources\":{");
    bool first = true;
    for (const auto& [path, texts] : files_) {
      if (!std::exchange(first, false)) writer.Raw(",\n");
      writer.String(path);
      writer.Raw(":[");
      for (size_t i = 0; i < texts.size(); ++i) {
        if (i > 0) writer.Raw(",");
        writer.Numbers("[{},", texts[i].first_line);
        writer.String(texts[i].text);
        writer.Raw("]");
      }
      writer.Raw("]");
    }
    writer.Raw("},\n");
  }

 private:
  std::map<std::string_view, std::vector<SourcePart>> files_;
  std::unordered_map<std::string_view, size_t> numbers_;
};

void WriteFrames(const UsedFrames& used, const PageSources& sources, PageData& writer) {
  writer.Array("modules", used.modules(), [&](std::string_view name) { writer.String(name); });
  writer.Raw(",\n\"frames\":{");
  writer.Array("name", used.frames(), [&](const NamedFrame* f) { writer.String(f->Label()); });
  writer.Raw(",\n");
  writer.Array("module", used.frames(),
               [&](const NamedFrame* f) { writer.Number(used.ModuleOf(*f)); });
  writer.Raw(",\n");
  writer.Array("kind", used.frames(),
               [&](const NamedFrame* f) { writer.Number(static_cast<uint64_t>(f->origin)); });
  writer.Raw(",\n");
  writer.Array("family", used.frames(), [&](const NamedFrame* f) {
    writer.Number(static_cast<uint64_t>(FrameFamilyOf(*f)));
  });
  if (sources.HasNativeCode(used)) {
    writer.Raw(",\n");
    writer.Array("file", used.frames(),
                 [&](const NamedFrame* f) { writer.Number(sources.NumberOf(f->source)); });
  }
  writer.Raw("},\n");
  std::vector<std::string_view> families;
  for (size_t i = 0; i < kFrameFamilies; ++i) {
    families.push_back(NameOf(static_cast<FrameFamily>(i)));
  }
  writer.Array("families", families, [&](std::string_view name) { writer.String(name); });
  writer.Raw(",\n");
}

void WriteNodes(const CallTree& tree, const std::vector<FlameNode>& nodes, const UsedFrames& used,
                const FlameComparison* compared, PageData& writer) {
  writer.Raw("\"nodes\":{");
  writer.Array("depth", nodes, [&](const FlameNode& n) { writer.Number(n.depth); });
  writer.Raw(",\n");
  writer.Array("frame", nodes,
               [&](const FlameNode& n) { writer.Number(used.NumberOf(tree[n.path].frame)); });
  writer.Raw(",\n");
  writer.Array("ns", nodes, [&](const FlameNode& n) { writer.Number(tree[n.path].self_ns); });
  writer.Raw(",\n");
  writer.Array("count", nodes, [&](const FlameNode& n) { writer.Number(tree[n.path].self_count); });
  if (compared != nullptr) {
    writer.Raw(",\n");
    writer.Array("before", nodes,
                 [&](const FlameNode& n) { writer.Number(compared->before_ns[n.path.value - 1]); });
  }
  writer.Raw("}");
}

}  // namespace

std::vector<FlameNode> InFlameOrder(const CallTree& tree, const FrameTable& frames,
                                    std::span<const uint64_t> before_ns) {
  const std::vector<CallTree::Node>& nodes = tree.nodes();
  const std::vector<uint64_t> totals = TotalsOf(tree);
  std::vector<bool> has_time(nodes.size());  // itself or below it
  for (size_t i = nodes.size(); i-- > 0;) {
    if (totals[i] > 0 || (!before_ns.empty() && before_ns[i] > 0)) has_time[i] = true;
    if (has_time[i] && nodes[i].parent) has_time[nodes[i].parent.value - 1] = true;
  }
  std::vector<std::string> labels;  // by frame id - 1
  for (uint32_t id = 1; id <= frames.size(); ++id) labels.push_back(frames[FrameId{id}].Label());

  std::vector<uint32_t> order;  // by parent, of one parent the smallest last
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (has_time[i]) order.push_back(i);
  }
  const auto label_of = [&](uint32_t i) -> const std::string& {
    return labels[nodes[i].frame.value - 1];
  };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tuple(nodes[a].parent, totals[b], label_of(a), a) <
           std::tuple(nodes[b].parent, totals[a], label_of(b), b);
  });
  std::vector<size_t> first_child(nodes.size() + 2);  // by parent id, in `order`
  for (const uint32_t i : order) ++first_child[nodes[i].parent.value + 1];
  for (size_t i = 1; i < first_child.size(); ++i) first_child[i] += first_child[i - 1];

  std::vector<FlameNode> in_order;
  std::vector<FlameNode> waiting;  // the next one last
  const auto push_children = [&](uint32_t parent, uint32_t depth) {
    for (size_t at = first_child[parent + 1]; at > first_child[parent]; --at) {
      waiting.push_back({PathId{order[at - 1] + 1}, depth});
    }
  };
  push_children(0, 0);
  while (!waiting.empty()) {
    const FlameNode node = waiting.back();
    waiting.pop_back();
    in_order.push_back(node);
    push_children(node.path.value, node.depth + 1);
  }
  return in_order;
}

void WriteFlameGraphData(Analysis& analysis, const CallTree& tree, const ViewOptions& options,
                         Output& output, const FlameComparison* compared, const FlameStrip* strip,
                         const FlameCode* code) {
  const std::vector<FlameNode> nodes =
      InFlameOrder(tree, analysis.frames,
                   compared == nullptr ? std::span<const uint64_t>() : compared->before_ns);
  const UsedFrames used(tree, analysis.frames, nodes);
  PageData writer(output);
  writer.Raw("{");
  WriteRecording(analysis, options, writer);
  WriteLosses(analysis, writer);
  if (compared != nullptr) {
    writer.Raw("\"compared\":");
    writer.String(compared->text);
    writer.Raw(",\n");
  }
  const PageSources sources(analysis.sources, used, code);
  WriteFrames(used, sources, writer);
  std::vector<uint32_t> node_of_path(tree.nodes().size(), kNoNode);
  for (uint32_t i = 0; i < nodes.size(); ++i) node_of_path[nodes[i].path.value - 1] = i;
  WriteStrip(strip, StartOf(analysis.model), node_of_path, writer);
  WriteCode(code, writer);
  sources.Write(writer);
  WriteNodes(tree, nodes, used, compared, writer);
  writer.Raw("}\n");
}

namespace {

void WritePage(Analysis& analysis, const CallTree& tree, const ViewOptions& options,
               const FlameComparison* compared, const FlameStrip* strip, Output& output) {
  const size_t data = kFlameGraphPage.find(kFlameGraphData);
  XPU_CHECK(data != std::string_view::npos);
  const std::optional<FlameCode> code = FlameCode::Of(analysis, tree, options.tree.kernel_names);
  output.WriteBytes(kFlameGraphPage.substr(0, data));
  WriteFlameGraphData(analysis, tree, options, output, compared, strip, code ? &*code : nullptr);
  output.WriteBytes(kFlameGraphPage.substr(data + kFlameGraphData.size()));
}

}  // namespace

void WriteFlameGraph(Analysis& analysis, const ViewOptions& options, Output& output,
                     std::string& notes) {
  const TreeOptions& tree_options = options.tree;
  std::vector<StepSeries> steps;
  if (TakesSlices(tree_options.mode)) steps = FindSteps(analysis, options.steps.definition);
  std::erase_if(steps, [](const StepSeries& series) { return !IsCredible(series); });
  // Where there are no steps to choose, spans of the GPUs' time are.
  const bool has_parts = steps.empty() && tree_options.mode != TreeMode::kMemory;
  const TimeSlices parts = has_parts ? PartsOfGpuTime(analysis) : TimeSlices();
  SlicedTimes sliced = parts.empty() ? SliceBySteps(analysis, steps) : SliceByParts(parts);
  const CallTree tree = tree_options.mode == TreeMode::kCritical
                            ? BuildCriticalTree(analysis, options.steps, tree_options.kernel_names,
                                                tree_options.paths)
                            : BuildCallTree(analysis, tree_options,
                                            TakesSlices(tree_options.mode) ? &sliced : nullptr);
  notes += LeftOutText(analysis, options.tree) + EstimateText(tree);
  if (tree.nodes().empty()) notes += WhyNoStacks(analysis, options.tree.mode);
  std::optional<FlameStrip> strip =
      parts.empty() ? StripOfSteps(analysis, options.steps.definition, steps, sliced)
                    : StripOfParts(analysis, parts, sliced);
  if (strip && parts.empty()) AddGpuLanes(analysis, *strip);
  AddRankLanes(analysis, steps, strip);
  WritePage(analysis, tree, options, nullptr, strip ? &*strip : nullptr, output);
}

void WriteSlowStepsFlameGraph(const SlowSteps& steps, Analysis& slow, Analysis& median,
                              const ViewOptions& options, Output& output, std::string& notes) {
  const StepComparison compared = CompareSteps(steps, slow, median, options.tree);
  const std::string text = SlowStepsText(steps, compared, slow.frames);
  notes += LeftOutText(slow, options.tree) + text;
  const FlameComparison comparison{text, compared.median_ns};
  WritePage(slow, compared.tree, options, &comparison, nullptr, output);
}

View FlameGraphView() {
  return {
      .option = "--flamegraph",
      .help = "self-contained HTML page, with zoom (-o FILE.html)",
      .takes_sample = true,
      .compares_steps = true,
      .shows_paths = true,
      .is_for_reading = false,
      .file_name_end = ".html",
      .write =
          [](const ViewInput& input) {
            const ViewOptions& options = input.options;
            if (input.slow_steps == nullptr) {
              WriteFlameGraph(input.analysis, options, input.output, input.notes);
            } else {
              WriteSlowStepsFlameGraph(*input.slow_steps, input.analysis, *input.median_steps,
                                       options, input.output, input.notes);
            }
          },
  };
}

}  // namespace xpu
