#include "tests/unit/symbolize/elf_builder.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "format/base/check.h"

namespace xpu::test {
namespace {

template <typename T>
void Append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

Elf64_Shdr Section(uint32_t type, uint64_t offset, uint64_t size, uint32_t link, uint64_t entry) {
  Elf64_Shdr header{};
  header.sh_type = type;
  header.sh_offset = offset;
  header.sh_size = size;
  header.sh_link = link;
  header.sh_entsize = entry;
  header.sh_addralign = 1;
  return header;
}

Elf64_Phdr Segment(uint32_t type, uint32_t flags, uint64_t offset, uint64_t address,
                   uint64_t size) {
  Elf64_Phdr header{};
  header.p_type = type;
  header.p_flags = flags;
  header.p_offset = offset;
  header.p_vaddr = address;
  header.p_filesz = size;
  header.p_memsz = size;
  header.p_align = 4;
  return header;
}

}  // namespace

ElfBuilder& ElfBuilder::Symbol(std::string_view name, uint64_t offset, uint64_t size, int binding,
                               int type) {
  Elf64_Sym symbol{};
  symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(binding, type));
  symbol.st_shndx = 1;
  symbol.st_value = kTextAddress + offset;
  symbol.st_size = size;
  symbols_.push_back({std::string(name), symbol});
  return *this;
}

ElfBuilder& ElfBuilder::DynamicSymbol(std::string_view name, uint64_t offset, uint64_t size) {
  Symbol(name, offset, size);
  dynamic_symbols_.push_back(symbols_.back());
  symbols_.pop_back();
  return *this;
}

std::string ElfBuilder::Build() const {
  std::string note;
  Append(note, Elf64_Nhdr{4, static_cast<Elf64_Word>(build_id_.size()), NT_GNU_BUILD_ID});
  note.append("GNU\0", 4);
  note += build_id_;
  note.resize((note.size() + 3) / 4 * 4);

  std::string tail;  // after the text: tables and their names
  constexpr uint64_t kTailOffset = kTextOffset + kTextBytes;
  std::vector<Elf64_Shdr> sections{Section(SHT_NULL, 0, 0, 0, 0)};
  sections.push_back(Section(SHT_PROGBITS, kTextOffset, kTextBytes, 0, 0));
  const auto add_table = [&](uint32_t type, const std::vector<Entry>& entries) {
    if (entries.empty()) return;
    std::string names(1, '\0');
    const uint64_t table_offset = kTailOffset + tail.size();
    Append(tail, Elf64_Sym{});
    for (Entry entry : entries) {
      entry.symbol.st_name = static_cast<Elf64_Word>(names.size());
      names += entry.name + '\0';
      Append(tail, entry.symbol);
    }
    const auto link = static_cast<uint32_t>(sections.size() + 1);
    sections.push_back(Section(type, table_offset, (entries.size() + 1) * sizeof(Elf64_Sym), link,
                               sizeof(Elf64_Sym)));
    sections.push_back(Section(SHT_STRTAB, kTailOffset + tail.size(), names.size(), 0, 0));
    tail += names;
  };
  add_table(SHT_SYMTAB, symbols_);
  add_table(SHT_DYNSYM, dynamic_symbols_);
  tail.resize((tail.size() + 7) / 8 * 8);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  header.e_shoff = kTailOffset + tail.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  header.e_ehsize = sizeof(header);

  std::string file;
  Append(file, header);
  const uint64_t note_offset = sizeof(header) + 2 * sizeof(Elf64_Phdr);
  Append(file, Segment(PT_LOAD, PF_R | PF_X, kTextOffset, kTextAddress, kTextBytes));
  Append(file, Segment(PT_NOTE, PF_R, note_offset, 0, build_id_.empty() ? 0 : note.size()));
  file += note;
  file.resize(kTailOffset);
  file += tail;
  for (const Elf64_Shdr& section : sections) Append(file, section);
  return file;
}

void ElfBuilder::WriteTo(const std::string& path) const {
  std::ofstream out(path, std::ios::binary);
  out << Build();
  out.close();
  XPU_CHECK(out.good());
}

std::string WithSection(std::string file, std::string_view name, const std::string& content) {
  XPU_CHECK(file.size() >= sizeof(Elf64_Ehdr));
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof(header));
  std::string table = file.substr(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
  Elf64_Shdr section{};
  section.sh_name = 1;
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = file.size();
  section.sh_size = content.size();
  file += content;
  Elf64_Shdr names{};
  names.sh_type = SHT_STRTAB;
  names.sh_offset = file.size();
  names.sh_size = name.size() + 2;
  file += '\0' + std::string(name) + '\0';
  table.append(reinterpret_cast<const char*>(&section), sizeof(section));
  table.append(reinterpret_cast<const char*>(&names), sizeof(names));
  header.e_shstrndx = static_cast<Elf64_Half>(header.e_shnum + 1);
  header.e_shnum = static_cast<Elf64_Half>(header.e_shnum + 2);
  header.e_shoff = file.size();
  file += table;
  std::memcpy(file.data(), &header, sizeof(header));
  return file;
}

TempDirectory::TempDirectory() {
  std::string path = (std::filesystem::temp_directory_path() / "xpu-test-XXXXXX").string();
  XPU_CHECK(::mkdtemp(path.data()) != nullptr);
  path_ = path;
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace xpu::test
