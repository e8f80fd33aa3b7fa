// The code that runs on the thread that was started in the process, until our library is loaded.
// It is copied there as bytes, so it calls nothing but the functions that it is given, and has no
// data of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>

#include "cupti_inject/attach_request.h"

namespace xpu {

enum class LibraryState : uint32_t {
  kComing = 0,   // the recorder is copying the library
  kThere = 1,    // it is in the area
  kGivenUp = 2,  // nobody comes: the thread ends
};

// What the area begins with.
struct LoaderArea {
  wire::AttachRequest request;
  std::atomic<LibraryState> library_state;
  std::atomic<uint32_t> runs;  // 1: the new thread has begun, so the area is its own
  uint64_t library_at;         // address in the process
  uint64_t library_bytes;
  timespec pause;        // while it waits for the recorder,
  uint64_t most_pauses;  // so often
  uint64_t entry;        // of a library that is mapped already; 0: it has to be loaded
  // Functions of the process.
  int (*munmap)(void*, size_t);
  unsigned long (*pthread_self)();
  int (*pthread_detach)(unsigned long);
  void* (*dlopen)(const char*, int);
  void* (*dlsym)(void*, const char*);
  char* (*dlerror)();
  uint64_t thread;  // for pthread_create
  char memfd_name[32];
  char entry_name[32];
  char path[64];  // for "/proc/thread-self/fd/N"
};

// The bytes, and where the function of the new thread begins in them.
std::span<const std::byte> LoaderCode();
size_t LoaderThreadAt();

}  // namespace xpu
