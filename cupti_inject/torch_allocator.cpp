#include "cupti_inject/torch_allocator.h"

#include <cerrno>
#include <cstring>

#include <sys/mman.h>

#include "cupti_inject/loaded_files.h"
#include "cupti_inject/loaded_symbols.h"
#include "cupti_inject/setup.h"

namespace xpu::inject {
namespace {

constexpr uint64_t kCudaDevice = 1;  // c10::DeviceType::CUDA

struct BlockReport {
  void* block;
  int64_t size_bytes;
  uint64_t allocated_bytes;
  uint64_t reserved_bytes;
  uint64_t device;  // c10::Device: its type, then its index, a byte each
  bool has_totals;
};

void SendBlock(Injection& self, ThreadState& thread, const BlockReport& report,
               const WalkRegisters& caller) {
  wire::Block block{};
  block.address = reinterpret_cast<uint64_t>(report.block);
  block.size_bytes = report.size_bytes;
  block.allocated_bytes = report.allocated_bytes;
  block.reserved_bytes = report.reserved_bytes;
  block.device = static_cast<uint32_t>(report.device >> 8 & 0xff);
  block.has_totals = report.has_totals ? 1 : 0;
  wire::LaunchCall call{};
  call.time_ns = MonotonicNs();
  call.domain_and_callback_id = wire::kDomainAllocator << wire::kDomainShift;
  call.tid = CurrentTid(thread);
  // Who gives a block back is rarely asked, and would double the cost.
  const bool has_stack = report.size_bytes > 0 && self.stacks.on();
  if (has_stack && self.stacks.Take(call, caller, thread.stack, &block)) return;
  wire::BlockMessage message{};
  message.call = call;
  message.block = block;
  if (!self.ring.Send(wire::MessageKind::kBlock, message)) {
    self.ring.Count(wire::kCounterBlocksDropped);
  }
}

// Reported in pauses too: what is given back then was handed out before.
void RecordBlock(const BlockReport& report, const WalkRegisters& caller) {
  Injection& self = g_injection;
  if ((report.device & 0xff) != kCudaDevice || !self.active.load(std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  ThreadState& thread = t_thread;
  {
    const Inside inside(thread);
    if (self.active.load(std::memory_order_relaxed) && !self.ring.closed()) {
      if (thread.session != self.number) [[unlikely]]
        thread.BeginSession(self.number);
      SendBlock(self, thread, report, caller);
    }
  }
  errno = saved_errno;
}

// The parameters of the functions below are those of the System V ABI: c10::Device, two bytes,
// comes in the low bytes of a register.
using WithTotals = void(void* block, int64_t size, uint64_t allocated, uint64_t reserved,
                        uint64_t device);
using WithoutTotals = void(void* block, int64_t size, uint64_t device);

template <typename Function>
Function* OriginalReport() {
  return reinterpret_cast<Function*>(g_process.torch.original.load(std::memory_order_acquire));
}

// Not inlined: their caller is PyTorch.
__attribute__((noinline)) void OnReport(void* block, int64_t size, uint64_t allocated,
                                        uint64_t reserved, uint64_t device) {
  RecordBlock({block, size, allocated, reserved, device, true}, CallerRegisters());
  OriginalReport<WithTotals>()(block, size, allocated, reserved, device);
}

__attribute__((noinline)) void OnReportWithoutTotals(void* block, int64_t size, uint64_t device) {
  RecordBlock({block, size, 0, 0, device, false}, CallerRegisters());
  OriginalReport<WithoutTotals>()(block, size, device);
}

struct ReportSignature {
  const char* name;
  void* hook;
};

constexpr char kReportFunction[] = "_ZN3c1027reportMemoryUsageToProfiler";

// Since 2.0 (void*, long, unsigned long, unsigned long, c10::Device); from 1.10 on with signed
// totals; before that without. The first argument is the address of the block; in old versions
// that of PyTorch's description of it, which identifies the block as well. Before 1.8 it was not
// there at all: (c10::Device, long) is not followed.
const ReportSignature kReportSignatures[] = {
    {"_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", reinterpret_cast<void*>(&OnReport)},
    {"_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", reinterpret_cast<void*>(&OnReport)},
    {"_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE",
     reinterpret_cast<void*>(&OnReportWithoutTotals)},
};

bool IsReportHook(const void* function) {
  for (const ReportSignature& signature : kReportSignatures) {
    if (function == signature.hook) return true;
  }
  return false;
}

bool IsNamed(const dl_phdr_info& info, const char* name) {
  if (info.dlpi_name == nullptr) return false;
  const char* slash = std::strrchr(info.dlpi_name, '/');
  const char* file = slash == nullptr ? info.dlpi_name : slash + 1;
  return std::strncmp(file, name, std::strlen(name)) == 0;
}

bool HoldsAddress(const dl_phdr_info& info, const void* address) {
  const uint64_t at = reinterpret_cast<uint64_t>(address) - info.dlpi_addr;
  for (uint32_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && at >= segment.p_vaddr &&
        at - segment.p_vaddr < segment.p_memsz)
      return true;
  }
  return false;
}

// False: the page cannot be made writable.
bool SetSlot(const dl_phdr_info& info, void** slot, void* value) {
  const uint64_t at = reinterpret_cast<uint64_t>(slot) - info.dlpi_addr;
  bool is_read_only = false;  // once the loader was done
  for (uint32_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type == PT_GNU_RELRO && at >= segment.p_vaddr &&
        at - segment.p_vaddr < segment.p_memsz) {
      is_read_only = true;
    }
  }
  void* page = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(slot) / wire::kPageBytes *
                                       wire::kPageBytes);
  if (is_read_only && mprotect(page, wire::kPageBytes, PROT_READ | PROT_WRITE) != 0) return false;
  __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  if (is_read_only) mprotect(page, wire::kPageBytes, PROT_READ);
  return true;
}

struct SlotSearch {
  bool is_first = true;
  bool is_unchanged = false;  // since the last look
  uint64_t adds = 0, subs = 0;
  bool has_allocator = false;
  const ReportSignature* signature = nullptr;
  char unknown[256] = "";  // a function of the same name with another signature
  void** slot = nullptr;
  void* functions[sizeof(kReportSignatures) / sizeof(kReportSignatures[0])] = {};  // of libc10
  bool is_hooked = false;
};

void FindSlot(const dl_phdr_info& info, SlotSearch& search) {
  search.has_allocator = true;
  LoadedSymbols symbols;
  if (!symbols.Find(info)) return;
  bool end = false;
  for (uint64_t i = 0; !end; ++i) {
    LoadedSymbols::Slot slot;
    if (!symbols.SlotAt(i, &slot, &end)) continue;
    if (std::strncmp(slot.name, kReportFunction, sizeof(kReportFunction) - 1) != 0) continue;
    for (const ReportSignature& signature : kReportSignatures) {
      if (std::strcmp(slot.name, signature.name) != 0) continue;
      search.signature = &signature;
      search.slot = slot.place;
    }
    if (search.slot != nullptr) return;
    std::strncpy(search.unknown, slot.name, sizeof(search.unknown) - 1);
  }
}

int VisitToFind(dl_phdr_info* info, size_t /*size*/, void* searches) {
  SlotSearch& search = *static_cast<SlotSearch*>(searches);
  if (search.is_first) {
    search.is_first = false;
    search.adds = info->dlpi_adds;
    search.subs = info->dlpi_subs;
    const TorchSlot& torch = g_process.torch;
    search.is_unchanged =
        torch.session == g_injection.number && torch.adds == info->dlpi_adds &&
        torch.subs == info->dlpi_subs &&
        (torch.place == nullptr || IsReportHook(__atomic_load_n(torch.place, __ATOMIC_RELAXED)));
    if (search.is_unchanged) return 1;
  }
  if (IsNamed(*info, "libc10_cuda.so")) FindSlot(*info, search);
  if (IsNamed(*info, "libc10.so")) {
    LoadedSymbols symbols;
    if (!symbols.Find(*info)) return 0;
    for (size_t i = 0; i < sizeof(kReportSignatures) / sizeof(kReportSignatures[0]); ++i) {
      search.functions[i] = reinterpret_cast<void*>(symbols.AddressOf(kReportSignatures[i].name));
    }
  }
  return 0;
}

int VisitToHook(dl_phdr_info* info, size_t /*size*/, void* searches) {
  SlotSearch& search = *static_cast<SlotSearch*>(searches);
  if (!IsNamed(*info, "libc10_cuda.so") || !HoldsAddress(*info, search.slot)) return 0;
  void* now = __atomic_load_n(search.slot, __ATOMIC_ACQUIRE);
  if (now == search.signature->hook) {
    search.is_hooked = true;
    return 1;
  }
  // Not bound yet, it leads to code of the library's own, which would put the function in our
  // place.
  void* original =
      HoldsAddress(*info, now) ? search.functions[search.signature - kReportSignatures] : now;
  if (original == nullptr) return 1;
  g_process.torch.original.store(original, std::memory_order_release);
  search.is_hooked = SetSlot(*info, search.slot, search.signature->hook);
  return 1;
}

int VisitToLeave(dl_phdr_info* info, size_t /*size*/, void*) {
  TorchSlot& torch = g_process.torch;
  if (!IsNamed(*info, "libc10_cuda.so") || !HoldsAddress(*info, torch.place)) return 0;
  void* now = __atomic_load_n(torch.place, __ATOMIC_ACQUIRE);
  if (IsReportHook(now)) SetSlot(*info, torch.place, torch.original.load());
  return 1;
}

void ReportFound(Injection& self, const SlotSearch& search) {
  if (search.is_hooked) {
    return SendDetail(self, wire::DetailKind::kAllocator, 1, search.signature->name);
  }
  const char* why = search.unknown;
  if (search.slot != nullptr) why = "its table of addresses cannot be changed";
  if (why[0] == '\0') why = "it does not report its blocks";
  SendDetail(self, wire::DetailKind::kAllocator, 0, why);
}

}  // namespace

void FollowTorchAllocator(Injection& self) {
  if ((self.settings & wire::kSettingMemory) == 0) return;
  TorchSlot& torch = g_process.torch;
  SlotSearch search;
  ForEachLoadedFile(&VisitToFind, &search);
  if (search.is_unchanged) return;
  if (search.slot != nullptr) ForEachLoadedFile(&VisitToHook, &search);
  torch.place = search.is_hooked ? search.slot : nullptr;
  torch.adds = search.adds;
  torch.subs = search.subs;
  if (torch.session != self.number) torch.is_told = false;
  torch.session = self.number;
  if (!search.has_allocator || torch.is_told) return;
  torch.is_told = true;
  ReportFound(self, search);
}

void LeaveTorchAllocator() {
  if (g_process.torch.place == nullptr) return;
  ForEachLoadedFile(&VisitToLeave, nullptr);
  g_process.torch.place = nullptr;
}

}  // namespace xpu::inject
