#include "record/attach/loader_code.h"

#include <cerrno>
#include <cstddef>

#include <linux/memfd.h>
#include <sys/syscall.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // Linux 6.3
#endif

// Built with flags of its own (CMakeLists.txt): no calls but those that are written here.
#define XPU_COPIED __attribute__((section("xpu_loader"), used, noinline))

namespace xpu {
namespace {

__attribute__((always_inline)) inline long Call(long number, long a = 0, long b = 0, long c = 0) {
  long result = 0;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c)
               : "rcx", "r11", "memory");
  return result;
}

__attribute__((always_inline)) inline long Address(const void* pointer) {
  return reinterpret_cast<long>(pointer);
}

__attribute__((always_inline)) inline bool WaitForLibrary(LoaderArea* area) {
  for (uint64_t waits = 0; waits < area->most_pauses; ++waits) {
    if (area->library_state.load(std::memory_order_acquire) == LibraryState::kThere) return true;
    Call(SYS_nanosleep, Address(&area->pause));
  }
  LibraryState expected = LibraryState::kComing;
  if (!area->library_state.compare_exchange_strong(expected, LibraryState::kGivenUp)) return true;
  area->request.state.store(wire::AttachState::kWithdrawn, std::memory_order_release);
  return false;
}

// A descriptor of a file in memory that holds the library; negative: an error number.
__attribute__((always_inline)) inline long CopyLibrary(LoaderArea* area) {
  constexpr long kFlags = MFD_CLOEXEC;
  long fd = Call(SYS_memfd_create, Address(area->memfd_name), kFlags | MFD_EXEC);
  if (fd == -EINVAL) fd = Call(SYS_memfd_create, Address(area->memfd_name), kFlags);
  for (uint64_t done = 0; fd >= 0 && done < area->library_bytes;) {
    const long written = Call(SYS_write, fd, static_cast<long>(area->library_at + done),
                              static_cast<long>(area->library_bytes - done));
    if (written <= 0 && written != -EINTR) {
      Call(SYS_close, fd);
      return written == 0 ? -EIO : written;
    }
    if (written > 0) done += static_cast<uint64_t>(written);
  }
  return fd;
}

__attribute__((always_inline)) inline void AppendNumber(char* text, long number) {
  char digits[20];
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  while (*text != '\0') ++text;
  while (count > 0) *text++ = digits[--count];
  *text = '\0';
}

// True: the recorder has read the reason. False: it is gone, or stands still and writes later.
__attribute__((always_inline)) inline bool Refuse(LoaderArea* area, const char* reason) {
  char* to = area->request.error;
  for (size_t i = 0; reason != nullptr && reason[i] != '\0' && i + 1 < sizeof(area->request.error);
       ++i) {
    *to++ = reason[i];
  }
  *to = '\0';
  area->request.state.store(wire::AttachState::kRefused, std::memory_order_release);
  for (uint64_t waits = 0; waits < area->most_pauses; ++waits) {
    if (area->request.state.load(std::memory_order_acquire) != wire::AttachState::kRefused) {
      return true;
    }
    Call(SYS_nanosleep, Address(&area->pause));
  }
  wire::AttachState expected = wire::AttachState::kRefused;
  return !area->request.state.compare_exchange_strong(expected, wire::AttachState::kWithdrawn);
}

// Where the library begins; nullptr: it could not be loaded. `is_over`: the recorder writes nothing
// to the area any more.
__attribute__((always_inline)) inline const void* Load(LoaderArea* area, bool* is_over) {
  constexpr int kNow = 2;  // RTLD_NOW | RTLD_LOCAL
  if (area->entry != 0) return reinterpret_cast<const void*>(area->entry);
  *is_over = false;
  if (!WaitForLibrary(area)) return nullptr;
  const long fd = CopyLibrary(area);
  if (fd < 0) {
    *is_over = Refuse(area, nullptr);
    return nullptr;
  }
  AppendNumber(area->path, fd);
  void* library = area->dlopen(area->path, kNow);
  Call(SYS_close, fd);
  const void* entry = library == nullptr ? nullptr : area->dlsym(library, area->entry_name);
  if (entry == nullptr) *is_over = Refuse(area, area->dlerror());
  return entry;
}

// The name keeps the assembly below readable.
extern "C" XPU_COPIED const void* xpu_loader_load(LoaderArea* area) {
  area->runs.store(1, std::memory_order_release);
  bool is_over = false;
  if (const void* entry = Load(area, &is_over)) return entry;
  // The library detaches the thread itself.
  area->pthread_detach(area->pthread_self());
  // Else the area stays: a function that does nothing.
  return is_over ? reinterpret_cast<const void*>(area->munmap)
                 : reinterpret_cast<const void*>(area->pthread_self);
}

}  // namespace
}  // namespace xpu

// What the function returns is jumped to, not called, because it removes this code: munmap, with
// the area and its bytes as arguments, or the library. The stack is then as at the entry, so it
// returns to the C library, which ends the thread.
asm(R"(
  .pushsection xpu_loader, "ax", @progbits
  .globl xpu_loader_thread
  .hidden xpu_loader_thread
  .type xpu_loader_thread, @function
xpu_loader_thread:
  endbr64
  pushq %rbx
  movq %rdi, %rbx
  call xpu_loader_load
  movq %rbx, %rdi
  movq 24(%rbx), %rsi
  popq %rbx
  jmp *%rax
  .size xpu_loader_thread, . - xpu_loader_thread
  .popsection
)");
static_assert(offsetof(xpu::wire::AttachRequest, area_bytes) == 24);

extern "C" {
extern const std::byte xpu_loader_thread[];
// The linker makes them: the section's name is one of C.
extern const std::byte __start_xpu_loader[];
extern const std::byte __stop_xpu_loader[];
}

namespace xpu {

std::span<const std::byte> LoaderCode() { return {__start_xpu_loader, __stop_xpu_loader}; }

size_t LoaderThreadAt() { return static_cast<size_t>(xpu_loader_thread - __start_xpu_loader); }

}  // namespace xpu
