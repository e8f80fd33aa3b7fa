// The memory of another process.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/types.h>
#include <sys/uio.h>

namespace xpu {

class ProcessMemory {
 public:
  // `pid`: of the process or of one of its threads.
  explicit ProcessMemory(pid_t pid) : pid_(pid) {}

  // False unless all of it could be read or written.
  bool Read(uint64_t address, void* to, size_t bytes) const {
    return ReadSome(address, to, bytes) == bytes;
  }
  // As far as it is readable; returns how much that was.
  size_t ReadSome(uint64_t address, void* to, size_t bytes) const {
    const iovec ours{to, bytes};
    const iovec theirs{reinterpret_cast<void*>(address), bytes};
    const ssize_t done = ::process_vm_readv(pid_, &ours, 1, &theirs, 1, 0);
    return done < 0 ? 0 : static_cast<size_t>(done);
  }
  bool Write(uint64_t address, const void* from, size_t bytes) const {
    const iovec ours{const_cast<void*>(from), bytes};
    const iovec theirs{reinterpret_cast<void*>(address), bytes};
    return ::process_vm_writev(pid_, &ours, 1, &theirs, 1, 0) == static_cast<ssize_t>(bytes);
  }

 private:
  pid_t pid_;
};

}  // namespace xpu
