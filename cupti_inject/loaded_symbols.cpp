#include "cupti_inject/loaded_symbols.h"

#include <cstring>

#include <elf.h>

namespace xpu::inject {
namespace {

uint32_t GnuHashOf(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<uint8_t>(*name);
  return hash;
}

// glibc has turned the addresses in the dynamic section of a library into real ones; those of the
// vDSO are left as they are in the file.
template <typename Pointed>
void SetPointer(const dl_phdr_info& info, uint64_t value, const Pointed** pointer) {
  *pointer =
      reinterpret_cast<const Pointed*>(value < info.dlpi_addr ? value + info.dlpi_addr : value);
}

}  // namespace

bool LoadedSymbols::Find(const dl_phdr_info& info) {
  *this = {};
  bias_ = info.dlpi_addr;
  const ElfW(Dyn)* entry = nullptr;
  for (uint32_t i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    }
  }
  bool calls_have_addends = false;
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const uint64_t value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_GNU_HASH) SetPointer(info, value, &hash_);
    if (entry->d_tag == DT_SYMTAB) SetPointer(info, value, &symbols_);
    if (entry->d_tag == DT_STRTAB) SetPointer(info, value, &names_);
    if (entry->d_tag == DT_JMPREL) SetPointer(info, value, &calls_.first);
    if (entry->d_tag == DT_PLTRELSZ) calls_.count = value / sizeof(ElfW(Rela));
    if (entry->d_tag == DT_PLTREL) calls_have_addends = value == DT_RELA;
    if (entry->d_tag == DT_RELA) SetPointer(info, value, &others_.first);
    if (entry->d_tag == DT_RELASZ) others_.count = value / sizeof(ElfW(Rela));
  }
  if (calls_.first == nullptr || !calls_have_addends) calls_ = {};
  if (others_.first == nullptr) others_ = {};
  return hash_ != nullptr && symbols_ != nullptr && names_ != nullptr;
}

uint64_t LoadedSymbols::AddressOf(const char* name) const {
  const uint32_t bucket_count = hash_[0];
  const uint32_t first = hash_[1];
  const uint32_t* buckets = hash_ + 4 + hash_[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* chain = buckets + bucket_count;
  if (bucket_count == 0) return 0;
  const uint32_t wanted = GnuHashOf(name);
  uint32_t at = buckets[wanted % bucket_count];
  if (at < first) return 0;
  for (;; ++at) {
    const uint32_t found = chain[at - first];
    if ((found | 1) == (wanted | 1) && std::strcmp(names_ + symbols_[at].st_name, name) == 0) {
      return symbols_[at].st_shndx == SHN_UNDEF ? 0 : bias_ + symbols_[at].st_value;
    }
    if ((found & 1) != 0) return 0;
  }
}

bool LoadedSymbols::SlotAt(uint64_t i, Slot* slot, bool* end) const {
  *end = i >= calls_.count + others_.count;
  if (*end) return false;
  const ElfW(Rela)& relocation =
      i < calls_.count ? calls_.first[i] : others_.first[i - calls_.count];
  const uint64_t type = ELF64_R_TYPE(relocation.r_info);
  if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) return false;
  slot->place = reinterpret_cast<void**>(bias_ + relocation.r_offset);
  slot->name = names_ + symbols_[ELF64_R_SYM(relocation.r_info)].st_name;
  return true;
}

}  // namespace xpu::inject
