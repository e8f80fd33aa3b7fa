// Time namespaces: CLOCK_MONOTONIC of a process in one is moved, and that of the kernel, by which
// BPF programs and perf events count, is not. Used in the program's process too: no library, no
// heap.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace xpu {

// From /proc/PID/timens_offsets: a line for each clock, its name, seconds and nanoseconds.
inline int64_t ParseMonotonicOffset(const char* text) {
  const char* at = std::strstr(text, "monotonic");
  if (at == nullptr) return 0;
  char* end = nullptr;
  const int64_t seconds = std::strtoll(at + std::strlen("monotonic"), &end, 10);
  return seconds * 1'000'000'000 + std::strtoll(end, nullptr, 10);
}

// What this process's CLOCK_MONOTONIC is ahead of the kernel's, in ns. 0 where that is not known.
inline int64_t ReadMonotonicOffset() {
  const int saved_errno = errno;
  char own[64] = {};
  char of_children[64] = {};
  char text[256] = {};
  // The file is about the namespace of children, which an unshare alone does not make ours.
  const bool is_ours =
      ::readlink("/proc/self/ns/time", own, sizeof(own) - 1) > 0 &&
      ::readlink("/proc/self/ns/time_for_children", of_children, sizeof(of_children) - 1) > 0 &&
      std::strcmp(own, of_children) == 0;
  if (is_ours) {
    const int fd = ::open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && ::read(fd, text, sizeof(text) - 1) < 0) text[0] = '\0';
    if (fd >= 0) ::close(fd);
  }
  errno = saved_errno;
  return ParseMonotonicOffset(text);
}

// The same, read once.
inline uint64_t MonotonicOffsetNs() {
  static const int64_t offset = ReadMonotonicOffset();
  return static_cast<uint64_t>(offset);
}

}  // namespace xpu
