#include "cupti_inject/nvtx_copies.h"

#include <cstring>

#include <link.h>

namespace xpu::inject {
namespace {

constexpr char kFunction[] = "nvtxRangePushA";

uint32_t GnuHashOf(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<uint8_t>(*name);
  return hash;
}

// glibc has turned the addresses in the dynamic section of a library into real ones; those of the
// vDSO are left as they are in the file.
const void* PointerOf(const dl_phdr_info& info, uint64_t value) {
  return reinterpret_cast<const void*>(value < info.dlpi_addr ? value + info.dlpi_addr : value);
}

// Of the loader's own table, by which it looks names up.
struct Symbols {
  const uint32_t* hash = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;

  bool Find(const dl_phdr_info& info) {
    const ElfW(Dyn)* entry = nullptr;
    for (uint32_t i = 0; i < info.dlpi_phnum; ++i) {
      if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
        entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
      }
    }
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
      const void* pointer = PointerOf(info, entry->d_un.d_ptr);
      if (entry->d_tag == DT_GNU_HASH) hash = static_cast<const uint32_t*>(pointer);
      if (entry->d_tag == DT_SYMTAB) symbols = static_cast<const ElfW(Sym)*>(pointer);
      if (entry->d_tag == DT_STRTAB) names = static_cast<const char*>(pointer);
    }
    return hash != nullptr && symbols != nullptr && names != nullptr;
  }

  bool Defines(const char* name) const {
    const uint32_t bucket_count = hash[0];
    const uint32_t first = hash[1];
    const uint32_t* buckets = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t* chain = buckets + bucket_count;
    if (bucket_count == 0) return false;
    const uint32_t wanted = GnuHashOf(name);
    uint32_t at = buckets[wanted % bucket_count];
    if (at < first) return false;
    for (;; ++at) {
      const uint32_t found = chain[at - first];
      if ((found | 1) == (wanted | 1) && std::strcmp(names + symbols[at].st_name, name) == 0) {
        return symbols[at].st_shndx != SHN_UNDEF;
      }
      if ((found & 1) != 0) return false;
    }
  }
};

// Of dl_iterate_phdr.
int CountOne(dl_phdr_info* info, size_t /*size*/, void* count) {
  Symbols symbols;
  if (symbols.Find(*info) && symbols.Defines(kFunction)) ++*static_cast<uint32_t*>(count);
  return 0;
}

}  // namespace

uint32_t CountNvtxLibraries() {
  uint32_t count = 0;
  dl_iterate_phdr(&CountOne, &count);
  return count;
}

}  // namespace xpu::inject
