#include "symbolize/dwarf/dwarf_file.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <dwarf.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>

#include "format/base/path.h"
#include "format/base/text.h"
#include "symbolize/dwarf/inflated_elf.h"

namespace xpu::dwarf {
namespace {

constexpr size_t kLongestText = 1 << 20;

template <typename Visit>
void ForEachSection(Elf* elf, Visit visit) {
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
    const char* name = elf_strptr(elf, names, header.sh_name);
    if (name != nullptr) visit(std::string_view(name), section);
  }
}

bool IsDebug(std::string_view name) {
  return name.starts_with(".debug_") || name.starts_with(".zdebug_");
}

Elf* OpenElf(char* bytes, size_t size) {
  elf_version(EV_CURRENT);
  return elf_memory(bytes, size);
}

// As libdw determines it.
std::string DirectoryOfDescriptor(int fd) {
  const Handle<char, std::free> path(::realpath(Format("/proc/self/fd/{}", fd).c_str(), nullptr));
  return path == nullptr ? std::string() : std::string(DirectoryOf(path.get()));
}

bool IsRegularOrMissing(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode);
}

}  // namespace

Result<std::unique_ptr<DwarfFile>> DwarfFile::Open(RegularFile file, std::string_view name) {
  std::unique_ptr<DwarfFile> self(new DwarfFile);
  self->fd_ = UniqueFd(::fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0));
  XPU_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::Of(std::move(file), name));
  self->segments_ = elf.image().segments();
  self->inflated_ = InflateZstdSections(elf.image());
  if (!self->inflated_.empty()) {
    self->elf_.reset(OpenElf(self->inflated_.data(), self->inflated_.size()));
  } else {
    elf_version(EV_CURRENT);
    self->elf_.reset(elf_begin(self->fd_.get(), ELF_C_READ_MMAP, nullptr));
    self->directory_ = DirectoryOfDescriptor(self->fd_.get());
  }
  return Begin(std::move(self), name);
}

Result<std::unique_ptr<DwarfFile>> DwarfFile::Parse(std::string_view bytes, std::string_view name) {
  std::unique_ptr<DwarfFile> self(new DwarfFile);
  XPU_ASSIGN_OR_RETURN(const ElfImage image,
                       ElfImage::Parse(std::as_bytes(std::span(bytes)), name));
  self->segments_ = image.segments();
  self->inflated_ = InflateZstdSections(image);
  std::string_view read = bytes;
  if (!self->inflated_.empty()) read = self->inflated_;
  // libelf takes what it reads as its own to change, and does not change it.
  self->elf_.reset(OpenElf(const_cast<char*>(read.data()), read.size()));
  return Begin(std::move(self), name);
}

Result<std::unique_ptr<DwarfFile>> DwarfFile::Begin(std::unique_ptr<DwarfFile> self,
                                                    std::string_view name) {
  if (!self->elf_) return Error{ErrorKind::kInvalid, Format("{}: {}", name, elf_errmsg(-1)), {}};
  self->dwarf_.reset(dwarf_begin_elf(self->elf_.get(), DWARF_C_READ, nullptr));
  if (!self->dwarf_)
    return Error{ErrorKind::kNotFound, Format("{}: no debug information", name), {}};
  return self;
}

std::unique_ptr<DwarfFile> DwarfFile::Empty() {
  // libdw refuses files without any section that it knows, and believes that there is this one.
  std::unique_ptr<DwarfFile> self(new DwarfFile);
  const NamedBytes section{.name = ".debug_info", .bytes = std::string_view("\0\0\0\0", 4)};
  self->inflated_ = WriteElfOf({&section, 1});
  self->elf_.reset(OpenElf(self->inflated_.data(), self->inflated_.size()));
  self->dwarf_.reset(dwarf_begin_elf(self->elf_.get(), DWARF_C_READ, nullptr));
  return self;
}

uint64_t BytesOf(Dwarf* dwarf, std::string_view wanted) {
  uint64_t size_bytes = 0;
  ForEachSection(dwarf_getelf(dwarf), [&](std::string_view name, Elf_Scn* section) {
    if (name.ends_with(".dwo")) name.remove_suffix(4);
    if (name != wanted && !(name.starts_with(".z") && name.substr(2) == wanted.substr(1))) return;
    const Elf_Data* data = elf_getdata(section, nullptr);
    if (data != nullptr) size_bytes += data->d_size;
  });
  return size_bytes;
}

void Texts::Add(Dwarf* dwarf) {
  ForEachSection(dwarf_getelf(dwarf), [&](std::string_view name, Elf_Scn* section) {
    if (!IsDebug(name)) return;
    if (name.find("_str") == name.npos && name.find("_info") == name.npos &&
        name.find("_line") == name.npos) {
      return;
    }
    const Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) return;
    const char* begin = static_cast<const char*>(data->d_buf);
    sections_.emplace(begin, begin + data->d_size);
  });
}

std::string_view Texts::At(const char* text) const {
  auto section = sections_.upper_bound(text);
  if (text == nullptr || section == sections_.begin()) return {};
  --section;
  if (text >= section->second) return {};
  const size_t most = std::min(static_cast<size_t>(section->second - text), kLongestText);
  const size_t length = ::strnlen(text, most);
  return length == most ? std::string_view() : std::string_view(text, length);
}

bool MaySplitBeOpened(Dwarf_Die skeleton, const std::string& directory) {
  Dwarf_Attribute attribute;
  const auto text = [&](unsigned name) {
    const char* found = dwarf_formstring(dwarf_attr(&skeleton, name, &attribute));
    return std::string(found == nullptr ? "" : found);
  };
  std::string name = text(DW_AT_dwo_name);
  if (name.empty()) name = text(DW_AT_GNU_dwo_name);
  const std::string compiler = text(DW_AT_comp_dir);
  for (const std::string& base :
       {std::string(), directory, compiler, Format("{}/{}", directory, compiler)}) {
    const std::string path = name.starts_with('/') ? name : Format("{}/{}", base, name);
    if (path.starts_with('/') && !IsRegularOrMissing(path)) return false;
  }
  return true;
}

}  // namespace xpu::dwarf
