// The source lines and inlined functions of an ELF file, from its DWARF.
//
// An index of compilation units and functions, made once per file; then a look-up reads the one
// function that an address is in. libdw's own look-ups (dwfl_module_addrinfo, dwarf_getscopes) take
// 100 to 3000 us an address.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"

namespace xpu {

// One function at an address. Texts live as long as the DebugInfo.
struct SourceFrame {
  // The linkage name (mangled) where DWARF has one, else the plain name without its scope:
  // compilers give what is local to a unit none. Empty: assembly, of which only the lines are
  // known.
  std::string_view function;
  std::string_view file;    // as the compiler was given it, with its directory; empty: unknown
  uint32_t line = 0;        // 0: unknown
  bool is_inlined = false;  // into the next one
};

struct SourceFunction;  // source_function.h

class DebugInfo {
 public:
  struct Options {
    // Opens the file that shared DWARF was moved into by dwz (.gnu_debugaltlink): where to look is
    // known to the caller. An empty path: not found.
    std::string alternate_path;
    // The files may be changed by others while they are read: nothing of them is mapped.
    bool copied = false;
  };

  // `path`: a regular ELF file. No file but it, the alternate one and split DWARF is opened, no
  // network, no debuginfod. An error: it has no DWARF, or none that can be read.
  static Result<DebugInfo> Open(const std::string& path, const Options& options);
  // The same over bytes, which must outlive this: no split DWARF.
  static Result<DebugInfo> Parse(std::string_view bytes, std::string_view name);

  DebugInfo(DebugInfo&&) noexcept;
  DebugInfo& operator=(DebugInfo&&) noexcept;
  ~DebugInfo();

  // The functions at `link_address`, innermost first; the last one is not inlined. Empty: DWARF
  // says nothing of the address. One thread at a time; different files at once.
  const std::vector<SourceFrame>& At(uint64_t link_address);

  // The functions that hold one of `link_addresses`, each once, in the order of asking: what
  // WriteDebugSections (debug_writer.h) makes a part of a slice from.
  std::vector<SourceFunction> FunctionsAt(std::span<const uint64_t> link_addresses);

 private:
  class Impl;
  static Result<DebugInfo> Of(std::unique_ptr<Impl> impl, std::string_view name);
  explicit DebugInfo(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu
