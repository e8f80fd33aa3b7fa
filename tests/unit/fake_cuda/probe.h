// A small CUPTI client and a child process to run it in: the simulated libraries read their
// variables once per process.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <sys/types.h>

#include "cuda_runtime.h"
#include "cupti.h"

namespace xpu::fake_cuda_test {

constexpr auto kKernel = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;

uint64_t NowNs(clockid_t clock = CLOCK_MONOTONIC);

// Runs `body` in a forked child with `environment` ("NAME=VALUE"). Expectations that fail in the
// child fail the test.
void InChild(const std::vector<std::string>& environment, const std::function<void()>& body);

struct SeenRecord {
  uint32_t kind = 0;
  std::vector<uint8_t> bytes;
  std::string name;  // of a kernel, read in the completed callback

  template <typename Layout>
  Layout As() const {
    Layout layout;
    std::memset(&layout, 0, sizeof(layout));
    std::memcpy(&layout, bytes.data(), std::min(sizeof(layout), bytes.size()));
    return layout;
  }
  CUpti_ActivityKernel10 kernel() const { return As<CUpti_ActivityKernel10>(); }
};

struct SeenBuffer {
  pid_t requested_by = 0;
  pid_t completed_by = 0;
  uint32_t stream_id = 0;
  std::vector<SeenRecord> records;
};

struct SeenCall {
  uint32_t domain;
  uint32_t callback_id;
  bool exit;
  uint32_t correlation_id;
};

class Probe {
 public:
  // Subscribes, with all callbacks of driver and runtime, and turns `kinds` on. One per process.
  explicit Probe(const std::vector<CUpti_ActivityKind>& kinds);

  // Flushes; everything that has been handed back so far is in `buffers`.
  void Flush(bool forced = false);
  // Waits for `count` buffers without flushing.
  void WaitForBuffers(size_t count);

  std::vector<SeenRecord> Records(uint32_t kind);
  std::vector<SeenRecord> Kernels() { return Records(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL); }
  std::vector<SeenBuffer> Buffers();
  std::vector<SeenCall> Calls();
  // What a name pointer of the last buffer says now, after the callback has returned.
  const char* last_name() const { return last_name_; }
  size_t dropped() const { return dropped_; }

  size_t buffer_bytes = 64 << 10;
  size_t max_records = 0;
  bool refuse_buffers = false;

 private:
  static Probe* self_;
  static void OnCall(void* user_data, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                     const void* data);
  static void OnRequested(uint8_t** buffer, size_t* size, size_t* max_records);
  static void OnCompleted(CUcontext context, uint32_t stream_id, uint8_t* buffer, size_t size,
                          size_t valid_size);

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<SeenBuffer> buffers_;
  std::vector<std::pair<uint8_t*, pid_t>> requested_;
  std::vector<SeenCall> calls_;
  const char* last_name_ = nullptr;
  size_t dropped_ = 0;
};

// Launches a kernel of the test. Its name is probe_kernel(unsigned long long).
void LaunchKernel(uint64_t spin_ns = 0, cudaStream_t stream = nullptr);
void LaunchKernels(int count);

// A stream that waits for no other.
cudaStream_t NewStream();

}  // namespace xpu::fake_cuda_test

extern "C++" void probe_kernel(unsigned long long spin_ns);
