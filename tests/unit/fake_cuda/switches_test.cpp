// Each switch of the simulated device does what tests/fake_cuda/README.md says.
#include <algorithm>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "probe.h"

namespace xpu::fake_cuda_test {
namespace {

std::vector<uint32_t> IdsOf(const std::vector<SeenRecord>& kernels) {
  std::vector<uint32_t> ids;
  for (const SeenRecord& record : kernels) ids.push_back(record.kernel().correlationId);
  return ids;
}

std::vector<uint32_t> IdsInOrder(const char* order) {
  Probe probe({kKernel});
  LaunchKernels(50);
  probe.Flush();
  EXPECT_EQ(probe.Kernels().size(), 50U) << order;
  return IdsOf(probe.Kernels());
}

TEST(Order, AsTheCallsCameByDefault) {
  InChild({}, [] {
    const std::vector<uint32_t> ids = IdsInOrder("api");
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  });
}

TEST(Order, Reverse) {
  InChild({"XPU_FAKE_ORDER=reverse"}, [] {
    const std::vector<uint32_t> ids = IdsInOrder("reverse");
    EXPECT_TRUE(std::is_sorted(ids.rbegin(), ids.rend()));
  });
}

TEST(Order, Shuffle) {
  InChild({"XPU_FAKE_ORDER=shuffle"}, [] {
    std::vector<uint32_t> ids = IdsInOrder("shuffle");
    EXPECT_FALSE(std::is_sorted(ids.begin(), ids.end()));
    EXPECT_FALSE(std::is_sorted(ids.rbegin(), ids.rend()));
    EXPECT_EQ(std::set<uint32_t>(ids.begin(), ids.end()).size(), 50U);
  });
}

// On two streams a later call can start earlier: without any switch.
TEST(Order, TimesOfTwoStreamsAreOutOfOrder) {
  InChild({}, [] {
    Probe probe({kKernel});
    cudaStream_t slow = NewStream();
    cudaStream_t fast = NewStream();
    LaunchKernel(5'000'000, slow);
    LaunchKernel(0, slow);
    LaunchKernel(0, fast);
    cudaDeviceSynchronize();
    probe.Flush();
    const auto kernels = probe.Kernels();
    ASSERT_EQ(kernels.size(), 3U);
    EXPECT_GT(kernels[1].kernel().start, kernels[2].kernel().end);
  });
}

TEST(JustInTime, CompiledThenStored) {
  InChild({"XPU_FAKE_JIT_NS=5000000"}, [] {
    Probe probe({CUPTI_ACTIVITY_KIND_JIT});
    LaunchKernels(2);
    probe.Flush();
    const auto records = probe.Records(CUPTI_ACTIVITY_KIND_JIT);
    ASSERT_EQ(records.size(), 2U);
    const auto compile = records[0].As<CUpti_ActivityJit2>();
    const auto store = records[1].As<CUpti_ActivityJit2>();
    EXPECT_EQ(compile.jitOperationType, CUPTI_ACTIVITY_JIT_OPERATION_COMPILE);
    EXPECT_EQ(compile.end - compile.start, 5'000'000U);
    EXPECT_EQ(compile.threadId, static_cast<uint32_t>(gettid()));
    EXPECT_EQ(store.jitOperationType, CUPTI_ACTIVITY_JIT_OPERATION_CACHE_STORE);
    EXPECT_EQ(store.end - store.start, 500'000U);
    EXPECT_EQ(store.jitOperationCorrelationId, compile.jitOperationCorrelationId);
  });
}

TEST(Times, ZeroInEveryThirdKernel) {
  InChild({"XPU_FAKE_ZERO_TIMES_EVERY=3"}, [] {
    Probe probe({kKernel});
    LaunchKernels(9);
    probe.Flush();
    const auto kernels = probe.Kernels();
    ASSERT_EQ(kernels.size(), 9U);
    for (size_t i = 0; i < 9; ++i) {
      const CUpti_ActivityKernel10 kernel = kernels[i].kernel();
      EXPECT_EQ(kernel.start == 0, i % 3 == 2) << i;
      EXPECT_EQ(kernel.end == 0, i % 3 == 2) << i;
      EXPECT_EQ(kernel.completed, kernel.end) << i;
    }
  });
}

TEST(Times, BackwardInEverySecondKernel) {
  InChild({"XPU_FAKE_BACKWARD_TIMES_EVERY=2"}, [] {
    Probe probe({kKernel});
    LaunchKernels(6);
    probe.Flush();
    const auto kernels = probe.Kernels();
    ASSERT_EQ(kernels.size(), 6U);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(kernels[i].kernel().end < kernels[i].kernel().start, i % 2 == 1) << i;
    }
  });
}

TEST(Names, OverwrittenAfterTheCallback) {
  InChild({}, [] {
    Probe probe({kKernel});
    LaunchKernels(2);
    probe.Flush();
    EXPECT_EQ(probe.Kernels()[0].name, "_Z12probe_kernely");
    EXPECT_STREQ(probe.last_name(), "#################");
    LaunchKernels(1);
    probe.Flush();
    EXPECT_EQ(probe.Kernels()[2].name, "_Z12probe_kernely") << "the next buffer has a good one";
  });
}

TEST(Names, KeptBySwitch) {
  InChild({"XPU_FAKE_NAMES=keep"}, [] {
    Probe probe({kKernel});
    LaunchKernels(2);
    probe.Flush();
    EXPECT_STREQ(probe.last_name(), "_Z12probe_kernely");
    EXPECT_EQ(probe.Kernels()[0].kernel().name, probe.Kernels()[1].kernel().name);
  });
}

TEST(Subscribers, SecondIsRefused) {
  InChild({}, [] {
    Probe probe({});
    CUpti_SubscriberHandle second = nullptr;
    const auto nothing = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {};
    EXPECT_EQ(cuptiSubscribe(&second, nothing, nullptr), 39);
    EXPECT_EQ(second, nullptr);
  });
}

TEST(Subscribers, FirstIsRefusedWhenAnotherToolWasThere) {
  InChild({"XPU_FAKE_SUBSCRIBED=1"}, [] {
    CUpti_SubscriberHandle first = nullptr;
    const auto nothing = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {};
    EXPECT_EQ(cuptiSubscribe(&first, nothing, nullptr), 39);
    LaunchKernels(1);  // the program does not care
  });
}

// 117 ids go to cudart's questions about the device before the first runtime call.
TEST(CorrelationIds, WrapPastZero) {
  InChild({"XPU_FAKE_FIRST_CORRELATION_ID=4294967276"}, [] {  // 2^32 - 20
    Probe probe({kKernel});
    LaunchKernels(2);
    probe.Flush();
    const auto calls = probe.Calls();
    std::vector<uint32_t> ids;
    for (const SeenCall& call : calls) {
      if (!call.exit && (ids.empty() || ids.back() != call.correlation_id)) {
        ids.push_back(call.correlation_id);
      }
    }
    EXPECT_EQ(ids[0], 4294967276U);
    EXPECT_EQ(ids[19], 4294967295U);
    EXPECT_EQ(ids[20], 1U);
    // cuLibraryLoadData 98, cuLibraryGetKernel 99, then the two launches.
    EXPECT_EQ(IdsOf(probe.Kernels()), (std::vector<uint32_t>{100, 101}));
  });
}

TEST(CorrelationIds, CallsOfEveryThreadTakeOne) {
  InChild({}, [] {
    Probe probe({kKernel});
    LaunchKernel();
    std::thread other([] {
      int version = 0;
      EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
      EXPECT_EQ(version, 13000);
    });
    other.join();
    LaunchKernels(1);
    probe.Flush();
    const std::vector<uint32_t> ids = IdsOf(probe.Kernels());
    EXPECT_EQ(ids[1] - ids[0], 2U);
  });
}

class KernelSizes : public testing::TestWithParam<uint32_t> {};

TEST_P(KernelSizes, AreAsAsked) {
  const uint32_t bytes = GetParam();
  InChild({"XPU_FAKE_RECORD_BYTES=10:" + std::to_string(bytes)}, [bytes] {
    Probe probe({kKernel});
    LaunchKernels(3);
    probe.Flush();
    const auto kernels = probe.Kernels();
    ASSERT_EQ(kernels.size(), 3U);
    for (const SeenRecord& record : kernels) {
      ASSERT_EQ(record.bytes.size(), bytes);
      EXPECT_EQ(record.name, "_Z12probe_kernely");
      EXPECT_EQ(record.kernel().gridY, 3);
      EXPECT_EQ(record.kernel().dynamicSharedMemory, 48);
      for (size_t i = sizeof(CUpti_ActivityKernel10); i < bytes; ++i) {
        EXPECT_EQ(record.bytes[i], 0xa5) << i;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Bytes, KernelSizes, testing::Values(160, 200, 208, 216, 240));

TEST(Sizes, OfSeveralKinds) {
  InChild({"XPU_FAKE_RECORD_BYTES=1:64,2:72,38:40"}, [] {
    Probe probe({kKernel, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
                 CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
    void* memory = nullptr;
    int number = 7;
    cudaMalloc(&memory, sizeof(number));
    cudaMemsetAsync(memory, 1, sizeof(number), nullptr);
    cudaMemcpy(memory, &number, sizeof(number), cudaMemcpyHostToDevice);
    LaunchKernels(1);
    probe.Flush();
    ASSERT_EQ(probe.Records(CUPTI_ACTIVITY_KIND_MEMCPY).size(), 1U);
    EXPECT_EQ(probe.Records(CUPTI_ACTIVITY_KIND_MEMCPY)[0].bytes.size(), 64U);
    EXPECT_EQ(probe.Records(CUPTI_ACTIVITY_KIND_MEMSET).at(0).bytes.size(), 72U);
    EXPECT_EQ(probe.Records(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION).at(0).bytes.size(), 40U);
    EXPECT_EQ(probe.Kernels().at(0).bytes.size(), 216U);
  });
}

TEST(UnknownKind, BehindEverySecondRecord) {
  InChild({"XPU_FAKE_UNKNOWN_KIND_EVERY=2"}, [] {
    Probe probe({kKernel});
    LaunchKernels(6);
    probe.Flush();
    EXPECT_EQ(probe.Kernels().size(), 6U);
    const auto unknown = probe.Records(200);
    ASSERT_EQ(unknown.size(), 3U);
    ASSERT_EQ(unknown[0].bytes.size(), 72U);
    for (uint32_t i = 4; i < 72; ++i) EXPECT_EQ(unknown[0].bytes[i], i);
  });
}

TEST(Overheads, NoneOnRequest) {
  InChild({"XPU_FAKE_OVERHEADS=0"}, [] {
    Probe probe({kKernel, CUPTI_ACTIVITY_KIND_OVERHEAD});
    LaunchKernels(2);
    probe.Flush();
    EXPECT_EQ(probe.Kernels().size(), 2U);
    EXPECT_TRUE(probe.Records(CUPTI_ACTIVITY_KIND_OVERHEAD).empty());
  });
}

// cuptiGetTimestamp minus CLOCK_REALTIME, and how far it is off at most.
int64_t CuptiMinusRealtime(int64_t* uncertainty_ns) {
  const uint64_t before = NowNs(CLOCK_REALTIME);
  uint64_t cupti = 0;
  EXPECT_EQ(cuptiGetTimestamp(&cupti), CUPTI_SUCCESS);
  const uint64_t after = NowNs(CLOCK_REALTIME);
  *uncertainty_ns = static_cast<int64_t>(after - before) + 1'000'000;  // NTP may steer
  return static_cast<int64_t>(cupti - before);
}

TEST(Clock, Offset) {
  InChild({"XPU_FAKE_CLOCK_OFFSET_NS=-5000000000"}, [] {
    Probe probe({kKernel});
    int64_t uncertainty = 0;
    const int64_t difference = CuptiMinusRealtime(&uncertainty);
    EXPECT_NEAR(static_cast<double>(difference), -5e9, static_cast<double>(uncertainty));
    uint64_t before = 0;
    uint64_t after = 0;
    cuptiGetTimestamp(&before);
    LaunchKernels(1);
    cuptiGetTimestamp(&after);
    probe.Flush();
    EXPECT_GT(probe.Kernels()[0].kernel().start, before) << "records use that clock";
    EXPECT_LT(probe.Kernels()[0].kernel().end, after);
  });
}

TEST(Clock, Drift) {
  InChild({"XPU_FAKE_CLOCK_DRIFT_PPM=1000000"}, [] {  // twice as fast
    uint64_t cupti[2];
    uint64_t begin = NowNs();
    cuptiGetTimestamp(&cupti[0]);
    const uint64_t begin_inner = NowNs();
    usleep(20'000);
    const uint64_t end_inner = NowNs();
    cuptiGetTimestamp(&cupti[1]);
    const uint64_t end = NowNs();
    EXPECT_GE(cupti[1] - cupti[0], 2 * (end_inner - begin_inner));
    EXPECT_LE(cupti[1] - cupti[0], 2 * (end - begin));
  });
}

TEST(Clock, BeforeTheContext) {
  InChild({"XPU_FAKE_TIMESTAMP_BEFORE_CONTEXT=15"}, [] {
    uint64_t timestamp = 0;
    EXPECT_EQ(cuptiGetTimestamp(&timestamp), CUPTI_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
    EXPECT_EQ(cuptiGetTimestamp(&timestamp), CUPTI_ERROR_NOT_INITIALIZED);
    LaunchKernels(1);
    EXPECT_EQ(cuptiGetTimestamp(&timestamp), CUPTI_SUCCESS);
  });
  InChild({}, [] {
    uint64_t timestamp = 0;
    EXPECT_EQ(cuptiGetTimestamp(&timestamp), CUPTI_SUCCESS) << "by default it works";
  });
}

TEST(Callbacks, OnlyTheOnesEnabled) {
  InChild({}, [] {
    static std::vector<uint32_t> seen;
    CUpti_SubscriberHandle subscriber = nullptr;
    cuptiSubscribe(
        &subscriber,
        [](void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void*) {
          seen.push_back(static_cast<uint32_t>(domain) * 1000 + id);
        },
        nullptr);
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, 307);
    LaunchKernels(2);
    EXPECT_EQ(seen, (std::vector<uint32_t>{1307, 1307, 1307, 1307}));
    EXPECT_EQ(cuptiUnsubscribe(subscriber), CUPTI_SUCCESS);
    LaunchKernels(1);
    EXPECT_EQ(seen.size(), 4U);
    EXPECT_EQ(cuptiSubscribe(
                  &subscriber, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {},
                  nullptr),
              CUPTI_SUCCESS);
  });
}

TEST(Callbacks, Names) {
  const char* name = nullptr;
  EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, 307, &name), CUPTI_SUCCESS);
  EXPECT_STREQ(name, "cuLaunchKernel");
  EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 211, &name), CUPTI_SUCCESS);
  EXPECT_STREQ(name, "cudaLaunchKernel_v7000");
  EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RESOURCE, 1, &name),
            CUPTI_ERROR_INVALID_PARAMETER);
}

}  // namespace
}  // namespace xpu::fake_cuda_test
