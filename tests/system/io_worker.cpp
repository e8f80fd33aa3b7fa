// Has a thread that the kernel made in this process read, by io_uring: it comes without a fork.
// xpu_io_worker SECONDS: of CPU time of the process. Status 77: io_uring is not to be had here.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr unsigned kEntries = 4;
constexpr unsigned kBytes = 16u << 20;

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

template <typename T>
T* Map(int ring, off_t what, size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);
  if (at == MAP_FAILED) std::exit(1);
  return static_cast<T*>(at);
}

}  // namespace

int main(int, char** arguments) {
  io_uring_params setup{};
  const int ring = static_cast<int>(syscall(SYS_io_uring_setup, kEntries, &setup));
  if (ring < 0) return 77;
  auto* queue =
      Map<char>(ring, IORING_OFF_SQ_RING, setup.sq_off.array + setup.sq_entries * sizeof(unsigned));
  auto* done = Map<char>(ring, IORING_OFF_CQ_RING,
                         setup.cq_off.cqes + setup.cq_entries * sizeof(io_uring_cqe));
  auto* entries = Map<io_uring_sqe>(ring, IORING_OFF_SQES, setup.sq_entries * sizeof(io_uring_sqe));
  auto* tail = reinterpret_cast<unsigned*>(queue + setup.sq_off.tail);
  auto* places = reinterpret_cast<unsigned*>(queue + setup.sq_off.array);
  auto* taken = reinterpret_cast<unsigned*>(done + setup.cq_off.head);
  const int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  const auto buffer = std::make_unique<char[]>(kBytes);
  const double seconds = std::atof(arguments[1]);
  while (CpuSeconds() < seconds) {
    const unsigned place = *tail & (setup.sq_entries - 1);
    entries[place] = {};
    entries[place].opcode = IORING_OP_READ;
    entries[place].flags = IOSQE_ASYNC;  // not by this thread
    entries[place].fd = zeros;
    entries[place].addr = reinterpret_cast<uintptr_t>(buffer.get());
    entries[place].len = kBytes;
    places[place] = place;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) < 0) return 1;
    __atomic_store_n(taken, *taken + 1, __ATOMIC_RELEASE);
  }
  return 0;
}
