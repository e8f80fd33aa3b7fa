// The code of kernels as text, as views list it: source lines, and machine instructions by the CUDA
// Toolkit's nvdisasm.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "report/model/source_parts.h"
#include "report/query/code_samples.h"

namespace xpu {

// The text of source lines: those that a capture carries (`xpu-record --sources`), else those of
// files that are here.
class SourceLines {
 public:
  // The text that `sources` refers to must outlive this.
  explicit SourceLines(const SourceParts& sources);

  // Without its line feed, as long as this lives. Empty: it is not known. A file of which the
  // capture has lines is not looked for here, where it may be another one; of those here only
  // regular files whose names are those of sources are read, since the capture may be anybody's.
  std::string_view Line(std::string_view file, uint32_t line);
  // Returns the line if the capture has it.
  std::string_view StoredLine(std::string_view file, uint32_t line) const;
  // Files that lines were asked for and that are not known.
  const std::set<std::string, std::less<>>& unknown_files() const { return unknown_; }

 private:
  static std::vector<std::string> LinesHere(const std::string& path);

  std::unordered_map<std::string_view, std::map<uint32_t, std::string_view>> stored_;
  std::map<std::string, std::vector<std::string>, std::less<>> here_;
  std::set<std::string, std::less<>> unknown_;
};

// GPU machine code as text, by the CUDA Toolkit's nvdisasm where it is installed. xpu has no
// disassembler of its own: NVIDIA documents no encodings.
//
// The code comes from a capture, so nvdisasm runs as nobody where xpu-report runs as root, with
// limits on time, memory and output, and reads a file that has no name.
class Disassembler {
 public:
  // The one in $PATH, $CUDA_HOME/bin or /usr/local/cuda/bin; nullopt: there is none.
  static std::optional<Disassembler> Find();
  explicit Disassembler(std::string path) : path_(std::move(path)) {}

  // `architecture`: 90 of a compute capability of 9.0. By offset, "FFMA R2, R2, R3, R4". Empty: it
  // failed.
  std::map<uint64_t, std::string> Texts(std::span<const std::byte> code,
                                        uint32_t architecture) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Parses the output of nvdisasm, which has "/*0010*/   MOV R1, R2 ;" in some lines.
std::map<uint64_t, std::string> ParseDisassembly(std::string_view text);

// The lines and instructions of a function that has samples, as views list them.

using StallSums = std::map<std::string, uint64_t>;

void AddStalls(const SampledInstruction& at, StallSums& sums);
uint64_t SumOf(const StallSums& stalls);
// Most samples first.
std::vector<std::pair<std::string, uint64_t>> SortedStalls(const StallSums& stalls);

// The key is file and line, as the code has them: inlined code counts where it is written.
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
