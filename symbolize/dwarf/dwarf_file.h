// The DWARF of an ELF file, opened by libdw (elfutils): what perf and systemtap read it with, and
// others keep up with DWARF's versions and vendors' extensions.
//
// What libdw 0.188 lacks: sections compressed with Zstandard are inflated here, but not those of
// split units, which it opens by itself; .dwp files are not read (module_symbols.h says so of a
// program that has one). It opens two kinds of files by itself:
// - The one that dwz moved shared entries into. Never here: each file has an alternate one, an
//   empty one where the caller names none. (With NULL libdw opens it all the same, and waits for
//   ever if that is a pipe.)
// - Split units (.dwo), by the paths that the file holds. MaySplitBeOpened says whether that would
//   be a regular file; libdw opens it later, so a file that another process may change must be read
//   in a process of its own (reader_process.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <elfutils/libdw.h>

#include "format/base/handle.h"
#include "format/base/open_file.h"
#include "format/base/result.h"
#include "symbolize/elf/elf_image.h"

namespace xpu::dwarf {

class DwarfFile {
 public:
  // `name`: what errors call it. kInvalid: not an ELF file; kNotFound: it has no DWARF. The file
  // is mapped: debug information is large and read in few places, and copying it takes as long as
  // reading what is wanted of it. The price: truncating it while it is read ends the process
  // (SIGBUS).
  static Result<std::unique_ptr<DwarfFile>> Open(RegularFile file, std::string_view name);
  // `bytes` must outlive this.
  static Result<std::unique_ptr<DwarfFile>> Parse(std::string_view bytes, std::string_view name);
  // One that says nothing.
  static std::unique_ptr<DwarfFile> Empty();

  Dwarf* get() const { return dwarf_.get(); }
  const std::vector<ElfSegment>& segments() const { return segments_; }
  // Which libdw takes the paths of split units from; empty: not known.
  const std::string& directory() const { return directory_; }

 private:
  DwarfFile() = default;
  static Result<std::unique_ptr<DwarfFile>> Begin(std::unique_ptr<DwarfFile> self,
                                                  std::string_view name);

  UniqueFd fd_;
  std::string directory_;
  std::string inflated_;  // an image of its sections; empty: libelf reads the file
  Handle<Elf, elf_end> elf_;
  Handle<Dwarf, dwarf_end> dwarf_;
  std::vector<ElfSegment> segments_;
};

// How many bytes of a section there are to read, or of that of split units; 0: none.
uint64_t BytesOf(Dwarf* dwarf, std::string_view section);

// The texts of files. libdw gives pointers into sections that need not end with a zero.
class Texts {
 public:
  void Add(Dwarf* dwarf);
  // Up to the zero, within the section; empty: no section of these files holds it. No name is
  // longer than a mebibyte: a search through a damaged table could cost all of it each time.
  std::string_view At(const char* text) const;

 private:
  std::map<const char*, const char*> sections_;  // begin to end
};

// Whether the split unit of a skeleton may be asked for: every path that libdw will try is a
// regular file or not there. `directory`: of the skeleton's file; empty: not known, as to libdw.
bool MaySplitBeOpened(Dwarf_Die skeleton, const std::string& directory);

}  // namespace xpu::dwarf
