#include "report/views/flame_graph/flame_graph_code.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "symbolize/demangle.h"

namespace xpu {
namespace {

// "softmax" of "[GPU_Kernel]softmax" and "[GPU0_Kernel]softmax"; empty: it is none.
std::string_view KernelOfFrame(std::string_view frame) {
  constexpr std::string_view kEnd = "_Kernel]";
  if (!frame.starts_with("[GPU")) return {};
  const size_t end = frame.find(kEnd);
  return end == frame.npos ? std::string_view() : frame.substr(end + kEnd.size());
}

// Keeps those with the most samples, in their order. Returns how many are gone.
template <typename Entry, typename SamplesOf>
size_t KeepMost(std::vector<Entry>& entries, size_t most, SamplesOf&& samples_of) {
  if (entries.size() <= most) return 0;
  std::vector<uint64_t> sizes;
  for (const Entry& entry : entries) sizes.push_back(samples_of(entry));
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(most), sizes.end(),
                   std::greater<>());
  const uint64_t limit = sizes[most];
  const auto kept = std::ranges::count_if(sizes, [&](uint64_t size) { return size > limit; });
  size_t room = most - static_cast<size_t>(kept);  // for those that have as many
  const size_t before = entries.size();
  std::erase_if(entries, [&](const Entry& entry) {
    const uint64_t samples = samples_of(entry);
    if (samples != limit) return samples < limit;
    if (room == 0) return true;
    --room;
    return false;
  });
  return before - entries.size();
}

}  // namespace

std::optional<FlameCode> FlameCode::Of(Analysis& analysis, const CallTree& tree,
                                       KernelNames kernel_names) {
  std::set<std::string, std::less<>> shown;
  for (const CallTree::Node& node : tree.nodes()) {
    const NamedFrame& frame = analysis.frames[node.frame];
    if (frame.origin != FrameOrigin::kGpuWork) continue;
    const std::string label = frame.Label();
    if (const std::string_view kernel = KernelOfFrame(label); !kernel.empty()) {
      shown.emplace(kernel);
    }
  }
  if (shown.empty() || analysis.model.events.gpu_samples.empty()) return std::nullopt;
  CodeSamples samples(analysis);
  const GpuNames names(analysis, kernel_names);
  const std::optional<Disassembler> disassembler = Disassembler::Find();
  FlameCode code;
  code.has_texts_ = disassembler.has_value();
  for (const SampledFunction& function : samples.functions()) {
    std::string name = names.KernelName(function.kernel);
    if (!shown.contains(name)) continue;
    if (code.functions_.size() < kMostFunctions) {
      code.Add(analysis.model, function, std::move(name), samples.code(), disassembler);
    } else {
      ++code.left_out_;
    }
  }
  if (code.functions_.empty()) return std::nullopt;
  return code;
}

FlameCode::Line FlameCode::LineOf(std::string_view file, uint32_t line, const StallSums& stalls) {
  Line made{.line = line, .samples = SumOf(stalls), .stalls = {}};
  if (!file.empty()) {
    const auto next = static_cast<int64_t>(files_.size());
    const auto [found, is_new] = file_numbers_.try_emplace(std::string(file), next);
    if (is_new) files_.emplace_back(file);
    made.file = found->second;
  }
  for (const auto& [stall, count] : SortedStalls(stalls)) {
    if (count == 0) break;
    const auto [found, is_new] = stall_numbers_.try_emplace(stall, stalls_.size());
    if (is_new) stalls_.push_back(stall);
    made.stalls.emplace_back(found->second, count);
  }
  return made;
}

void FlameCode::Add(const Model& model, const SampledFunction& function, std::string name,
                    GpuCode& code, const std::optional<Disassembler>& disassembler) {
  Function made{.name = std::move(name),
                .callee = function.callee.empty() ? "" : Demangle(function.callee),
                .samples = function.samples,
                .ns = function.kernel_ns,
                .count = function.kernel_count,
                .lines = {},
                .instructions = {}};
  for (const auto& [place, stalls] : LinesOf(function)) {
    made.lines.push_back(LineOf(place.first, place.second, stalls));
  }
  for (CodeInstruction& each : InstructionsOf(model, function, code, disassembler)) {
    StallSums stalls;
    if (each.sampled != nullptr) AddStalls(*each.sampled, stalls);
    const bool has_line = each.sampled != nullptr && !each.sampled->lines.empty();
    const SourceFrame frame = has_line ? each.sampled->lines.front() : SourceFrame();
    made.instructions.push_back(
        {each.offset, std::move(each.text), LineOf(frame.file, frame.line, stalls)});
  }
  lines_left_out_ +=
      KeepMost(made.lines, kMostLines, [](const Line& line) { return line.samples; });
  instructions_left_out_ += KeepMost(made.instructions, kMostInstructions,
                                     [](const Instruction& each) { return each.at.samples; });
  functions_.push_back(std::move(made));
}

void FlameCode::Write(PageData& data) const {
  const auto write_stalls = [&](const Stalls& stalls) {
    data.Raw("[");
    for (size_t i = 0; i < stalls.size(); ++i) {
      if (i > 0) data.Raw(",");
      data.Numbers("{},{}", stalls[i].first, stalls[i].second);
    }
    data.Raw("]");
  };
  data.Raw("{");
  data.Array("kernels", functions_, [&](const Function& function) {
    data.Raw("{\"name\":");
    data.String(function.name);
    data.Raw(",\"callee\":");
    data.String(function.callee);
    data.Numbers(",\"samples\":{},\"ns\":{},\"count\":{},\n", function.samples, function.ns,
                 function.count);
    data.Array("lines", function.lines, [&](const Line& line) {
      data.Numbers("[{},{},", line.file, line.line);
      write_stalls(line.stalls);
      data.Raw("]");
    });
    data.Raw(",\n");
    data.Array("instructions", function.instructions, [&](const Instruction& each) {
      data.Numbers("[{},", each.offset);
      data.String(each.text);
      data.Numbers(",{},{},", each.at.file, each.at.line);
      write_stalls(each.at.stalls);
      data.Raw("]");
    });
    data.Raw("}");
  });
  data.Raw(",\n");
  data.Array("files", files_, [&](const std::string& file) { data.String(file); });
  data.Raw(",\n");
  data.Array("stalls", stalls_, [&](const std::string& stall) {
    data.Raw("{\"name\":");
    data.String(stall);
    data.Raw(",\"advice\":");
    data.String(AdviceText(stall));
    data.Raw("}");
  });
  data.Numbers(",\n\"leftOut\":{},\"linesLeftOut\":{},\"instructionsLeftOut\":{},\"hasTexts\":{}}}",
               left_out_, lines_left_out_, instructions_left_out_, has_texts_);
}

void WriteCode(const FlameCode* code, PageData& data) {
  data.Raw("\"code\":");
  if (code == nullptr) {
    data.Raw("null");
  } else {
    code->Write(data);
  }
  data.Raw(",\n");
}

}  // namespace xpu
