// Kernels that end their context by a fault, and kernels that never end: what calls return, and
// which records come, with which times.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_runtime.h"
#include "cupti.h"

void ordinary(unsigned long long /*spin_ns*/) {}
void culprit(unsigned long long /*spin_ns*/) {}

namespace xpu::fake_cuda_test {
namespace {

constexpr unsigned long long kLongNs = 20'000'000;
constexpr auto kIllegalAddress = static_cast<cudaError_t>(700);

std::vector<std::string> records;  // "ordinary" or "culprit", with "?" where a time is missing

void OnRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  *size = 64 << 10;
  *max_records = 0;
  *buffer = static_cast<uint8_t*>(std::malloc(*size));
}

void OnCompleted(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer, size_t /*size*/,
                 size_t valid_bytes) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    const bool is_culprit = std::strstr(kernel->name, "culprit") != nullptr;
    const bool has_times = kernel->start != 0 && kernel->end != 0;
    records.push_back(std::string(is_culprit ? "culprit" : "ordinary") + (has_times ? "" : "?"));
  }
  std::free(buffer);
}

void Register() {
  EXPECT_EQ(cuptiActivityRegisterCallbacks(&OnRequested, &OnCompleted), CUPTI_SUCCESS);
}

void Begin(bool pinned) {
  uint8_t value = pinned ? 1 : 0;
  size_t size = sizeof(value);
  Register();
  EXPECT_EQ(
      cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, &size, &value),
      CUPTI_SUCCESS);
  EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
}

std::vector<std::string> Flush(bool forced) {
  records.clear();
  EXPECT_EQ(cuptiActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0), CUPTI_SUCCESS);
  return records;
}

cudaError_t Launch(void (*kernel)(unsigned long long), cudaStream_t stream = nullptr,
                   unsigned long long ns = 0) {
  void* arguments[] = {&ns};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(32), arguments, 0,
                          stream);
}

void LaunchAll(std::initializer_list<void (*)(unsigned long long)> kernels) {
  for (const auto kernel : kernels) EXPECT_EQ(Launch(kernel, nullptr, kLongNs), cudaSuccess);
}

cudaStream_t NewStream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

// In a process of its own: the device reads its variables once, and a fault is for good.
void InChild(const char* variable, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    putenv(strdup(variable));
    body();
    std::fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child process says why";
}

using Names = std::vector<std::string>;

TEST(Faults, AllLaterCallsReturnTheError) {
  InChild("XPU_FAKE_FAULT=culprit:700", [] {
    EXPECT_EQ(Launch(&ordinary), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    LaunchAll({&culprit, &ordinary});
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "it runs yet";
    EXPECT_EQ(cudaDeviceSynchronize(), kIllegalAddress);
    EXPECT_EQ(Launch(&ordinary), kIllegalAddress);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), kIllegalAddress);
    EXPECT_EQ(cudaStreamQuery(nullptr), kIllegalAddress);
    EXPECT_EQ(cudaGetLastError(), kIllegalAddress);
    EXPECT_EQ(cudaPeekAtLastError(), kIllegalAddress);
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 16), kIllegalAddress);
  });
}

TEST(Faults, WorkThatHadNotEndedComesWithoutTimesAtAForcedFlush) {
  InChild("XPU_FAKE_FAULT=culprit:716", [] {
    Begin(true);
    LaunchAll({&ordinary, &culprit, &ordinary, &ordinary});
    EXPECT_EQ(cudaDeviceSynchronize(), 716);
    EXPECT_EQ(Flush(false), Names{}) << "the buffer holds unfinished records";
    EXPECT_EQ(Flush(true), (Names{"ordinary", "culprit?", "ordinary?", "ordinary?"}));
    EXPECT_EQ(Flush(true), Names{});
  });
}

TEST(Faults, WithoutPinnedBuffersWorkSinceTheLastFlushHasNoTimes) {
  InChild("XPU_FAKE_FAULT=culprit:719", [] {
    Begin(false);
    LaunchAll({&ordinary});
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(Flush(false), (Names{"ordinary"}));
    LaunchAll({&ordinary, &culprit, &ordinary});
    EXPECT_EQ(cudaDeviceSynchronize(), 719);
    EXPECT_EQ(Flush(true), (Names{"ordinary?", "culprit?", "ordinary?"}));
  });
}

TEST(Faults, TheNthLaunchIsMeantAndReplaysCount) {
  InChild("XPU_FAKE_FAULT=culprit:700:2", [] {
    Begin(true);
    const cudaStream_t stream = NewStream();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(Launch(&culprit, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(Launch(&ordinary, stream), cudaSuccess);
    EXPECT_EQ(Launch(&culprit, stream), cudaSuccess);
    EXPECT_EQ(Launch(&ordinary, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), kIllegalAddress);
    EXPECT_EQ(Flush(true), (Names{"culprit", "ordinary", "culprit?", "ordinary?"}));
  });
}

TEST(Endless, OtherStreamsGoOn) {
  InChild("XPU_FAKE_ENDLESS=culprit", [] {
    Begin(true);
    const cudaStream_t hangs = NewStream();
    const cudaStream_t other = NewStream();
    for (const auto kernel : {&ordinary, &culprit, &ordinary}) {
      EXPECT_EQ(Launch(kernel, hangs), cudaSuccess);
    }
    EXPECT_EQ(Launch(&ordinary, other), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(other), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(hangs), cudaErrorNotReady);
    EXPECT_EQ(Flush(false), Names{});
    EXPECT_EQ(Flush(true), (Names{"ordinary", "culprit?", "ordinary?", "ordinary"}));
    EXPECT_EQ(Flush(true), Names{});
  });
}

// It is there late.
TEST(FirstCall, WaitsForWhatTheDeviceWorksOn) {
  InChild("XPU_FAKE_ENDLESS=culprit", [] {
    const cudaStream_t stream = NewStream();
    EXPECT_EQ(Launch(&ordinary, stream, kLongNs), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
    Register();
    EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
    EXPECT_EQ(Launch(&ordinary, stream, kLongNs), cudaSuccess);
    Register();
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady) << "only the first call waits";
  });
}

}  // namespace
}  // namespace xpu::fake_cuda_test
