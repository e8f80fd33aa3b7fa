// An ELF file of debug information.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "format/base/result.h"
#include "symbolize/elf/elf_image.h"

namespace xpu::dwarf {

// Debug information is large and read in few places: copying it takes as long as reading what is
// wanted of it, so a report reads it where it lies in the page cache. The price: truncating the
// file in place while it is read ends the process (SIGBUS). Linkers and package managers replace
// files instead, but whose program is recorded may do as he likes: there the sections are copied.
enum class Access : uint8_t { kMapped, kCopied };

class MappedElf {
 public:
  // kInvalid: not a regular file (opening a pipe would wait), or not an ELF file.
  static Result<std::unique_ptr<MappedElf>> Open(const std::string& path, Access access);

  MappedElf(const MappedElf&) = delete;
  MappedElf& operator=(const MappedElf&) = delete;
  ~MappedElf();

  const ElfImage& image() const { return copied_ ? copied_->image() : image_; }

 private:
  MappedElf() = default;

  std::optional<ElfFile> copied_;
  std::span<const std::byte> bytes_;  // mapped
  ElfImage image_;
};

}  // namespace xpu::dwarf
