// Code that comes and goes while the program runs: a library, another one in its place, generated
// code. The libraries are given as arguments.
//   loads MILLISECONDS FIRST.so SECOND.so
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

#include "unwind.h"

XPU_LEAF(LeafBelowGenerated)

// The library's function burns in a leaf of its own. Returns where the library lay.
XPU_FRAME uint64_t RunLibrary(const char* path, uint64_t amount) {
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  const auto run = reinterpret_cast<void (*)(uint64_t)>(dlsym(library, "RunLoaded"));
  const uint64_t base = static_cast<const link_map*>(library)->l_addr;
  XPU_SPOIL_FRAME_POINTER();
  run(amount);
  dlclose(library);
  return base;
}

// push rbp; mov rbp, rsp; mov rax, rdi; mov rdi, rsi; call rax; pop rbp; ret
constexpr unsigned char kGenerated[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8,
                                        0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
// push rbp; mov rbp, rsp; again: dec rdi; jnz again; pop rbp; ret
constexpr unsigned char kGeneratedLeaf[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff,
                                            0xcf, 0x75, 0xfb, 0x5d, 0xc3};

XPU_FRAME void RunGenerated(uint64_t amount) {
  void* page =
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* leaf = static_cast<char*>(page) + 4096;
  std::memcpy(page, kGenerated, sizeof(kGenerated));
  std::memcpy(leaf, kGeneratedLeaf, sizeof(kGeneratedLeaf));
  XPU_SPOIL_FRAME_POINTER();
  reinterpret_cast<void (*)(void (*)(uint64_t), uint64_t)>(page)(LeafBelowGenerated, amount);
  reinterpret_cast<void (*)(uint64_t)>(leaf)(amount * 128);
  munmap(page, 8192);
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const uint64_t amount = unwind::Amount(unwind::Milliseconds(argc, argv));
  const uint64_t first = RunLibrary(argv[2], amount);
  const uint64_t second = RunLibrary(argv[3], amount);
  RunGenerated(amount);
  if (first != second) std::fprintf(stderr, "the second library lay elsewhere\n");
  using unwind::Expect;
  Expect("LeafFirst", "LeafFirst;RunLoaded;RunLibrary" XPU_BELOW_MAIN);
  Expect("LeafSecond", "LeafSecond;MiddleSecond;RunLoaded;RunLibrary" XPU_BELOW_MAIN);
  Expect("LeafBelowGenerated", "LeafBelowGenerated;[generated];RunGenerated" XPU_BELOW_MAIN);
  Expect("[generated]", "[generated];RunGenerated" XPU_BELOW_MAIN);
  return 0;
}
