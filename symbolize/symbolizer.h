// Addresses to functions: (file, build-id, file offset) in, names and lines out.
//
// Each address of each file is looked up once. What is known to be wanted is looked up in one go:
// files in parallel, each forgotten when it is finished, so that memory is bounded by the largest
// few. What is asked for beyond that opens its file again and keeps it open. Used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/ids.h"
#include "symbolize/file_finder.h"
#include "symbolize/module_symbols.h"

namespace xpu {

using ModuleId = Id<struct ModuleTag, uint32_t>;

class Symbolizer {
 public:
  struct Options {
    FileFinder::Options files = {};
    ModuleSymbols::Detail detail = ModuleSymbols::Detail::kNames;
    unsigned threads = 0;  // 0: one for each CPU
  };
  struct Problem {
    FileProblem kind = FileProblem::kNone;
    ModuleId module;
    std::string path;
    std::string message;
  };

  Symbolizer() : Symbolizer(Options{}) {}
  explicit Symbolizer(Options options);
  ~Symbolizer();

  // The id of a file. `build_id` raw, empty when the recording has none (then any file of that
  // path is believed). Opens nothing yet.
  ModuleId Module(std::string_view path, std::string_view build_id);
  // Its slice, in parts, and older ones for what it does not know. The bytes must outlive this.
  // Before the first look-up in the module.
  void SetSlice(ModuleId module, RecordedFile::SliceParts parts,
                std::vector<RecordedFile::SliceParts> older = {});

  // Adds an address to those that ResolveRequested looks up.
  void Want(ModuleId module, uint64_t file_offset);
  void ResolveRequested();
  // Those that wait for it: ascending, each once.
  std::vector<uint64_t> Wanted(ModuleId module) const;

  // The functions that hold the byte at `file_offset`, innermost first; the last one is not
  // inlined. Empty: no name is known. The texts live as long as the symbolizer.
  std::span<const CodeFrame> FramesAt(ModuleId module, uint64_t file_offset);
  // The linkage name (mangled) of the last of them.
  std::optional<std::string_view> FunctionAt(ModuleId module, uint64_t file_offset);

  // One for each file that was asked for and cannot give names, in the order of the ids.
  std::vector<Problem> problems() const;
  // Files that were asked for lines and have none.
  size_t files_without_lines() const;

  const RecordedFile& operator[](ModuleId module) const;
  size_t size() const { return modules_.size(); }
  const FileFinder& finder() const { return finder_; }

 private:
  class NamedModule;

  FileFinder finder_;
  ModuleSymbols::Detail detail_;
  unsigned threads_;
  std::vector<std::unique_ptr<NamedModule>> modules_;  // by id - 1
  std::unordered_map<std::string, ModuleId> ids_;      // path, '\0', build-id
};

}  // namespace xpu
