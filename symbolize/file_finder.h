// Where the file with the symbols or the debug information of a recorded file is.
//
// Only regular files are opened. A build-id that differs from the recorded one is refused, whatever
// the file is called. Nothing is ever downloaded unless a Debuginfod is given. Safe to use from any
// thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbolize/debuginfod.h"
#include "symbolize/dwarf/debug_info.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {

// Why a file gives no names.
enum class FileProblem : uint8_t {
  kNone,
  kMissing,     // it cannot be opened
  kUnreadable,  // it is not an ELF file
  kMismatch,    // it is another build than the one recorded
  kNoSymbols,   // it is the right file but has no symbol table
  kSlice,       // the capture's own slice is damaged
  kLines,       // its debug information cannot be read: names without lines
};

struct FoundFile {
  std::string path;
  ElfFile file;
};

// A file, or why there is none: the message names the file, and of a refused one both build-ids.
struct FileSearch {
  std::optional<FoundFile> found;
  FileProblem problem = FileProblem::kNone;
  std::string message;
};

class FileFinder {
 public:
  struct Options {
    std::string symfs;  // a directory that holds the recorded machine's files; empty: none
    std::vector<std::string> debug_directories = {"/usr/lib/debug"};
    std::shared_ptr<Debuginfod> debuginfod;      // nullptr: never asked
    DebugReading reading = DebugReading::kHere;  // of what is found
  };

  explicit FileFinder(Options options) : options_(std::move(options)) {}

  // The file that was mapped: the recorded path, below --symfs, in a tree of build-ids, debuginfod.
  // `build_id` raw; empty: the recording has none, any file of that path is believed.
  FileSearch Program(const std::string& path, std::string_view build_id) const;

  // The separate debug file of a build: trees of build-ids, then the name in .gnu_debuglink of
  // `program` (may be nullptr), then debuginfod. kNone without a file: there is none.
  FileSearch Debug(const std::string& path, std::string_view build_id,
                   const ElfImage* program) const;

  // The file that dwz moved shared parts of `debug` into; empty: none is named or found.
  std::string Alternate(const FoundFile& debug) const;

  DebugReading reading() const { return options_.reading; }
  // Empty: there is none.
  std::string FirstDebugDirectory() const {
    return options_.debug_directories.empty() ? std::string() : options_.debug_directories.front();
  }

 private:
  std::vector<std::string> ProgramPaths(const std::string& path, std::string_view build_id) const;
  std::vector<std::string> LinkedPaths(const std::string& path, std::string_view name) const;
  // `suffix`: ".debug" or nothing.
  std::vector<std::string> TreePaths(std::string_view build_id, std::string_view suffix) const;
  std::string Ask(std::string_view what, std::string_view build_id, std::string_view name) const;

  Options options_;
};

}  // namespace xpu
