// What an ELF file says about itself: build-id, loadable segments, function symbols.
//
// Our own reader and not libelf: captures name files that may be anything, so every offset is
// checked before use, nothing is allocated by a size that the file claims, and nothing else (no
// debuginfod, no second file) is ever opened. 64-bit little-endian files only; that is every
// machine CUDA runs on. Pure functions over bytes; safe to use from any thread. Of a file only the
// parts that are asked for are read (format/base/file_parts.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/file_parts.h"
#include "format/base/result.h"
#include "symbolize/elf/segments.h"

namespace xpu {

// A section, or what a program header says of one.
struct ElfSection {
  std::span<const std::byte> bytes;  // what of it the file has
  uint64_t link_address = 0;
  bool exists = false;
  bool is_compressed = false;  // SHF_COMPRESSED
};

// Where a section lies in memory.
struct ElfMemorySection {
  std::string_view name;
  bool executable = false;
  uint64_t link_address = 0;
  uint64_t file_offset = 0;
  uint64_t size_bytes = 0;
  uint64_t alignment = 0;
};

enum class ElfBinding : uint8_t { kLocal, kWeak, kGlobal };

// A symbol that names code. `name` points into the file's bytes; empty: a function of which only
// the range is known (function_ranges.h).
struct ElfSymbol {
  uint64_t link_address = 0;
  uint64_t size_bytes = 0;  // 0: not known, hand-written assembly
  std::string_view name;
  ElfBinding binding = ElfBinding::kLocal;
  bool is_function = false;  // STT_FUNC or STT_GNU_IFUNC, else STT_NOTYPE
};

class ElfImage {
 public:
  // `bytes` must outlive the image. `name` is what errors call it.
  static Result<ElfImage> Parse(std::span<const std::byte> bytes, std::string_view name);
  static Result<ElfImage> Parse(const FileParts& file, std::string_view name);

  // Raw bytes; empty: the file has none.
  std::string_view build_id() const { return build_id_; }
  const std::vector<ElfSegment>& segments() const { return segments_; }
  bool has_symtab() const { return has_symtab_; }
  bool has_section_names() const { return !section_names_.empty(); }
  uint64_t entry() const { return entry_; }      // link address; 0: none
  uint16_t type() const { return type_; }        // ET_
  uint16_t machine() const { return machine_; }  // EM_

  std::optional<uint64_t> LinkAddressOf(uint64_t file_offset) const;
  // Of those that have one.
  std::vector<uint64_t> LinkAddressesOf(std::span<const uint64_t> file_offsets) const;
  // The opposite way, for probes on a function.
  std::optional<uint64_t> FileOffsetOf(uint64_t link_address) const;

  // The code symbols of .symtab and .dynsym, in no order, with duplicates.
  std::vector<ElfSymbol> CodeSymbols() const { return CodeSymbols(segments_); }
  // What is code is determined by the segments of another file: this is one of its debug
  // information, whose own segments some tools leave empty.
  std::vector<ElfSymbol> CodeSymbols(std::span<const ElfSegment> segments) const;

  // The sections that are in memory (but for thread-local ones), in the order of their headers; at
  // most 256.
  std::vector<ElfMemorySection> MemorySections() const;
  // By its name in the section headers. The vdso and stripped files may have none.
  ElfSection Section(std::string_view name) const;
  // The same without its bytes.
  ElfSection SectionWithoutBytes(std::string_view name) const;
  // PT_GNU_EH_FRAME: .eh_frame_hdr, which leads to .eh_frame without section headers.
  ElfSection eh_frame_header() const;

  // The entries of PT_DYNAMIC.
  std::span<const std::byte> dynamic() const;

  // The part of [file_offset, file_offset + size_bytes) that the file has, and how long it is.
  std::span<const std::byte> BytesAt(uint64_t file_offset, uint64_t size_bytes) const;
  uint64_t CountBytesAt(uint64_t file_offset, uint64_t size_bytes) const;
  // The same by address, up to the end of its segment.
  std::span<const std::byte> BytesAtLinkAddress(uint64_t link_address, uint64_t size_bytes) const;

 private:
  struct Part {
    uint64_t file_offset = 0;
    uint64_t bytes = 0;
  };
  struct Table {
    Part entries;
    Part names;
  };

  static Result<ElfImage> Parse(ElfImage image, std::string_view name);
  std::span<const std::byte> Read(const Part& part) const {
    return BytesAt(part.file_offset, part.bytes);
  }
  // Where it lies in the file; nullopt: there is none, or `section` says that it has no content.
  std::optional<Part> FindSection(std::string_view name, ElfSection& section) const;

  void ReadSegments(uint64_t table_offset, uint64_t entry_bytes, uint64_t count);
  void ReadSections(uint64_t table_offset, uint64_t entry_bytes, uint64_t count);
  void ReadSectionNames(uint64_t entry_bytes, uint64_t index);
  void ReadNotes(uint64_t file_offset, uint64_t bytes, uint64_t alignment);

  const FileParts* file_ = nullptr;   // else
  std::span<const std::byte> bytes_;  // all of it
  uint64_t size_bytes_ = 0;
  std::string_view build_id_;
  std::vector<ElfSegment> segments_;
  std::vector<Table> symbol_tables_;
  std::span<const std::byte> section_headers_;
  uint64_t section_header_bytes_ = 0;  // of one
  std::span<const char> section_names_;
  std::optional<Part> eh_frame_header_;
  uint64_t eh_frame_header_address_ = 0;
  Part dynamic_;
  bool has_symtab_ = false;
  uint64_t entry_ = 0;
  uint16_t type_ = 0;
  uint16_t machine_ = 0;
};

// An ELF file and its bytes.
class ElfFile {
 public:
  // Regular files only. `name` is what errors call it, empty: its path.
  static Result<ElfFile> Open(const std::string& path, std::string_view name = {});
  static Result<ElfFile> Of(RegularFile file, std::string_view name);
  const ElfImage& image() const { return image_; }

 private:
  ElfFile(std::unique_ptr<FileParts> parts, ElfImage image)
      : parts_(std::move(parts)), image_(std::move(image)) {}
  std::unique_ptr<FileParts> parts_;
  ElfImage image_;
};

// The raw build-id of a file; empty when it has none.
Result<std::string> ReadBuildId(const std::string& path);

}  // namespace xpu
