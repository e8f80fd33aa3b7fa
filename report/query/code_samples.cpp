#include "report/query/code_samples.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <set>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "symbolize/demangle.h"

namespace xpu {
namespace {

struct KnownStall {
  std::string_view name;
  StallAdvice advice;
};

constexpr std::array<KnownStall, 18> kStalls{{
    {"barrier",
     {"waits at a barrier for other warps of its block",
      "divide the work evenly, or use smaller blocks"}},
    {"branch resolving",
     {"waits for the target of a branch", "branch less: unroll loops, use predicates"}},
    {"dispatch stall", {"is held back by the dispatcher", ""}},
    {"drain", {"waits for its last stores before it ends", "coalesce the stores at the end"}},
    {"imc miss",
     {"waits for a constant that is not cached", "use fewer different constants at a time"}},
    {"lg throttle",
     {"waits because too many global or local memory accesses are in flight",
      "wider accesses, fewer of them; fewer spilled registers"}},
    {"long scoreboard",
     {"waits for data of global, local or texture memory",
      "coalesce accesses, keep data in shared memory, load earlier, run more warps"}},
    {"math pipe throttle",
     {"waits for a busy arithmetic unit", "the unit is used well; mix other operations"}},
    {"membar", {"waits at a memory fence", "narrower scopes, fewer fences"}},
    {"mio throttle",
     {"waits because too many shared memory or special function operations are in flight",
      "wider accesses of shared memory, fewer special functions"}},
    {"misc", {"waits for another reason", ""}},
    {"no instructions",
     {"waits for its next instructions to be fetched",
      "smaller code, less unrolling, fewer jumps"}},
    {"not selected", {"could run, but another warp was chosen", "there are enough warps"}},
    {"selected", {"issues an instruction", "it does not wait"}},
    {"short scoreboard",
     {"waits for shared memory or a special function",
      "avoid bank conflicts, and fewer special functions"}},
    {"sleeping", {"sleeps", "shorter nanosleep"}},
    {"tex throttle",
     {"waits because too many texture operations are in flight", "fewer of them at a time"}},
    {"wait",
     {"waits for a fixed time, for the result of arithmetic before it",
      "more independent operations for each thread, or more warps"}},
}};

constexpr std::string_view kPrefix = "smsp__pcsamp_warps_issue_stalled_";
constexpr std::string_view kNotIssued = "_not_issued";

}  // namespace

StallName StallNameOf(std::string_view cupti_name) {
  StallName stall;
  if (cupti_name.starts_with(kPrefix)) cupti_name.remove_prefix(kPrefix.size());
  if (cupti_name.ends_with(kNotIssued)) {
    stall.is_not_issued = true;
    cupti_name.remove_suffix(kNotIssued.size());
  }
  stall.name = cupti_name;
  std::replace(stall.name.begin(), stall.name.end(), '_', ' ');
  return stall;
}

StallAdvice AdviceOf(std::string_view stall) {
  for (const KnownStall& known : kStalls) {
    if (known.name == stall) return known.advice;
  }
  return {};
}

std::string AdviceText(std::string_view stall) {
  const StallAdvice advice = AdviceOf(stall);
  std::string text(advice.meaning);
  if (advice.hint.empty()) return text;
  text += ". ";
  const size_t hint = text.size();
  text += advice.hint;
  text[hint] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[hint])));
  return text;
}

bool IsIssuing(std::string_view stall) { return stall == "selected" || stall == "not selected"; }

std::vector<uint64_t> DivideByWeights(uint64_t ns, std::span<const uint64_t> weights) {
  std::vector<uint64_t> parts(weights.size());
  unsigned __int128 whole = 0;
  for (const uint64_t weight : weights) whole += weight;
  if (whole == 0) return parts;
  std::vector<unsigned __int128> rests(weights.size());
  uint64_t left = ns;
  for (size_t i = 0; i < weights.size(); ++i) {
    const unsigned __int128 product = static_cast<unsigned __int128>(ns) * weights[i];
    parts[i] = static_cast<uint64_t>(product / whole);
    rests[i] = product % whole;
    left -= parts[i];
  }
  std::vector<uint32_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return rests[a] > rests[b]; });
  for (uint64_t i = 0; i < left; ++i) ++parts[order[i]];
  return parts;
}

uint64_t SampledInstruction::samples() const {
  uint64_t sum = 0;
  for (const auto& [stall, count] : stalls) sum = AddSaturated(sum, count.samples);
  return sum;
}

