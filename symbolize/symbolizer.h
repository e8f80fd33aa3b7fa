// Addresses to function names: (file, build-id, file offset) in, name out.
//
// Reads the recorded files and /usr/lib/debug, nothing else: no network, no debuginfod, no live
// process. A file whose build-id differs from the recorded one is refused: its names would be
// wrong. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/ids.h"
#include "symbolize/elf/elf_image.h"
#include "symbolize/elf/symbol_table.h"

namespace xpu {

using ModuleId = Id<struct ModuleTag, uint32_t>;

class Symbolizer {
 public:
  struct Options {
    std::string debug_directory = "/usr/lib/debug";  // holds .build-id/ab/cdef.debug
  };
  enum class ProblemKind : uint8_t {
    kMissing,     // the file cannot be opened
    kUnreadable,  // it is not an ELF file
    kMismatch,    // it is another build than the one recorded
    kNoSymbols,   // it is the right file but has no symbol table
  };
  struct Problem {
    ProblemKind kind;
    std::string path;
    std::string message;
  };

  Symbolizer() : Symbolizer(Options{}) {}
  explicit Symbolizer(Options options) : options_(std::move(options)) {}

  // The id of a file. `build_id` raw, empty when the recording has none (then any file of that
  // path is believed). Opens nothing yet.
  ModuleId Module(std::string_view path, std::string_view build_id);

  // The linkage name (mangled) of the function that holds the byte at `file_offset`. The text
  // lives as long as the symbolizer.
  std::optional<std::string_view> FunctionAt(ModuleId module, uint64_t file_offset);

  // One for each file that was asked for and cannot give names, in the order of asking.
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  struct LoadedModule {
    std::string path;
    std::string build_id;
    bool tried = false;
    std::optional<ElfFile> file;
    std::optional<ElfFile> debug_file;
    std::unique_ptr<SymbolTable> symbols;
  };

  void Load(LoadedModule& module);
  std::optional<ElfFile> OpenDebugFile(std::string_view build_id) const;

  Options options_;
  std::vector<std::unique_ptr<LoadedModule>> modules_;  // by id - 1
  std::unordered_map<std::string, ModuleId> ids_;       // path, '\0', build-id
  std::vector<Problem> problems_;
};

// "ab12..." of raw bytes.
std::string ToHex(std::string_view bytes);

}  // namespace xpu
