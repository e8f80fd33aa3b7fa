#include "record/kernel/perf_ring.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/base/file.h"

namespace xpu {
namespace {

size_t PageBytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

Result<PerfRing> PerfRing::Map(UniqueFd event, size_t data_bytes) {
  PerfRing ring;
  void* memory =
      ::mmap(nullptr, PageBytes() + data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event.get(), 0);
  if (memory == MAP_FAILED) {
    return SystemError("mapping the ring buffer of a perf event", errno,
                       "raise kernel.perf_event_mlock_kb or the memlock limit (ulimit -l)");
  }
  ring.event_ = std::move(event);
  ring.memory_ = memory;
  ring.data_bytes_ = data_bytes;
  return ring;
}

PerfRing::PerfRing(PerfRing&& other) noexcept
    : event_(std::move(other.event_)),
      memory_(std::exchange(other.memory_, nullptr)),
      data_bytes_(other.data_bytes_) {}

PerfRing::~PerfRing() {
  if (memory_ != nullptr) ::munmap(memory_, PageBytes() + data_bytes_);
}

uint64_t PerfRing::ReadLost() const {
  struct {
    uint64_t count;
    uint64_t lost;
  } values{};
  const ssize_t n = ::read(event_.get(), &values, sizeof(values));
  return n == static_cast<ssize_t>(sizeof(values)) ? values.lost : 0;
}

bool PerfRing::Discard() {
  auto* page = static_cast<perf_event_mmap_page*>(memory_);
  const uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
  if (head == page->data_tail) return false;
  std::atomic_ref(page->data_tail).store(head, std::memory_order_release);
  return true;
}

void PerfRing::Block() {
  auto* page = static_cast<perf_event_mmap_page*>(memory_);
  const uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
  // The kernel computes the free space modulo the ring's size and keeps one byte free: this leaves
  // seven.
  std::atomic_ref(page->data_tail).store(head + 8, std::memory_order_release);
}

uint64_t PerfRing::Drain(const std::function<void(std::span<const std::byte>)>& visit) {
  auto* page = static_cast<perf_event_mmap_page*>(memory_);
  const auto* data = static_cast<const std::byte*>(memory_) + PageBytes();
  const uint64_t head = std::atomic_ref(page->data_head).load(std::memory_order_acquire);
  uint64_t tail = page->data_tail;
  uint64_t released = tail;
  uint64_t senseless = 0;
  while (tail < head) {
    perf_event_header header;
    const size_t at = tail & (data_bytes_ - 1);
    std::memcpy(&header, data + at, sizeof(header));  // records lie at multiples of 8
    if (header.size < sizeof(header) || header.size > head - tail) {
      ++senseless;
      tail = head;
      break;
    }
    if (at + header.size <= data_bytes_) {
      visit({data + at, header.size});
    } else {
      const size_t first = data_bytes_ - at;
      joined_.resize(header.size);
      std::memcpy(joined_.data(), data + at, first);
      std::memcpy(joined_.data() + first, data, header.size - first);
      visit(joined_);
    }
    tail += header.size;
    // Released early: the kernel writes meanwhile, and drops what does not fit.
    if (tail - released >= data_bytes_ / 16) {
      std::atomic_ref(page->data_tail).store(tail, std::memory_order_release);
      released = tail;
    }
  }
  std::atomic_ref(page->data_tail).store(tail, std::memory_order_release);
  return senseless;
}

}  // namespace xpu
