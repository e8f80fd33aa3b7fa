#include "symbolize/dwarf/mapped_elf.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "format/base/handle.h"
#include "format/base/text.h"

namespace xpu::dwarf {

Result<std::unique_ptr<MappedElf>> MappedElf::Open(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return SystemError(Format("{}: open", path), errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return SystemError(Format("{}: fstat", path), errno);
  if (!S_ISREG(info.st_mode)) {
    return Error{ErrorKind::kInvalid, Format("{}: not a regular file", path), {}};
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return Error{ErrorKind::kInvalid, Format("{}: not an ELF file", path), {}};
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) return SystemError(Format("{}: mmap", path), errno);
  std::unique_ptr<MappedElf> file(new MappedElf({static_cast<const std::byte*>(address), size}));
  XPU_ASSIGN_OR_RETURN(file->image_, ElfImage::Parse(file->bytes_, path));
  return file;
}

MappedElf::~MappedElf() { ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

}  // namespace xpu::dwarf
