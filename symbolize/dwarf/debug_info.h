// The source lines and inlined functions of an ELF file, from its DWARF, which libdw (elfutils)
// reads.
//
// An index of units and functions, made once per file; then a look-up reads the one function that
// an address is in. libdw's own look-ups (dwfl_module_addrinfo, dwarf_getscopes) take 100 to 3800
// us an address, this 12 to 100 where llvm-symbolizer takes 38 to 280 (tests/bench/README.md).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "symbolize/dwarf/debug_source.h"

namespace xpu {

// Where libdw runs.
enum class DebugReading : uint8_t {
  kHere,      // in this process, for files that are trusted: tests and benches
  kConfined,  // in a process of its own: dwarf/reader_process.h, dwarf/debug_reader.h
};

// Lines by source file, as the compiler was given it.
using FileLines = std::map<std::string, std::set<uint32_t>>;

class DebugInfo {
 public:
  struct Options {
    // The file that shared DWARF was moved into by dwz (.gnu_debugaltlink): where to look is known
    // to the caller. Empty: not found.
    std::string alternate_path = {};
    DebugReading reading = DebugReading::kHere;
    std::string name = {};  // what errors call the file; empty: its path
  };

  // `path`: a regular ELF file. No file but it, the alternate one and split units is opened, no
  // network, no debuginfod. An error: it has no DWARF, or none that can be read.
  static Result<DebugInfo> Open(const std::string& path, const Options& options);
  // The same over bytes, which must outlive this.
  static Result<DebugInfo> Parse(std::string_view bytes, std::string_view name,
                                 DebugReading reading = DebugReading::kHere);

  // Reads these addresses at once: a process that reads is asked once.
  void Prepare(std::span<const uint64_t> link_addresses);

  // The functions at `link_address`, innermost first; the last one is not inlined. Empty: DWARF
  // says nothing of the address. One thread at a time; different files at once.
  const std::vector<SourceFrame>& At(uint64_t link_address);

  // The lines of `link_addresses`, those of inlined functions and of their calls too; of more than
  // `most` lines some.
  FileLines LinesAt(std::span<const uint64_t> link_addresses, size_t most);

  // The functions that hold one of `link_addresses`, each once, in the order of asking: what
  // WriteDebugSections (debug_writer.h) makes a part of a slice from.
  std::vector<SourceFunction> FunctionsAt(std::span<const uint64_t> link_addresses);

  // Why nothing more is said: the process that reads it failed. Empty: it did not.
  const std::string& failure() const { return source_->failure(); }

 private:
  explicit DebugInfo(std::unique_ptr<dwarf::DebugSource> source) : source_(std::move(source)) {}

  std::unique_ptr<dwarf::DebugSource> source_;
  std::unordered_map<uint64_t, std::vector<SourceFrame>> answers_;
};

}  // namespace xpu
