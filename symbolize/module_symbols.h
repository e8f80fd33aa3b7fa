// The names and lines of one recorded file, from whatever there is of it: the capture's slice, the
// file itself, its separate debug file.
//
// Names come from the slice first, so that they read the same on every machine; lines and inlined
// functions from the first of slice, file and debug file that has DWARF. One thread at a time;
// different modules at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbolize/dwarf/debug_info.h"
#include "symbolize/file_finder.h"
#include "symbolize/file_symbols.h"

namespace xpu {

// A file as a capture names it.
struct RecordedFile {
  std::string path;
  std::string build_id;                              // raw; empty: not known
  using SliceParts = std::vector<std::string_view>;  // one after the other
  SliceParts slice;                                  // empty: none
  // Other slices of it, with other functions: asked where the first one knows nothing, the last one
  // first.
  std::vector<SliceParts> older_slices;
};

// One function at an address.
struct CodeFrame {
  // Mangled. Empty: no symbol names it; the offset says where it begins.
  std::string_view function;
  std::string_view file;  // with its directory; empty: not known or not asked for
  uint32_t line = 0;
  bool is_inlined = false;  // into the next one
  // From the entry of the function; of inlined ones and where no symbol names the function: none.
  std::optional<uint64_t> offset;
};

class ModuleSymbols {
 public:
  enum class Detail : uint8_t { kNames, kLines, kInlines };

  // Both must outlive this.
  ModuleSymbols(const RecordedFile& recorded, const FileFinder& finder, Detail detail);

  // Reads what is known of these at once, where that is cheaper.
  void Prepare(std::span<const uint64_t> file_offsets);
  // Innermost first; the last one is not inlined. Empty: nothing is known. The list holds until the
  // next call, its texts as long as this.
  const std::vector<CodeFrame>& At(uint64_t file_offset);

  FileProblem problem() const { return problem_; }
  const std::string& problem_text() const { return problem_text_; }
  // True: lines were asked for and there is no DWARF.
  bool has_no_lines() const { return detail_ != Detail::kNames && !debug_info_; }

 private:
  // A slice in memory, with what was read of it.
  struct Slice {
    std::string bytes;  // of several parts
    std::string_view text;
    std::optional<ElfImage> image;
    std::optional<FileSymbols> symbols;
    std::optional<DebugInfo> debug_info;
  };

  void OpenSlice();
  std::unique_ptr<Slice> Open(const RecordedFile::SliceParts& parts);
  // Opens the next of the older ones; false: all are open.
  bool OpenOlderSlice();
  void OpenFile();
  void OpenDebugFile();
  void OpenDebugInfo();
  bool OpenDebugInfoOf(const FoundFile& file);
  std::optional<uint64_t> LinkAddressOf(uint64_t file_offset);
  std::optional<ElfSymbol> SymbolAt(uint64_t file_offset, uint64_t link_address);
  const ElfSymbol* SymbolInOlderSlices(uint64_t link_address);
  const std::vector<SourceFrame>& SourceAt(uint64_t link_address);
  void NoteFailureOf(const DebugInfo& info);
  void NotePackage();
  void Fail(FileProblem problem, std::string text);

  const RecordedFile& recorded_;
  const FileFinder& finder_;
  const Detail detail_;

  std::unique_ptr<Slice> slice_;
  std::vector<std::unique_ptr<Slice>> older_;  // those that are open, the last one first
  size_t older_tried_ = 0;
  bool file_tried_ = false;
  std::optional<FoundFile> file_;
  bool debug_file_tried_ = false;
  std::optional<FoundFile> debug_file_;
  std::optional<FileSymbols> file_symbols_;
  std::optional<DebugInfo> debug_info_;
  std::vector<uint64_t> prepared_;  // link addresses
  std::string package_;             // a .dwp that is there and is not read; empty: none

  std::vector<CodeFrame> frames_;
  FileProblem problem_ = FileProblem::kNone;
  std::string problem_text_;
};

}  // namespace xpu
