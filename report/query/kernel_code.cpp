#include "report/query/kernel_code.h"

#include <algorithm>

#include "format/base/saturated.h"

namespace xpu {
namespace {

// What has no samples is shown only within four instructions of what has some.
constexpr uint64_t kNearBytes = 4 * 16;

// 90 of a compute capability of 9.0; 0: it is not known.
uint32_t ArchitectureOf(const Model& model, InstanceId instance) {
  for (const Device& device : model.events.devices) {
    if (device.instance != instance) continue;
    return device.compute_capability_major * 10 + device.compute_capability_minor;
  }
  return 0;
}

}  // namespace

void AddStalls(const SampledInstruction& at, StallSums& sums) {
  for (const auto& [stall, count] : at.stalls) {
    sums[stall] = AddSaturated(sums[stall], count.samples);
  }
}

uint64_t SumOf(const StallSums& stalls) {
  uint64_t sum = 0;
  for (const auto& [stall, samples] : stalls) sum = AddSaturated(sum, samples);
  return sum;
}

std::vector<std::pair<std::string, uint64_t>> SortedStalls(const StallSums& stalls) {
  std::vector<std::pair<std::string, uint64_t>> sorted(stalls.begin(), stalls.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

CodeLines LinesOf(const SampledFunction& function) {
  CodeLines lines;
  for (const SampledInstruction& at : function.instructions) {
    if (at.lines.empty() || at.lines.front().file.empty()) continue;
    const SourceFrame& frame = at.lines.front();
    AddStalls(at, lines[{frame.file, frame.line}]);
  }
  return lines;
}

std::vector<CodeInstruction> InstructionsOf(const Model& model, const SampledFunction& function,
                                            GpuCode& code,
                                            const std::optional<Disassembler>& disassembler) {
  std::map<uint64_t, std::string> texts;
  const uint32_t architecture = ArchitectureOf(model, function.instance);
  if (disassembler && architecture != 0) {
    texts = disassembler->Texts(code.CodeOf({function.instance, function.cubin_crc, function.name}),
                                architecture);
  }
  std::map<uint64_t, const SampledInstruction*> all;
  for (const SampledInstruction& at : function.instructions) all[at.offset] = &at;
  for (const auto& [offset, text] : texts) all.try_emplace(offset, nullptr);
  std::vector<CodeInstruction> instructions;
  for (const auto& [offset, at] : all) {
    const auto from = all.lower_bound(offset - std::min(offset, kNearBytes));
    const auto to = all.upper_bound(AddSaturated(offset, kNearBytes));
    const bool is_near =
        std::any_of(from, to, [](const auto& each) { return each.second != nullptr; });
    if (!is_near) continue;
    const auto text = texts.find(offset);
    instructions.push_back({offset, text == texts.end() ? std::string() : text->second, at});
  }
  return instructions;
}

}  // namespace xpu
