// The names that a file the loader has mapped defines and needs, read from the loader's own tables.
// Within dl_iterate_phdr, which keeps the file mapped: never in a callback of the program.
#pragma once

#include <cstdint>

#include <link.h>

namespace xpu::inject {

class LoadedSymbols {
 public:
  // False: the file has no tables by which names are looked up.
  bool Find(const dl_phdr_info& info);
  // What the file defines by that name; 0: nothing.
  uint64_t AddressOf(const char* name) const;
  // The name of relocation `i` that takes the address of a function in another file, and its slot,
  // with the program's addresses. False: it is of another kind, or there are no more (`*end`).
  struct Slot {
    void** place = nullptr;
    const char* name = nullptr;
  };
  bool SlotAt(uint64_t i, Slot* slot, bool* end) const;

 private:
  struct Relocations {
    const ElfW(Rela) * first = nullptr;
    uint64_t count = 0;
  };

  uint64_t bias_ = 0;
  const uint32_t* hash_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  Relocations calls_;   // those that may be bound at their first call
  Relocations others_;  // of code that was compiled to call through its table directly
};

}  // namespace xpu::inject
