// Calls into a shared library: samples in the PLT entries and, where binding is lazy, in the
// loader's resolver, which each round calls anew because the GOT is put back.
//   plt [MILLISECONDS]
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include "plt_library.h"
#include "unwind.h"

namespace {

// The slots of the procedure linkage table, as they were before the first call.
struct Slots {
  uint64_t* first = nullptr;
  uint64_t count = 0;
  uint64_t initial[4096];
};
Slots slots;

const void* DynamicPointer(const ElfW(Dyn) * dynamic, ElfW(Sxword) tag) {
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == tag) return reinterpret_cast<const void*>(dynamic->d_un.d_ptr);
  }
  return nullptr;
}

void SaveSlots() {
  const auto* relocations = static_cast<const ElfW(Rela)*>(DynamicPointer(_DYNAMIC, DT_JMPREL));
  const uint64_t bytes = reinterpret_cast<uint64_t>(DynamicPointer(_DYNAMIC, DT_PLTRELSZ));
  const uint64_t base = _r_debug.r_map->l_addr;
  if (relocations == nullptr) return;
  slots.first = reinterpret_cast<uint64_t*>(base + relocations[0].r_offset);
  slots.count = bytes / sizeof(ElfW(Rela));
  if (slots.count > 4096) std::abort();
  std::memcpy(slots.initial, slots.first, slots.count * sizeof(uint64_t));
}

void UnbindSlots() { std::memcpy(slots.first, slots.initial, slots.count * sizeof(uint64_t)); }

}  // namespace

#define XPU_CALL(n) PltFunction##n();

XPU_FRAME void RunBinding() {
  XPU_SPOIL_FRAME_POINTER();
  XPU_EACH_PLT_FUNCTION(XPU_CALL)
  XPU_BARRIER();
}

XPU_FRAME void RunPlt(uint64_t amount) {
  XPU_SPOIL_FRAME_POINTER();
  for (uint64_t i = 0; i < amount; ++i) PltFunction0();
  XPU_BARRIER();
}

XPU_LEAF(LeafCalledBack)

XPU_FRAME void RunCalledBack(uint64_t amount) {
  PltCallBack(LeafCalledBack, amount);
  XPU_BARRIER();
}

int main(int argc, char** argv) {
  const double milliseconds = unwind::Milliseconds(argc, argv);
  const uint64_t amount = unwind::Amount(milliseconds);
  SaveSlots();
#ifdef XPU_LAZY
  const uint64_t end =
      unwind::ClockNs(CLOCK_THREAD_CPUTIME_ID) + static_cast<uint64_t>(milliseconds * 1e6);
  while (unwind::ClockNs(CLOCK_THREAD_CPUTIME_ID) < end) {
    UnbindSlots();
    RunBinding();
  }
#else
  static_cast<void>(UnbindSlots);
  RunBinding();
#endif
  RunPlt(amount * 64);
  RunCalledBack(amount);
  using unwind::Expect;
#ifdef XPU_LAZY
  Expect("in:ld-linux-x86-64.so.2", "", "unsupported");
  Expect("[plt]", "[plt];RunBinding" XPU_BELOW_MAIN);
#endif
  Expect("[plt]", "[plt];RunPlt" XPU_BELOW_MAIN);
  Expect("PltFunction0", "PltFunction0;RunPlt" XPU_BELOW_MAIN);
  Expect("LeafCalledBack", "LeafCalledBack;PltCallBack;RunCalledBack" XPU_BELOW_MAIN);
  return 0;
}
