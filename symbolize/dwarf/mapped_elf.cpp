#include "symbolize/dwarf/mapped_elf.h"

#include <cerrno>
#include <utility>

#include <sys/mman.h>

#include "format/base/file.h"
#include "format/base/open_file.h"
#include "format/base/text.h"

namespace xpu::dwarf {

Result<std::unique_ptr<MappedElf>> MappedElf::Open(const std::string& path, Access access) {
  XPU_ASSIGN_OR_RETURN(RegularFile opened, OpenRegularFile(path));
  std::unique_ptr<MappedElf> file(new MappedElf);
  if (access == Access::kCopied) {
    XPU_ASSIGN_OR_RETURN(ElfFile copied, ElfFile::Of(std::move(opened), path));
    file->copied_.emplace(std::move(copied));
    return file;
  }
  const auto size = static_cast<size_t>(opened.info.st_size);
  if (size == 0) return Error{ErrorKind::kInvalid, Format("{}: not an ELF file", path), {}};
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened.fd.get(), 0);
  if (address == MAP_FAILED) return SystemError(Format("{}: mmap", path), errno);
  file->bytes_ = {static_cast<const std::byte*>(address), size};
  XPU_ASSIGN_OR_RETURN(file->image_, ElfImage::Parse(file->bytes_, path));
  return file;
}

MappedElf::~MappedElf() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace xpu::dwarf
