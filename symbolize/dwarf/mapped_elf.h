// An ELF file that is read where it lies in the page cache.
#pragma once

#include <memory>
#include <string>

#include "format/base/result.h"
#include "symbolize/elf/elf_image.h"

namespace xpu::dwarf {

// Debug information is large and read in few places: copying it, as ElfFile does, takes as long as
// reading what is wanted of it. The price: truncating the file in place while it is read ends the
// process (SIGBUS). Linkers and package managers replace files instead.
class MappedElf {
 public:
  // kInvalid: not a regular file (opening a pipe would wait), or not an ELF file.
  static Result<std::unique_ptr<MappedElf>> Open(const std::string& path);

  MappedElf(const MappedElf&) = delete;
  MappedElf& operator=(const MappedElf&) = delete;
  ~MappedElf();

  const ElfImage& image() const { return image_; }

 private:
  explicit MappedElf(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
  ElfImage image_;
};

}  // namespace xpu::dwarf
