#include "report/views/timeline/trace_gpu_code.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/query/kernel_parts.h"

namespace xpu {
namespace {

constexpr size_t kMostTexts = 3;

// "wait 61 %, selected 22 %": those of most samples.
std::string LargestOf(const std::map<std::string, uint64_t>& samples, uint64_t whole) {
  std::vector<std::pair<std::string, uint64_t>> sorted(samples.begin(), samples.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (sorted.size() > kMostTexts) sorted.resize(kMostTexts);
  std::string text;
  for (const auto& [name, count] : sorted) {
    AppendFormat(text, "{}{} {:.0f} %", text.empty() ? "" : ", ", name,
                 100.0 * static_cast<double>(count) / static_cast<double>(whole));
  }
  return text;
}

}  // namespace

TraceGpuCode::Texts TraceGpuCode::MakeTexts(const CodeSamples::Functions& functions) const {
  Texts texts;
  std::map<std::string, uint64_t> lines;
  std::map<std::string, uint64_t> stalls;
  for (const uint32_t place : functions) {
    for (const SampledInstruction& at : samples_.functions()[place].instructions) {
      const uint64_t samples = at.samples();
      texts.samples = AddSaturated(texts.samples, samples);
      if (!at.lines.empty()) lines[ShortPlaceOf(at.lines.front())] += samples;
      for (const auto& [stall, count] : at.stalls) stalls[stall] += count.samples;
    }
  }
  if (texts.samples == 0) return texts;
  texts.line = LargestOf(lines, texts.samples);
  texts.stalls = LargestOf(stalls, texts.samples);
  return texts;
}

void TraceGpuCode::WriteArgs(const GpuWork& work, TraceSink& sink) {
  if (work.kind != WorkKind::kKernel || samples_.empty()) return;
  const CodeSamples::Functions& functions = samples_.Of(work.index);
  if (functions.empty()) return;
  const auto [known, is_new] = texts_.try_emplace(&functions);
  if (is_new) known->second = MakeTexts(functions);
  const Texts& texts = known->second;
  if (texts.samples == 0) return;
  sink.Arg("samples of all kernels of the name", texts.samples);
  if (!texts.line.empty()) sink.ArgText("sampled lines", texts.line);
  sink.ArgText("sampled stalls", texts.stalls);
}

}  // namespace xpu
