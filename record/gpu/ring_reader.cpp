#include "record/gpu/ring_reader.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"

namespace xpu {
namespace {

size_t AddressSpaceBytes(uint64_t capacity) { return wire::kHeaderBytes + 2 * capacity; }

// Maps [header][data][data again] of `memfd`. On failure returns nullptr and sets errno.
std::byte* MapTwice(int memfd, uint64_t capacity) {
  void* space =
      ::mmap(nullptr, AddressSpaceBytes(capacity), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (space == MAP_FAILED) return nullptr;
  auto* base = static_cast<std::byte*>(space);
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  const size_t once = wire::kHeaderBytes + capacity;
  if (::mmap(base, once, kProtection, MAP_SHARED | MAP_FIXED, memfd, 0) == MAP_FAILED ||
      ::mmap(base + once, capacity, kProtection, MAP_SHARED | MAP_FIXED, memfd,
             wire::kHeaderBytes) == MAP_FAILED) {
    const int error_number = errno;
    ::munmap(space, AddressSpaceBytes(capacity));
    errno = error_number;
    return nullptr;
  }
  return base;
}

}  // namespace

Result<RingReader> RingReader::Create(uint64_t capacity_bytes, uint32_t settings) {
  XPU_CHECK(std::has_single_bit(capacity_bytes) && capacity_bytes % wire::kPageBytes == 0);
  RingReader ring;
  ring.memfd_.reset(::memfd_create("xpu-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!ring.memfd_) return SystemError("memfd_create", errno);
  if (::ftruncate(ring.memfd_.get(), static_cast<off_t>(wire::kHeaderBytes + capacity_bytes)) !=
      0) {
    return SystemError("memfd: ftruncate", errno);
  }
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (::fcntl(ring.memfd_.get(), F_ADD_SEALS, kSeals) != 0) {
    return SystemError("memfd: seal", errno);
  }
  std::byte* base = MapTwice(ring.memfd_.get(), capacity_bytes);
  if (base == nullptr) return SystemError("memfd: mmap", errno);
  ring.capacity_ = capacity_bytes;
  ring.data_ = base + wire::kHeaderBytes;
  ring.header_ = new (base) wire::RingHeader{};
  ring.header_->version = wire::kVersion;
  ring.header_->settings = settings;
  ring.header_->capacity_bytes = capacity_bytes;
  return ring;
}

RingReader::RingReader(RingReader&& other) noexcept
    : memfd_(std::move(other.memfd_)),
      header_(std::exchange(other.header_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      capacity_(other.capacity_),
      tail_(other.tail_),
      fault_(std::move(other.fault_)) {}

RingReader::~RingReader() {
  if (header_ == nullptr) return;
  Close();
  ::munmap(header_, AddressSpaceBytes(capacity_));
}

void RingReader::Fault(std::string why) {
  fault_ = std::move(why);
  Close();
}

void RingReader::Drain(const Visit& visit) {
  if (!fault_.empty()) return;
  header_->heartbeat.fetch_add(1, std::memory_order_relaxed);
  const uint64_t head = header_->head.load(std::memory_order_acquire);
  if (head - tail_ > capacity_ || head % 8 != 0) {
    Fault(Format("head {} does not fit to tail {}", head, tail_));
    return;
  }
  while (tail_ != head && TakeOne(head, visit)) {
  }
}

bool RingReader::IsSize(uint32_t size, uint64_t head) const {
  return size >= sizeof(wire::MessageHeader) && size % 8 == 0 && size <= wire::kMaxMessageBytes &&
         size <= head - tail_;
}

void RingReader::Free(uint32_t size) {
  std::memset(data_ + (tail_ & (capacity_ - 1)), 0, size);
  tail_ += size;
  header_->tail.store(tail_, std::memory_order_release);
}

bool RingReader::TakeOne(uint64_t head, const Visit& visit) {
  std::byte* start = data_ + (tail_ & (capacity_ - 1));
  auto* shared = reinterpret_cast<wire::MessageHeader*>(start);
  const uint32_t word = shared->size_and_state.load(std::memory_order_acquire);
  if ((word & wire::kReady) == 0) return false;
  const uint32_t size = word & ~wire::kReady;
  if (!IsSize(size, head)) {
    Fault(Format("message of {} bytes where {} are reserved", size, head - tail_));
    return false;
  }
  if (message_.size() < size) message_.resize(size);
  std::memcpy(message_.data(), start, size);
  wire::MessageKind kind;
  std::memcpy(&kind, message_.data() + offsetof(wire::MessageHeader, kind), sizeof(kind));
  Free(size);
  visit(kind, std::span(message_).first(size));
  return true;
}

bool RingReader::HasTornMessage() const { return fault_.empty() && End() != tail_; }

bool RingReader::SkipTornMessage(uint64_t end) {
  const uint64_t head = End();
  if (!fault_.empty() || head == tail_ || head - tail_ > capacity_) return false;
  if (end - tail_ > capacity_ || end == tail_) return false;
  const auto* shared =
      reinterpret_cast<const wire::MessageHeader*>(data_ + (tail_ & (capacity_ - 1)));
  const uint32_t word = shared->size_and_state.load(std::memory_order_acquire);
  if ((word & wire::kReady) != 0 || !IsSize(word, head)) return false;
  Free(word);
  return true;
}

void RingReader::Close() { header_->closed.store(1, std::memory_order_release); }

std::array<uint64_t, wire::kCounterCount> RingReader::ReadCounters() const {
  std::array<uint64_t, wire::kCounterCount> values{};
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = header_->counters[i][0].load(std::memory_order_relaxed);
  }
  return values;
}

wire::State RingReader::ReadState() const { return header_->state.load(std::memory_order_acquire); }

}  // namespace xpu