CodeSamples::CodeSamples(Analysis& analysis, bool with_lines)
    : analysis_(analysis),
      code_(std::make_unique<GpuCode>(analysis.model, analysis.symbolizer.finder().reading())) {
  AddSamples();
  if (functions_.empty()) return;
  if (!analysis.shown.filter_text.empty()) LeaveKernelsShown();
  if (with_lines) AddLines();
  for (uint32_t i = 0; i < functions_.size(); ++i) {
    const SampledFunction& function = functions_[i];
    by_kernel_[{function.instance.value, function.context_id, function.kernel}].push_back(i);
  }
  AddKernelTimes();
}

void CodeSamples::AddSamples() {
  using FunctionKey = std::tuple<uint64_t, uint32_t, uint64_t, std::string_view>;
  std::map<FunctionKey, std::map<uint64_t, SampledInstruction>> all;
  std::unordered_map<StringId, StallName> stalls;
  for (const GpuSample& sample : analysis_.GpuSamples()) {
    const std::string_view name = analysis_.model.Text(sample.function);
    SampledInstruction& at =
        all[{sample.instance.value, sample.context_id, sample.cubin_crc, name}][sample.offset];
    at.offset = sample.offset;
    const auto [stall, is_new] = stalls.try_emplace(sample.stall_reason);
    if (is_new) stall->second = StallNameOf(analysis_.model.Text(sample.stall_reason));
    CodeCount& count = at.stalls[stall->second.name];
    uint64_t& sum = stall->second.is_not_issued ? count.not_issued : count.samples;
    sum = AddSaturated(sum, sample.samples);
  }
  for (auto& [key, instructions] : all) {
    SampledFunction& function = functions_.emplace_back();
    function.instance = InstanceId{std::get<0>(key)};
    function.context_id = std::get<1>(key);
    function.cubin_crc = std::get<2>(key);
    function.name = function.kernel = std::get<3>(key);
    const size_t callee = function.name.find('$', 1);
    if (function.name.starts_with('$') && callee != std::string_view::npos) {
      function.kernel = function.name.substr(1, callee - 1);
      function.callee = function.name.substr(callee + 1);
    }
    for (auto& [offset, instruction] : instructions) {
      function.samples = AddSaturated(function.samples, instruction.samples());
      function.instructions.push_back(std::move(instruction));
    }
  }
  std::stable_sort(
      functions_.begin(), functions_.end(),
      [](const SampledFunction& a, const SampledFunction& b) { return a.samples > b.samples; });
}

// A sample names a kernel and not the launch: of one that runs within the part that is shown, all
// samples count.
void CodeSamples::LeaveKernelsShown() {
  std::set<Key> shown;
  const auto& kernels = analysis_.model.events.kernels;
  for (const GpuWork& work : analysis_.Work()) {
    if (work.kind != WorkKind::kKernel) continue;
    shown.insert({work.instance.value, kernels.Get<&Kernel::context_id>(work.index),
                  analysis_.model.Text(kernels.Get<&Kernel::name>(work.index))});
  }
  std::erase_if(functions_, [&](const SampledFunction& function) {
    return !shown.contains({function.instance.value, function.context_id, function.kernel});
  });
}

void CodeSamples::AddLines() {
  for (SampledFunction& function : functions_) {
    std::vector<uint64_t> offsets;
    for (const SampledInstruction& at : function.instructions) offsets.push_back(at.offset);
    auto lines = code_->LinesOf({function.instance, function.cubin_crc, function.name}, offsets);
    for (size_t i = 0; i < offsets.size(); ++i) {
      function.instructions[i].lines = std::move(lines[i]);
    }
  }
}

const CodeSamples::Functions& CodeSamples::Of(size_t kernel) {
  const auto& kernels = analysis_.model.events.kernels;
  const InstanceId instance = kernels.Get<&Kernel::instance>(kernel);
  const uint32_t context = kernels.Get<&Kernel::context_id>(kernel);
  const StringId name = kernels.Get<&Kernel::name>(kernel);
  const auto [known, is_new] = known_.try_emplace({instance.value, context, name});
  if (is_new) {
    static const Functions kNone;
    const auto found = by_kernel_.find({instance.value, context, analysis_.model.Text(name)});
    known->second = found == by_kernel_.end() ? &kNone : &found->second;
  }
  return *known->second;
}

