#include "output_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace xpu::cupti_raw {
namespace {

constexpr size_t kWriteThroughBytes = 64 * 1024;

}  // namespace

uint64_t Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint32_t ThreadId() {
  static thread_local const auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
  return tid;
}

bool Writer::Open(const std::string& path, uint64_t max_bytes) {
  max_bytes_ = max_bytes;
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) return false;
  FileHeader header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.pid = static_cast<uint32_t>(getpid());
  header.monotonic_ns = Now(CLOCK_MONOTONIC);
  header.realtime_ns = Now(CLOCK_REALTIME);
  Append(&header, sizeof(header));
  return true;
}

bool Writer::Write(EntryType type, Payload payload, uint64_t monotonic_ns, unsigned share_percent) {
  payload.Pad();
  EntryHeader header{};
  header.type = static_cast<uint16_t>(type);
  header.size = static_cast<uint32_t>(payload.bytes().size());
  header.monotonic_ns = monotonic_ns;
  header.tid = ThreadId();
  const std::lock_guard lock(mutex_);
  if (total_bytes_ + sizeof(header) + header.size > max_bytes_ / 100 * share_percent) {
    return false;
  }
  Append(&header, sizeof(header));
  Append(payload.bytes().data(), payload.bytes().size());
  if (pending_.size() > kWriteThroughBytes) WriteThrough();
  return true;
}

void Writer::Flush() {
  const std::lock_guard lock(mutex_);
  WriteThrough();
}

void Writer::Append(const void* data, size_t size) {
  const auto* begin = static_cast<const uint8_t*>(data);
  pending_.insert(pending_.end(), begin, begin + size);
  total_bytes_ += size;
}

void Writer::WriteThrough() {
  size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t written = write(fd_, pending_.data() + done, pending_.size() - done);
    if (written < 0 && errno != EINTR) break;
    if (written > 0) done += static_cast<size_t>(written);
  }
  pending_.clear();
}

}  // namespace xpu::cupti_raw
