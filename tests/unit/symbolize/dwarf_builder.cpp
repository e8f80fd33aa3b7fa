#include "tests/unit/symbolize/dwarf_builder.h"

#include <cstring>

#include <elf.h>

#include "format/base/text.h"

namespace xpu::test {
namespace {

constexpr int kLineBase = -3;
constexpr int kLineRange = 12;
constexpr int kOpcodeBase = 13;

template <typename T>
void Append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string OldTables(const std::vector<std::string>& directories,
                      const std::vector<std::pair<std::string, int>>& files) {
  std::string tables;
  for (const std::string& directory : directories) tables += Text(directory);
  tables += U8(0);
  for (const auto& [name, directory] : files) {
    tables += Text(name) + Uleb(static_cast<uint64_t>(directory)) + Uleb(0) + Uleb(0);
  }
  return tables + U8(0);
}

std::string Tables(const std::vector<std::string>& directories,
                   const std::vector<std::pair<std::string, int>>& files) {
  std::string tables = U8(1) + Uleb(1) + Uleb(8) + Uleb(directories.size());  // path: string
  for (const std::string& directory : directories) tables += Text(directory);
  tables += U8(2) + Uleb(1) + Uleb(8) + Uleb(2) + Uleb(11);  // directory: data1
  tables += Uleb(files.size());
  for (const auto& [name, directory] : files)
    tables += Text(name) + U8(static_cast<uint64_t>(directory));
  return tables;
}

}  // namespace

std::string Counted(const std::string& content) { return U32(content.size()) + content; }

std::string Text(std::string_view text) { return std::string(text) + '\0'; }

std::string Abbreviation(uint64_t code, uint64_t tag, bool has_children, const Layout& layout) {
  std::string bytes = Uleb(code) + Uleb(tag) + U8(has_children ? 1 : 0);
  for (const auto& [attribute, form] : layout) bytes += Uleb(attribute) + Uleb(form);
  return bytes + U8(0) + U8(0);
}

std::string UnitOf(int version, const std::string& entries) {
  if (version >= 5) return Counted(U16(5) + U8(1) + U8(8) + U32(0) + entries);
  return Counted(U16(static_cast<uint64_t>(version)) + U32(0) + U8(8) + entries);
}

std::string LinesOf(int version, const std::vector<std::string>& directories,
                    const std::vector<std::pair<std::string, int>>& files,
                    const std::string& operations) {
  std::string header = U8(1);         // bytes of an instruction
  if (version >= 4) header += U8(1);  // operations of one
  header += U8(1) + U8(static_cast<uint8_t>(kLineBase)) + U8(kLineRange) + U8(kOpcodeBase);
  for (const int count : {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}) {
    header += U8(static_cast<uint64_t>(count));
  }
  header += version >= 5 ? Tables(directories, files) : OldTables(directories, files);
  std::string program = U16(static_cast<uint64_t>(version));
  if (version >= 5) program += U8(8) + U8(0);
  return Counted(program + Counted(header) + operations);
}

std::string SetAddress(uint64_t link_address) {
  return U8(0) + Uleb(9) + U8(2) + U64(link_address);
}

std::string SpecialOpcode(int address_step, int line_step) {
  return U8(static_cast<uint64_t>(line_step - kLineBase + address_step * kLineRange + kOpcodeBase));
}

std::string EndSequence(uint64_t address_step) {
  return U8(2) + Uleb(address_step) + U8(0) + Uleb(1) + U8(1);
}

std::string& DebugElf::operator[](std::string_view name) {
  for (Section& section : sections) {
    if (section.name == name) return section.bytes;
  }
  sections.push_back({.name = std::string(name), .bytes = {}, .flags = 0});
  return sections.back().bytes;
}

std::string DebugElf::Build() const {
  std::string names(1, '\0');
  std::string content;
  constexpr uint64_t kContentAt = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  std::vector<Elf64_Shdr> headers(1);
  for (const Section& section : sections) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<Elf64_Word>(names.size());
    header.sh_type = SHT_PROGBITS;
    header.sh_flags = section.flags;
    header.sh_offset = kContentAt + content.size();
    header.sh_size = section.bytes.size();
    headers.push_back(header);
    names += Text(section.name);
    content += section.bytes;
  }
  Elf64_Shdr names_header{};
  names_header.sh_type = SHT_STRTAB;
  names_header.sh_offset = kContentAt + content.size();
  names_header.sh_size = names.size();
  headers.push_back(names_header);
  content += names;

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(header);
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_shoff = kContentAt + content.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(headers.size());
  header.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_flags = PF_R | PF_X;
  segment.p_offset = kTextBegin;
  segment.p_vaddr = kTextBegin;
  segment.p_memsz = kTextEnd - kTextBegin;
  std::string file;
  Append(file, header);
  Append(file, segment);
  file += content;
  for (const Elf64_Shdr& section : headers) Append(file, section);
  return file;
}

std::string FramesAt(DebugInfo& info, uint64_t link_address) {
  std::string text;
  for (const SourceFrame& frame : info.At(link_address)) {
    AppendFormat(text, "{}{} {}:{}\n", frame.is_inlined ? "+" : "", frame.function, frame.file,
                 frame.line);
  }
  return text;
}

}  // namespace xpu::test
