#include "symbolize/elf/elf_needs.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include <elf.h>
#include <unistd.h>

#include "format/base/open_file.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr size_t kMaxEntries = 4096;
constexpr size_t kMaxTextBytes = 4096;

class Reader {
 public:
  explicit Reader(int fd) : fd_(fd) {}

  // As many of `count` as the file has.
  template <typename T>
  std::vector<T> Read(uint64_t offset, uint64_t count) const {
    std::vector<T> values(std::min<uint64_t>(count, kMaxEntries));
    const ssize_t n =
        ::pread(fd_, values.data(), values.size() * sizeof(T), static_cast<off_t>(offset));
    values.resize(n < 0 ? 0 : static_cast<size_t>(n) / sizeof(T));
    return values;
  }
  // Zero-terminated; empty: it has no end.
  std::string Text(uint64_t offset) const {
    const std::vector<char> chars = Read<char>(offset, kMaxTextBytes);
    const auto end = std::find(chars.begin(), chars.end(), '\0');
    return end == chars.end() ? std::string() : std::string(chars.begin(), end);
  }

 private:
  int fd_;
};

std::optional<uint64_t> FileOffsetOf(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

void ReadDynamic(const Reader& reader, const std::vector<Elf64_Phdr>& segments,
                 const Elf64_Phdr& dynamic, ElfNeeds& needs) {
  std::vector<Elf64_Dyn> entries =
      reader.Read<Elf64_Dyn>(dynamic.p_offset, dynamic.p_filesz / sizeof(Elf64_Dyn));
  entries.erase(std::ranges::find(entries, DT_NULL, &Elf64_Dyn::d_tag), entries.end());
  const auto strings = std::ranges::find(entries, DT_STRTAB, &Elf64_Dyn::d_tag);
  if (strings == entries.end()) return;
  const auto strings_at = FileOffsetOf(segments, strings->d_un.d_ptr);
  if (!strings_at) return;
  for (const Elf64_Dyn& entry : entries) {
    const auto text = [&] { return reader.Text(*strings_at + entry.d_un.d_val); };
    if (entry.d_tag == DT_NEEDED) {
      if (std::string name = text(); !name.empty()) needs.libraries.push_back(std::move(name));
    } else if (entry.d_tag == DT_RUNPATH) {
      needs.run_path = text();
    } else if (entry.d_tag == DT_RPATH) {
      needs.old_run_path = text();
    }
  }
}

}  // namespace

Result<ElfNeeds> ReadElfNeeds(const std::string& path) {
  XPU_ASSIGN_OR_RETURN(const RegularFile file, OpenRegularFile(path));
  const Reader reader(file.fd.get());
  const auto headers = reader.Read<Elf64_Ehdr>(0, 1);
  if (headers.empty() || std::memcmp(headers[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      headers[0].e_ident[EI_CLASS] != ELFCLASS64 || headers[0].e_ident[EI_DATA] != ELFDATA2LSB ||
      headers[0].e_machine != EM_X86_64 || headers[0].e_phentsize != sizeof(Elf64_Phdr)) {
    return Error{ErrorKind::kInvalid, Format("{}: not an ELF file of x86-64", path), {}};
  }
  const auto segments = reader.Read<Elf64_Phdr>(headers[0].e_phoff, headers[0].e_phnum);
  ElfNeeds needs;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) needs.interpreter = reader.Text(segment.p_offset);
    if (segment.p_type == PT_DYNAMIC) ReadDynamic(reader, segments, segment, needs);
  }
  return needs;
}

}  // namespace xpu
