// --annotate: the source lines and machine instructions of kernels, each with its time and what
// warps waited for there.
#include <algorithm>
#include <optional>

#include "format/base/counted.h"
#include "format/base/text.h"
#include "report/base/text.h"
#include "report/query/code_samples.h"
#include "report/query/kernel_code.h"
#include "report/views/view.h"
#include "symbolize/demangle.h"

namespace xpu {
namespace {

constexpr size_t kMostStalls = 3;  // of a line
constexpr size_t kBarWidth = 10;

// "wait 61%, selected 22%"
std::string StallText(const StallSums& stalls) {
  const uint64_t whole = SumOf(stalls);
  std::string text;
  for (const auto& [stall, samples] : SortedStalls(stalls)) {
    if (samples == 0 || std::count(text.begin(), text.end(), ',') + 1 >= int{kMostStalls}) break;
    AppendFormat(text, "{}{} {:.0f}%", text.empty() ? "" : ", ", stall, PercentOf(samples, whole));
  }
  return text;
}

std::string BarOf(uint64_t part, uint64_t whole) {
  const auto filled = static_cast<size_t>(PercentOf(part, whole) / 100 * kBarWidth + 0.5);
  return std::string(filled, '#') + std::string(kBarWidth - std::min(filled, kBarWidth), ' ');
}

// The annotation of one kernel, in all processes, contexts and modules that are alike.
class Annotation {
 public:
  Annotation(const Analysis& analysis, const GpuNames& names, CodeSamples& samples,
             const std::optional<Disassembler>& disassembler, Output& output)
      : analysis_(analysis),
        names_(names),
        samples_(samples),
        disassembler_(disassembler),
        output_(output),
        sources_(analysis.sources) {}

  const SourceLines& sources() const { return sources_; }

  void Write(const SampledFunction& function) {
    function_ = &function;
    WriteHead();
    WriteStalls();
    WriteLines();
    WriteInstructions();
    output_.Write("\n");
  }

 private:
  void WriteHead() {
    const SampledFunction& function = *function_;
    std::string name = names_.KernelName(function.kernel);
    if (!function.callee.empty()) AppendFormat(name, " > {}", Demangle(function.callee));
    std::string text = Format("{} {}", WithThousands(function.samples),
                              ForCount(function.samples, "{sample|samples}"));
    if (function.kernel_count > 0) {
      AppendFormat(text, ", {} ns in {}", WithThousands(function.kernel_ns),
                   Counted(function.kernel_count, "kernel", "kernels"));
    }
    AppendFormat(text, ", module {:x}", function.cubin_crc);
    output_.Write(ShownText::Of("{}\n  {}\n\n", name, text));
  }

  void WriteStalls() {
    StallSums sums;
    for (const SampledInstruction& at : function_->instructions) AddStalls(at, sums);
    for (const auto& [stall, samples] : SortedStalls(sums)) {
      const double share = PercentOf(samples, function_->samples);
      if (share < 1) break;
      output_.Write(ShownText::Of("  {:5.1f} %  {:<20} {}\n", share, stall, AdviceText(stall)));
    }
    output_.Write("\n");
  }

  // Writes the lines in order of file and line.
  void WriteLines() {
    const CodeLines lines = LinesOf(*function_);
    std::string_view file;
    for (const auto& [place, stalls] : lines) {
      if (place.first != file) {
        file = place.first;
        output_.Write(ShownText::Of("  {}\n", file));
      }
      const uint64_t samples = SumOf(stalls);
      output_.Write(ShownText::Of("  {} {:5.1f} %  {:>5}  {:<58}  {}\n",
                                  BarOf(samples, function_->samples),
                                  PercentOf(samples, function_->samples), place.second,
                                  sources_.Line(place.first, place.second), StallText(stalls)));
    }
    if (lines.empty()) {
      output_.Write(
          "  no source lines: compile with nvcc -lineinfo, or this is a library's code\n");
    }
    output_.Write("\n");
  }

  void WriteInstructions() {
    for (const CodeInstruction& each :
         InstructionsOf(analysis_.model, *function_, samples_.code(), disassembler_)) {
      WriteInstruction(each);
    }
  }

  void WriteInstruction(const CodeInstruction& each) {
    std::string share(kBarWidth + 8, ' ');
    std::string place;
    StallSums stalls;
    if (const SampledInstruction* at = each.sampled; at != nullptr) {
      const uint64_t samples = at->samples();
      share = Format("{} {:5.1f} %", BarOf(samples, function_->samples),
                     PercentOf(samples, function_->samples));
      AddStalls(*at, stalls);
      if (!at->lines.empty()) place = ShortPlaceOf(at->lines.front());
    }
    output_.Write(ShownText::Of("  {}  {:#06x}  {:<50}  {:<20}  {}\n", share, each.offset,
                                each.text, place, StallText(stalls)));
  }

  const Analysis& analysis_;
  const GpuNames& names_;
  CodeSamples& samples_;
  const std::optional<Disassembler>& disassembler_;
  Output& output_;
  const SampledFunction* function_ = nullptr;
  SourceLines sources_;
};

void WriteAnnotation(Analysis& analysis, const std::string& wanted, KernelNames kernel_names,
                     Output& output, std::string& notes) {
  Result<NamePattern> pattern = NamePattern::Compile(wanted, "--annotate");
  if (!pattern.ok()) return;  // the command line was checked
  CodeSamples samples(analysis);
  const GpuNames names(analysis, kernel_names);
  const std::optional<Disassembler> disassembler = Disassembler::Find();
  Annotation annotation(analysis, names, samples, disassembler, output);
  bool has_any = false;
  for (const SampledFunction& function : samples.functions()) {
    if (!pattern->FoundIn(names.KernelName(function.kernel))) continue;
    has_any = true;
    annotation.Write(function);
  }
  if (samples.empty() && !analysis.shown.filter_text.empty()) {
    AppendFormat(notes, "no kernels with samples of GPU code match {}\n",
                 analysis.shown.filter_text);
  } else if (samples.empty()) {
    notes +=
        "the capture has no samples of GPU code\n  hint: xpu-record --gpu-samples takes them\n";
  } else if (!has_any) {
    notes += Format(
        "no kernel with samples matches '{}'\n  hint: --table gpu_function_sum lists "
        "them\n",
        wanted);
  } else if (!disassembler) {
    notes +=
        "instructions are shown by their offsets only: nvdisasm is not installed\n"
        "  hint: it is part of the CUDA Toolkit; PATH or CUDA_HOME leads to it\n";
  }
  if (const auto& files = annotation.sources().unknown_files(); !files.empty()) {
    notes += Format(
        "the text of {} is neither in the capture nor here{}\n  hint: xpu-record --gpu-samples "
        "--sources=hit stores it\n",
        Counted(files.size(), "source file", "source files"),
        files.size() == 1 ? Format(": {}", ForOneLine(*files.begin())) : "");
  }
  for (const std::string& failure : samples.code().failures()) notes += ForOneLine(failure) + "\n";
}

}  // namespace

View AnnotateView() {
  return {
      .option = "--annotate",
      .help = "lines and instructions of kernels, what they wait for",
      .value = "REGEX",
      .write =
          [](const ViewInput& input) {
            WriteAnnotation(input.analysis, input.options.value, input.options.tree.kernel_names,
                            input.output, input.notes);
          },
  };
}

}  // namespace xpu
