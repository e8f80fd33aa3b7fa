// Owners of resources that C libraries and the kernel hand out.
#pragma once

#include <memory>
#include <utility>

#include <unistd.h>

namespace xpu {

// Handle<bpf_object, bpf_object__close> owns a pointer that `Close` frees.
template <auto Close>
struct HandleDeleter {
  template <typename T>
  void operator()(T* pointer) const {
    Close(pointer);
  }
};
template <typename T, auto Close>
using Handle = std::unique_ptr<T, HandleDeleter<Close>>;

// Owns a file descriptor; -1 is none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Gives the descriptor away without closing it.
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (int old = std::exchange(fd_, fd); old >= 0) ::close(old);
  }

 private:
  int fd_ = -1;
};

}  // namespace xpu