void CodeSamples::AddKernelTimes() {
  if (functions_.empty()) return;
  std::map<const Functions*, std::pair<uint64_t, uint64_t>> times;  // ns, count
  for (const GpuWork& work : analysis_.Work()) {
    if (work.kind != WorkKind::kKernel) continue;
    const Functions& functions = Of(work.index);
    if (functions.empty()) continue;
    auto& [ns, count] = times[&functions];
    ns = AddSaturated(ns, work.duration_ns);
    ++count;
  }
  // Every part of every function of the name, in one division.
  for (const auto& [functions, time] : times) {
    std::vector<CodeCount*> parts;
    std::vector<uint64_t> weights;
    for (const uint32_t place : *functions) {
      SampledFunction& function = functions_[place];
      function.kernel_count = time.second;
      for (SampledInstruction& at : function.instructions) {
        for (auto& [stall, count] : at.stalls) {
          parts.push_back(&count);
          weights.push_back(count.samples);
        }
      }
    }
    const std::vector<uint64_t> divided = DivideByWeights(time.first, weights);
    for (size_t i = 0; i < parts.size(); ++i) parts[i]->ns = divided[i];
    for (const uint32_t place : *functions) {
      SampledFunction& function = functions_[place];
      for (const SampledInstruction& at : function.instructions) {
        for (const auto& [stall, count] : at.stalls) function.kernel_ns += count.ns;
      }
    }
  }
}

std::string ShortPlaceOf(const SourceFrame& frame) {
  std::string_view file = frame.file;
  if (const size_t slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
  if (file.empty()) return "?";
  return frame.line == 0 ? std::string(file) : Format("{}:{}", file, frame.line);
}

std::string StallFrameName(std::string_view stall) {
  return IsIssuing(stall) ? Format("[{}]", stall) : Format("[stall] {}", stall);
}

KernelParts::KernelParts(Analysis& analysis, CallTree& tree)
    : analysis_(analysis), tree_(tree), samples_(analysis) {}

std::vector<FrameId> KernelParts::FramesOf(const SampledFunction& function,
                                           const SampledInstruction& at) {
  std::vector<FrameId> frames;
  const auto add = [&](const std::string& name) {
    frames.push_back(analysis_.frames.Intern(name, FrameOrigin::kGpuWork));
  };
  if (!function.callee.empty()) add(Demangle(function.callee));
  if (at.lines.empty()) return frames;
  for (size_t i = at.lines.size() - 1; i-- > 0;) {
    add(at.lines[i].function.empty() ? "[inlined]" : Demangle(at.lines[i].function));
  }
  add(ShortPlaceOf(at.lines.front()));
  return frames;
}

const KernelParts::Parts& KernelParts::PartsOf(const CodeSamples::Functions& functions) {
  const auto [found, is_new] = parts_.try_emplace(&functions);
  if (!is_new) return found->second;
  std::map<std::vector<FrameId>, uint64_t> sums;
  for (const uint32_t place : functions) {
    const SampledFunction& function = samples_.functions()[place];
    for (const SampledInstruction& at : function.instructions) {
      std::vector<FrameId> frames = FramesOf(function, at);
      frames.emplace_back();
      for (const auto& [stall, count] : at.stalls) {
        if (count.samples == 0) continue;
        frames.back() = analysis_.frames.Intern(StallFrameName(stall), FrameOrigin::kGpuWork);
        sums[frames] += count.samples;
      }
    }
  }
  for (const auto& [frames, samples] : sums) found->second.push_back({frames, samples});
  return found->second;
}

bool KernelParts::Take(const GpuWork& kernel, PathId path) {
  if (samples_.empty()) return false;
  const CodeSamples::Functions& functions = samples_.Of(kernel.index);
  if (functions.empty()) return false;
  const Parts& parts = PartsOf(functions);
  if (parts.empty()) return false;
  taken_ns_[{path.value, &parts}] += kernel.duration_ns;
  tree_.Add(path, 0);
  return true;
}

void KernelParts::Finish() {
  std::map<const Parts*, uint64_t> paths_of;
  std::vector<uint64_t> weights;
  // A capture may be made to have many parts in many paths.
  uint64_t left = analysis_.call_trees.max_nodes;
  for (const auto& [where, ns] : taken_ns_) {
    const auto& [path, parts] = where;
    if (parts->size() > left) {
      ++analysis_.call_trees.frames_left_out;
      tree_.Add(PathId{path}, ns, 0);
      continue;
    }
    left -= parts->size();
    ++paths_of[parts];
    weights.clear();
    for (const Part& part : *parts) weights.push_back(part.samples);
    const std::vector<uint64_t> divided = DivideByWeights(ns, weights);
    for (size_t i = 0; i < divided.size(); ++i) {
      if (divided[i] == 0) continue;
      PathId inner{path};
      for (const FrameId frame : (*parts)[i].frames) inner = tree_.Child(inner, frame);
      tree_.Add(inner, divided[i], 0);
    }
  }
  for (const auto& [parts, paths] : paths_of) {
    if (paths > 1) ++tree_.kernels_by_estimate;
  }
}

}  // namespace xpu
