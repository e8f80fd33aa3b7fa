// The lines and instructions of a function that has samples, as views list them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/query/code_samples.h"
#include "report/query/disassembly.h"

namespace xpu {

using StallSums = std::map<std::string, uint64_t>;

void AddStalls(const SampledInstruction& at, StallSums& sums);
uint64_t SumOf(const StallSums& stalls);
// Most samples first.
std::vector<std::pair<std::string, uint64_t>> SortedStalls(const StallSums& stalls);

// By file and line, as the code has them: what is inlined counts where it is written.
using CodeLines = std::map<std::pair<std::string_view, uint32_t>, StallSums>;
CodeLines LinesOf(const SampledFunction& function);

struct CodeInstruction {
  uint64_t offset = 0;
  std::string text;                             // empty: there is no disassembler, or it failed
  const SampledInstruction* sampled = nullptr;  // nullptr: no sample is at it
};
// In order: those with samples, and what is near them where there is a disassembler.
std::vector<CodeInstruction> InstructionsOf(const Model& model, const SampledFunction& function,
                                            GpuCode& code,
                                            const std::optional<Disassembler>& disassembler);

}  // namespace xpu
