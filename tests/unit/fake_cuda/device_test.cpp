// The simulated device itself: memory, the timeline, events, processes.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../fake_cuda/settings.h"
#include "probe.h"

namespace xpu::fake_cuda_test {
namespace {

constexpr char kName[] = "_Z12probe_kernely";

uint64_t Duration(const SeenRecord& record) { return record.kernel().end - record.kernel().start; }

TEST(Durations, FollowTheFormula) {
  InChild({}, [] {
    Probe probe({kKernel, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET});
    void* memory = nullptr;
    std::vector<char> host(12345);
    ASSERT_EQ(cudaMalloc(&memory, host.size()), cudaSuccess);
    cudaMemsetAsync(memory, 0, host.size(), nullptr);
    cudaMemcpy(host.data(), memory, host.size(), cudaMemcpyDeviceToHost);
    LaunchKernel(20'000'000);
    LaunchKernel(0);
    cudaDeviceSynchronize();
    probe.Flush();
    const auto kernels = probe.Kernels();
    ASSERT_EQ(kernels.size(), 2U);
    EXPECT_EQ(Duration(kernels[0]), fake_cuda::KernelDurationNs(kName, 20'000'000));
    EXPECT_EQ(Duration(kernels[1]), fake_cuda::KernelDurationNs(kName, 0));
    EXPECT_EQ(kernels[1].kernel().start, kernels[0].kernel().end + 500) << "XPU_FAKE_GAP_NS";
    const auto copy = probe.Records(CUPTI_ACTIVITY_KIND_MEMCPY).at(0).As<CUpti_ActivityMemcpy6>();
    EXPECT_EQ(copy.end - copy.start, 1000U + 1234U);
    EXPECT_EQ(copy.bytes, 12345U);
    const auto set = probe.Records(CUPTI_ACTIVITY_KIND_MEMSET).at(0).As<CUpti_ActivityMemset4>();
    EXPECT_EQ(set.end - set.start, 900U + 123U);
  });
}

TEST(Durations, OneForAllKernels) {
  InChild({"XPU_FAKE_KERNEL_NS=4321"}, [] {
    Probe probe({kKernel});
    LaunchKernel(1'000'000'000'000);
    cudaDeviceSynchronize();
    probe.Flush();
    EXPECT_EQ(Duration(probe.Kernels().at(0)), 4321U);
  });
}

TEST(Waiting, TakesAsLongAsTheWork) {
  InChild({}, [] {
    cudaStream_t stream = NewStream();
    const uint64_t begin = NowNs();
    LaunchKernel(30'000'000, stream);
    const uint64_t launched = NowNs();
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_LT(launched - begin, 30'000'000U) << "a launch does not wait";
    EXPECT_GE(NowNs() - begin, 30'000'000U);
  });
}

TEST(Events, AgreeWithTheTimeline) {
  InChild({}, [] {
    Probe probe({kKernel});
    cudaStream_t stream = NewStream();
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    LaunchKernel(20'000'000, stream);  // the host gets ahead
    cudaEventRecord(begin, stream);
    for (int i = 0; i < 10; ++i) LaunchKernel(100'000, stream);
    cudaEventRecord(end, stream);
    float milliseconds = 0;
    EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaErrorNotReady);
    cudaStreamSynchronize(stream);
    EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
    probe.Flush();
    const auto kernels = probe.Kernels();
    ASSERT_EQ(kernels.size(), 11U);
    const uint64_t expected = kernels[10].kernel().end - kernels[0].kernel().end;
    EXPECT_NEAR(static_cast<double>(milliseconds) * 1e6, static_cast<double>(expected), 100);
  });
}

TEST(Streams, NullStreamWaitsForBlockingOnes) {
  InChild({}, [] {
    Probe probe({kKernel});
    cudaStream_t blocking = nullptr;
    cudaStreamCreateWithFlags(&blocking, cudaStreamDefault);
    cudaStream_t free_stream = NewStream();
    LaunchKernel(5'000'000, blocking);
    LaunchKernel(0, nullptr);
    LaunchKernel(0, free_stream);
    cudaDeviceSynchronize();
    probe.Flush();
    const auto kernels = probe.Kernels();
    ASSERT_EQ(kernels.size(), 3U);
    EXPECT_GT(kernels[1].kernel().start, kernels[0].kernel().end);
    EXPECT_LT(kernels[2].kernel().start, kernels[0].kernel().end);
    EXPECT_EQ(kernels[0].kernel().streamId, 13U);
    EXPECT_EQ(kernels[1].kernel().streamId, 7U);
  });
}

TEST(Memory, CopiesAndSetsHappen) {
  InChild({}, [] {
    std::vector<int> host = {1, 2, 3, 4};
    const size_t bytes = host.size() * sizeof(int);
    void* first = nullptr;
    void* second = nullptr;
    ASSERT_EQ(cudaMalloc(&first, bytes), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&second, bytes), cudaSuccess);
    cudaMemcpy(first, host.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpyAsync(second, first, bytes, cudaMemcpyDeviceToDevice, nullptr);
    cudaMemsetAsync(second, 0, sizeof(int), nullptr);
    std::vector<int> back(4, -1);
    cudaMemcpy(back.data(), second, bytes, cudaMemcpyDeviceToHost);
    EXPECT_EQ(back, (std::vector<int>{0, 2, 3, 4}));
    EXPECT_EQ(cudaFree(first), cudaSuccess);
    EXPECT_EQ(cudaFree(first), cudaErrorInvalidValue);
  });
}

TEST(Memory, RecordsSayWhereItWas) {
  InChild({}, [] {
    Probe probe({CUPTI_ACTIVITY_KIND_MEMCPY});
    void* pinned = nullptr;
    void* device = nullptr;
    int pageable = 0;
    cudaMallocHost(&pinned, 64);
    cudaMalloc(&device, 64);
    cudaMemcpyAsync(device, static_cast<char*>(pinned) + 32, 4, cudaMemcpyHostToDevice, nullptr);
    cudaMemcpy(&pageable, device, 4, cudaMemcpyDeviceToHost);
    probe.Flush();
    const auto copies = probe.Records(CUPTI_ACTIVITY_KIND_MEMCPY);
    ASSERT_EQ(copies.size(), 2U);
    const auto in = copies[0].As<CUpti_ActivityMemcpy6>();
    EXPECT_EQ(in.srcKind, 2);  // pinned
    EXPECT_EQ(in.dstKind, 3);  // device
    EXPECT_EQ(in.flags, 1);    // asynchronous
    const auto out = copies[1].As<CUpti_ActivityMemcpy6>();
    EXPECT_EQ(out.srcKind, 3);
    EXPECT_EQ(out.dstKind, 1);  // pageable
    EXPECT_EQ(out.flags, 0);
  });
}

TEST(Sync, OfTheDeviceIsARecordToo) {
  InChild({}, [] {
    Probe probe({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
    LaunchKernels(1);
    probe.Flush();
    const auto sync = probe.Records(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)
                          .at(0)
                          .As<CUpti_ActivitySynchronization2>();
    EXPECT_EQ(sync.type, 4U);  // context
    EXPECT_EQ(sync.streamId, UINT32_MAX);
    EXPECT_EQ(sync.correlationId, 121U);
  });
}

TEST(Errors, WhatIsWrongIsRefused) {
  InChild({}, [] {
    int not_a_kernel = 0;
    EXPECT_EQ(cudaLaunchKernel(&not_a_kernel, dim3(1), dim3(1), nullptr, 0, nullptr),
              cudaErrorInvalidDeviceFunction);
    cudaStream_t stream = NewStream();
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, ".entry one()"), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&function, module, "two"), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(cuModuleGetFunction(&function, module, "one"), CUDA_SUCCESS);
  });
}

TEST(Fork, AChildHasNoDevice) {
  InChild({}, [] {
    Probe probe({kKernel});
    LaunchKernels(1);
    const pid_t child = fork();
    if (child == 0) {
      void* memory = nullptr;
      const bool refused = cudaMalloc(&memory, 16) == cudaErrorInitializationError &&
                           cuptiActivityFlushAll(0) == CUPTI_ERROR_NOT_INITIALIZED;
      _exit(refused ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
}

}  // namespace
}  // namespace xpu::fake_cuda_test
