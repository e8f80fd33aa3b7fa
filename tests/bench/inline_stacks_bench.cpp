// What a launch stack costs in the program, by depth: the walk by tables in the callback, the look
// for a stack that was sent before, and its message. In processor time, so that what else runs on
// the machine counts little. Prints a table.

#include <cstdio>
#include <ctime>
#include <memory>
#include <new>
#include <vector>

#include <sys/mman.h>

#include "cupti_inject/launch_stacks.h"
#include "cupti_inject/wire_stacks.h"
#include "format/base/check.h"
#include "symbolize/unwind/unwind_builder.h"

namespace xpu {
namespace {

constexpr uint64_t kCapacityBytes = uint64_t{16} << 20;
constexpr uint64_t kArenaBytes = uint64_t{256} << 20;
constexpr int kRounds = 20'000;

uint64_t ThreadNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// The recorder's side: a ring that is emptied, tables of every file that is reported.
class Recorder {
 public:
  Recorder() {
    const int memfd = memfd_create("bench-ring", 0);
    const size_t once = wire::kHeaderBytes + kCapacityBytes;
    XPU_CHECK(ftruncate(memfd, static_cast<off_t>(once)) == 0);
    auto* base = static_cast<std::byte*>(
        mmap(nullptr, once + kCapacityBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mmap(base, once, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd, 0);
    mmap(base + once, kCapacityBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd,
         wire::kHeaderBytes);
    data_ = base + wire::kHeaderBytes;
    arena_ = static_cast<std::byte*>(mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    mapped.header = new (base) wire::RingHeader{};
    mapped.capacity_bytes = kCapacityBytes;
    mapped.arena = arena_;
    mapped.arena_bytes = kArenaBytes;
    ring.Attach(mapped.header, kCapacityBytes);
  }

  void AnswerFiles() {
    ForEachMessage([&](const wire::MessageHeader& message) {
      if (message.kind != wire::MessageKind::kCodeFile) return;
      const auto& file = reinterpret_cast<const wire::CodeFileMessage&>(message);
      const std::string name(reinterpret_cast<const char*>(&file + 1), file.name_bytes);
      mapped.header->tables[file.file].store(TableOf(name.empty() ? "/proc/self/exe" : name));
    });
    Empty();
  }
  void Empty() {
    const uint64_t tail = mapped.header->tail.load();
    const uint64_t head = mapped.header->head.load();
    std::memset(data_ + tail % kCapacityBytes, 0, head - tail);
    mapped.header->tail.store(head);
  }

  inject::MappedRing mapped;
  inject::RingProducer ring;

 private:
  template <typename Visit>
  void ForEachMessage(Visit&& visit) {
    uint64_t at = mapped.header->tail.load();
    while (at < mapped.header->head.load()) {
      const auto& message =
          *reinterpret_cast<const wire::MessageHeader*>(data_ + at % kCapacityBytes);
      visit(message);
      at += message.size_and_state.load() & ~wire::kReady;
    }
  }
  uint32_t TableOf(const std::string& path) {
    auto file = ElfFile::Open(path);
    if (!file.ok()) return wire::kTableNone;
    auto table = BuildUnwindTable(file->image());
    if (!table.ok()) return wire::kTableNone;
    const auto bytes = table->bytes();
    std::memcpy(arena_ + used_, bytes.data(), bytes.size());
    const auto place = static_cast<uint32_t>(used_ / wire::kTableUnit);
    used_ += bytes.size();
    return place;
  }

  std::byte* data_ = nullptr;
  std::byte* arena_ = nullptr;
  uint64_t used_ = 64;
};

struct Bench {
  Recorder recorder;
  inject::Signal wake;
  inject::LaunchStacks stacks;
  inject::ThreadStack own{};
  uint64_t walk_ns = 0;
  uint64_t empty_ns = 0;
};

__attribute__((noinline)) void Measure(Bench* bench) {
  const wire::LaunchCall call{1, 2, 3, 4, 5, 0, 0};
  for (int pass = 0; pass < 2; ++pass) {  // the first one fills the caches
    const uint64_t begin = ThreadNs();
    for (int i = 0; i < kRounds; ++i) {
      bench->stacks.Take(call, inject::CallerRegisters(), bench->own);
    }
    bench->walk_ns = ThreadNs() - begin;
    bench->recorder.Empty();
  }
}

// Without a frame pointer, as most libraries are built.
__attribute__((noinline, optimize("omit-frame-pointer"))) void Descend(Bench* bench, int depth) {
  if (depth == 0) {
    Measure(bench);
  } else {
    Descend(bench, depth - 1);
  }
  __asm__ volatile("");  // no tail call
}

}  // namespace
}  // namespace xpu

int main() {
  auto bench = std::make_unique<xpu::Bench>();
  XPU_CHECK(bench->stacks.Open(bench->recorder.mapped, &bench->recorder.ring, &bench->wake));
  bench->stacks.Refresh();
  bench->recorder.AnswerFiles();
  std::printf("%8s %14s\n", "frames", "ns per launch");
  uint64_t first_ns = 0;
  for (const int depth : {0, 8, 16, 32, 56, 100}) {
    xpu::Descend(bench.get(), depth);
    const uint64_t ns = bench->walk_ns / xpu::kRounds;
    if (depth == 0) first_ns = ns;
    std::printf("%8d %14lu", depth + 5, static_cast<unsigned long>(ns));
    if (depth > 0) {
      std::printf("   %.1f ns a frame", static_cast<double>(ns - first_ns) / depth);
    }
    std::printf("\n");
  }
  return 0;
}
