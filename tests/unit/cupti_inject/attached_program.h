// What the tests of attaches run: a program on the simulated device whose threads launch, in a
// process of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attaching_recorder.h"
#include "cuda_runtime.h"
#include "cupti_inject/buffers.h"

void probe_kernel(unsigned long long spin_ns);

namespace xpu::inject {

// In a process of its own: the libraries are once in a process. What fails there fails here.
void InChild(const std::function<void()>& body);

AttachFunction LoadLibrary();

void Launch(uint64_t spin_ns, cudaStream_t stream = nullptr);

// Threads that launch all the time, each on a stream of its own, and note when.
class Launchers {
 public:
  struct Call {
    uint64_t begin_ns;
    uint64_t end_ns;
  };

  explicit Launchers(size_t count) : calls_(count), tids_(count) {
    for (size_t i = 0; i < count; ++i) threads_.emplace_back([this, i] { Run(i); });
  }
  ~Launchers() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  // Until so many more calls have returned.
  void WaitForCalls(uint64_t count) const {
    const uint64_t end = returned_ + count;
    while (returned_ < end) usleep(100);
  }

  // Calls of each thread that lie within; nothing is launched while it looks.
  std::map<uint32_t, std::vector<Call>> CallsWithin(uint64_t begin_ns, uint64_t end_ns) {
    pause_ = true;
    while (paused_ != threads_.size()) std::this_thread::yield();
    std::map<uint32_t, std::vector<Call>> within;
    for (size_t i = 0; i < calls_.size(); ++i) {
      for (const Call& call : calls_[i]) {
        if (call.begin_ns >= begin_ns && call.end_ns <= end_ns) within[tids_[i]].push_back(call);
      }
      calls_[i].clear();
    }
    pause_ = false;
    while (paused_ != 0) std::this_thread::yield();
    return within;
  }

 private:
  void Run(size_t i) {
    tids_[i] = static_cast<uint32_t>(gettid());
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    for (uint64_t n = 1; !stop_; ++n) {
      if (pause_) {
        ++paused_;
        while (pause_) std::this_thread::yield();
        --paused_;
      }
      const uint64_t begin_ns = MonotonicNs();
      Launch(n % 50 == 0 ? 200'000 : 0, stream);
      calls_[i].push_back({begin_ns, MonotonicNs()});
      ++returned_;
      if (n % 20 == 0) {
        EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
      }
      usleep(100);
    }
    cudaStreamDestroy(stream);
  }

  std::atomic<bool> stop_{false};
  std::atomic<bool> pause_{false};
  std::atomic<size_t> paused_{0};
  std::atomic<uint64_t> returned_{0};
  std::vector<std::vector<Call>> calls_;
  std::vector<uint32_t> tids_;
  std::vector<std::thread> threads_;
};

size_t CountEntries(const char* directory);

struct Footprint {
  size_t threads = CountEntries("/proc/self/task");
  size_t descriptors = CountEntries("/proc/self/fd");
  size_t mappings = 0;
  uint64_t bytes = 0;

  Footprint() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long begin = 0, end = 0;
      if (line.find("[heap]") != std::string::npos) continue;  // the library has nothing there
      ++mappings;
      if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2) bytes += end - begin;
    }
  }
  // Up to what the C library does on its own, which splits and joins the memory of its arenas, and
  // up to the few buffers that CUPTI held when it was finalized: they stay until the next time. A
  // session that forgot something would be seen 50 times.
  friend bool operator==(const Footprint& a, const Footprint& b) {
    const auto differ = [](auto one, auto other) {
      return one > other ? one - other : other - one;
    };
    const uint64_t bytes = differ(a.bytes, b.bytes);
    const uint64_t buffers = (bytes + kBufferBytes / 2) / kBufferBytes;
    return a.threads == b.threads && a.descriptors == b.descriptors && buffers <= 8 &&
           differ(bytes, buffers * kBufferBytes) <= (64 << 10) &&
           differ(a.mappings, b.mappings) <= 2 + buffers;
  }
};

// Of GoogleTest.
std::ostream& operator<<(std::ostream& out, const Footprint& footprint);

// What there is once as many threads are left: those of a session end a moment after the
// connection.
Footprint WaitForThreads(size_t count);

// Ends the session after so many calls; each launch that the program made in that time is there
// once, with its kernel.
SessionRecords EndAfterCalls(AttachingRecorder& recorder, Launchers& launchers, uint64_t count);

}  // namespace xpu::inject
