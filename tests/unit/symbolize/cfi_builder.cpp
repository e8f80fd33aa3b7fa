#include "tests/unit/symbolize/cfi_builder.h"

#include <cstring>

#include <elf.h>

#include "format/base/check.h"

namespace xpu::test {
namespace {

template <typename T>
std::string Plain(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
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
  return header;
}

constexpr uint64_t kFramesOffset = CfiElf::kTextOffset + CfiElf::kTextBytes;

}  // namespace

std::string U8(uint64_t value) { return Plain(static_cast<uint8_t>(value)); }
std::string U16(uint64_t value) { return Plain(static_cast<uint16_t>(value)); }
std::string U32(uint64_t value) { return Plain(static_cast<uint32_t>(value)); }
std::string U64(uint64_t value) { return Plain(value); }

std::string Uleb(uint64_t value) {
  std::string out;
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  return out += static_cast<char>(value);
}

std::string Sleb(int64_t value) {
  std::string out;
  while (value < -64 || value > 63) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  return out += static_cast<char>(value & 0x7f);
}

std::string Block(const std::string& content) { return Uleb(content.size()) + content; }

std::string CfiBuilder::UsualCie() { return "\x0c\x07\x08\x90\x01"; }

uint64_t CfiBuilder::AddressOf(size_t offset) const {
  return CfiElf::kFrames + bytes_.size() + offset;
}

size_t CfiBuilder::Cie(const std::string& instructions, const std::string& augmentation,
                       const std::string& augmentation_data, int version) {
  last_cie_ = bytes_.size();
  std::string content = U8(static_cast<uint64_t>(version)) + augmentation + '\0';
  if (version == 4) content += U8(8) + U8(0);
  content += Uleb(1) + Sleb(-8) + U8(16);
  if (!augmentation.empty() && augmentation[0] == 'z') content += Block(augmentation_data);
  Entry(true, content + instructions);
  return last_cie_;
}

CfiBuilder& CfiBuilder::Entry(bool is_cie, const std::string& content) {
  const bool wide_id = wide_ && !is_eh_frame_;
  const size_t id_offset = bytes_.size() + (wide_ ? 12 : 4);
  uint64_t id = is_eh_frame_ ? id_offset - last_cie_ : last_cie_;
  if (is_cie) id = is_eh_frame_ ? 0 : ~uint64_t{0};
  std::string entry = (wide_id ? U64(id) : U32(id)) + content;
  entry.resize((entry.size() + 7) / 8 * 8 + 4, '\0');
  bytes_ += wide_ ? U32(0xffffffff) + U64(entry.size()) : U32(entry.size());
  bytes_ += entry;
  return *this;
}

CfiBuilder& CfiBuilder::RawFde(const std::string& head, const std::string& instructions) {
  return Entry(false, head + instructions);
}

CfiBuilder& CfiBuilder::Fde(uint64_t begin, uint64_t size, const std::string& instructions) {
  const uint64_t address = CfiElf::kText + begin;
  if (!is_eh_frame_) return RawFde(U64(address) + U64(size), instructions);
  const uint64_t place = AddressOf(wide_ ? 16 : 8);
  return RawFde(U32(address - place) + U32(size) + Uleb(0), instructions);
}

CfiBuilder& CfiBuilder::Raw(const std::string& bytes) {
  bytes_ += bytes;
  return *this;
}

std::string CfiElf::Build() const {
  std::string tail = content;
  const uint64_t header_offset = kFramesOffset + tail.size();
  const uint64_t header_address = kFrames + tail.size();
  // Version, the pointer counts from its own place, no table.
  const std::string header =
      U8(1) + U8(0x1b) + U8(0xff) + U8(0xff) + U32(kFrames - header_address - 4);
  tail += header;
  const uint64_t data_bytes = tail.size();
  const uint64_t names_offset = kFramesOffset + tail.size();
  const std::string names =
      std::string(1, '\0') + name + '\0' + ".shstrtab" + '\0' + ".debug_frame" + '\0';
  tail += names;
  const uint64_t debug_offset = kFramesOffset + tail.size();
  tail += debug_frame;

  Elf64_Shdr frames{}, strings{}, debug{};
  frames.sh_name = 1;
  frames.sh_type = SHT_PROGBITS;
  frames.sh_flags = section_flags;
  frames.sh_addr = kFrames;
  frames.sh_offset = kFramesOffset;
  frames.sh_size = content.size();
  strings.sh_name = static_cast<uint32_t>(name.size()) + 2;
  debug.sh_name = strings.sh_name + sizeof(".shstrtab");
  debug.sh_type = debug_frame.empty() ? SHT_NULL : SHT_PROGBITS;
  debug.sh_flags = debug_frame_flags;
  debug.sh_offset = debug_offset;
  debug.sh_size = debug_frame.size();
  strings.sh_type = SHT_STRTAB;
  strings.sh_offset = names_offset;
  strings.sh_size = names.size();

  Elf64_Ehdr ehdr{};
  std::memcpy(ehdr.e_ident, ELFMAG, SELFMAG);
  ehdr.e_ident[EI_CLASS] = ELFCLASS64;
  ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
  ehdr.e_machine = machine;
  ehdr.e_phoff = sizeof(ehdr);
  ehdr.e_phentsize = sizeof(Elf64_Phdr);
  ehdr.e_phnum = with_header ? 3 : 2;
  ehdr.e_shoff = with_sections ? kFramesOffset + tail.size() : 0;
  ehdr.e_shentsize = sizeof(Elf64_Shdr);
  ehdr.e_shnum = with_sections ? 4 : 0;
  ehdr.e_shstrndx = 2;
  std::string file = Plain(ehdr);
  file += Plain(Segment(PT_LOAD, PF_R | PF_X, kTextOffset, kText, kTextBytes));
  file += Plain(Segment(PT_LOAD, PF_R, kFramesOffset, kFrames, data_bytes));
  file += Plain(Segment(PT_GNU_EH_FRAME, PF_R, header_offset, header_address, header.size()));
  file.resize(kFramesOffset, '\xcc');
  file.replace(kTextOffset, code.size(), code);
  file += tail;
  if (with_sections) file += Plain(Elf64_Shdr{}) + Plain(frames) + Plain(strings) + Plain(debug);
  return file;
}

Result<UnwindTableBytes> BuildTable(const std::string& file, UnwindStats* stats) {
  XPU_ASSIGN_OR_RETURN(const ElfImage image,
                       ElfImage::Parse(std::as_bytes(std::span(file)), "test"));
  auto table = BuildUnwindTable(image, stats);
  if (table.ok()) XPU_CHECK(table.value().view().IsSound());
  return table;
}

Result<UnwindTableBytes> BuildTable(const CfiBuilder& frames, UnwindStats* stats) {
  CfiElf elf;
  elf.name = frames.is_eh_frame() ? ".eh_frame" : ".debug_frame";
  elf.content = frames.bytes();
  return BuildTable(elf.Build(), stats);
}

}  // namespace xpu::test
