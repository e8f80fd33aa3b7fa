// Split DWARF: the units whose debug information the compiler left in .dwo files, or that were
// gathered in a .dwp file beside the program.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "symbolize/dwarf/debug_file.h"
#include "symbolize/dwarf/mapped_elf.h"
#include "symbolize/dwarf/sections.h"

namespace xpu::dwarf {

// A file of split DWARF and its units.
class SplitFile {
 public:
  // nullptr: not a regular file, or not an ELF file.
  static std::unique_ptr<SplitFile> Open(const std::string& path, Access access);

  // The unit with that id as a file of its own; nullptr: none.
  DebugFile* Find(uint64_t split_id);

 private:
  explicit SplitFile(std::unique_ptr<MappedElf> file);
  void ReadUnitIndex();

  std::unique_ptr<MappedElf> file_;
  SectionStore store_;
  std::unordered_map<uint64_t, Sections> indexed_;  // of a .dwp: what of it each unit has
  std::unordered_map<uint64_t, std::unique_ptr<DebugFile>> units_;
};

class SplitUnits {
 public:
  // `path`: of the program, which FILE.dwp is beside; empty: no file is opened. `folder`: what
  // relative paths count from when the compiler's folder is not here.
  SplitUnits(std::string path, std::string folder, Access access)
      : path_(std::move(path)), folder_(std::move(folder)), access_(access) {}

  // The unit that `skeleton` stands for; nullptr: not found.
  const Unit* Find(const Unit& skeleton);

 private:
  SplitFile* Open(const std::string& path);
  DebugFile* FindFile(const Unit& skeleton);

  std::string path_;
  std::string folder_;
  Access access_;
  std::map<std::string, std::unique_ptr<SplitFile>> files_;  // nullptr: cannot be opened
};

}  // namespace xpu::dwarf
