// The lines and instructions of the kernels in a flame graph, for the panel that a click on one
// opens. In the data of the page:
//
//   code      null: no kernel that is shown has samples; otherwise {kernels, files, stalls,
//             leftOut, linesLeftOut, instructionsLeftOut, hasTexts}
//     kernels    [{name, callee, samples, ns, count, lines, instructions}]: functions, most samples
//                first; name: as in the frames of the kernel; callee: what it calls, or ""; ns and
//                count: of the kernels that ran
//       lines         [[file, line, stalls]], by file and line; file: an index
//       instructions  [[offset, text, file, line, stalls]], by offset; text: of SASS, or "";
//                     file: -1 where it is not known
//       In both, stalls are [stall, samples, stall, samples, ...], most first; stall: an index.
//     files      names of files; "sources" in the data has what is known of their texts
//     stalls     [{name, advice}]: what each means and what usually helps, in a sentence
//     leftOut    how many functions with samples are not there, as there are too many;
//                linesLeftOut, instructionsLeftOut: of those that are, how many of each
//     hasTexts   false: there was no disassembler
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_tree.h"
#include "report/analysis/gpu_names.h"
#include "report/query/code_samples.h"
#include "report/query/kernel_code.h"
#include "report/views/flame_graph/page_data.h"

namespace xpu {

class FlameCode {
 public:
  // A page has to be opened quickly, and a disassembler is started for each function.
  static constexpr size_t kMostFunctions = 40;
  static constexpr size_t kMostInstructions = 2000;  // of a function
  static constexpr size_t kMostLines = 2000;

  // Collects the kernels that have frames in `tree`; nullopt: none has samples.
  static std::optional<FlameCode> Of(Analysis& analysis, const CallTree& tree, KernelNames names);

  bool HasFile(std::string_view path) const { return file_numbers_.contains(path); }
  void Write(PageData& data) const;

 private:
  using Stalls = std::vector<std::pair<size_t, uint64_t>>;  // most first
  struct Line {
    int64_t file = -1;
    uint32_t line = 0;
    uint64_t samples = 0;
    Stalls stalls;
  };
  struct Instruction {
    uint64_t offset = 0;
    std::string text;
    Line at;
  };
  struct Function {
    std::string name;
    std::string callee;
    uint64_t samples = 0;
    uint64_t ns = 0;
    uint64_t count = 0;
    std::vector<Line> lines;
    std::vector<Instruction> instructions;
  };

  void Add(const Model& model, const SampledFunction& function, std::string name, GpuCode& code,
           const std::optional<Disassembler>& disassembler);
  Line LineOf(std::string_view file, uint32_t line, const StallSums& stalls);

  std::vector<Function> functions_;
  std::map<std::string, int64_t, std::less<>> file_numbers_;
  std::vector<std::string> files_;
  std::map<std::string, size_t> stall_numbers_;
  std::vector<std::string> stalls_;
  size_t left_out_ = 0;
  size_t lines_left_out_ = 0;
  size_t instructions_left_out_ = 0;
  bool has_texts_ = false;
};

// "code":... `code`: nullptr: there is none.
void WriteCode(const FlameCode* code, PageData& data);

}  // namespace xpu
