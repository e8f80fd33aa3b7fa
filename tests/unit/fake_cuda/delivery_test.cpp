// When the simulated CUPTI hands buffers back, and what it drops.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "probe.h"

namespace xpu::fake_cuda_test {
namespace {

TEST(HoldBack, BufferWaitsForItsUnfinishedKernel) {
  InChild({}, [] {
    Probe probe({kKernel});
    LaunchKernel(300'000'000);
    probe.Flush();
    EXPECT_EQ(probe.Buffers().size(), 0U);
    cudaDeviceSynchronize();
    EXPECT_EQ(probe.Buffers().size(), 0U) << "only a flush brings it";
    probe.Flush();
    ASSERT_EQ(probe.Kernels().size(), 1U);
    EXPECT_GT(probe.Kernels()[0].kernel().end, 0U);
  });
}

TEST(HoldBack, OffGivesItWithoutTimes) {
  InChild({"XPU_FAKE_HOLD_BACK=0"}, [] {
    Probe probe({kKernel});
    LaunchKernel(300'000'000);
    probe.Flush();
    ASSERT_EQ(probe.Kernels().size(), 1U);
    EXPECT_EQ(probe.Kernels()[0].kernel().start, 0U);
    EXPECT_EQ(probe.Kernels()[0].kernel().end, 0U);
  });
}

TEST(HoldBack, ForcedFlushGivesItOnceWithoutTimes) {
  InChild({}, [] {
    Probe probe({kKernel});
    LaunchKernel(300'000'000);
    probe.Flush(true);
    ASSERT_EQ(probe.Kernels().size(), 1U);
    EXPECT_EQ(probe.Kernels()[0].kernel().start, 0U);
    EXPECT_EQ(probe.Kernels()[0].kernel().completed, 0U);
    cudaDeviceSynchronize();
    probe.Flush(true);
    EXPECT_EQ(probe.Kernels().size(), 1U);
  });
}

TEST(Threads, OneBufferEach) {
  InChild({}, [] {
    Probe probe({kKernel});
    LaunchKernel();
    std::thread other([] { LaunchKernels(2); });
    other.join();
    probe.WaitForBuffers(1);  // of the thread that has ended: no flush
    ASSERT_EQ(probe.Buffers().size(), 1U);
    EXPECT_EQ(probe.Buffers()[0].records.size(), 2U);
    cudaDeviceSynchronize();
    probe.Flush();
    const auto buffers = probe.Buffers();
    ASSERT_EQ(buffers.size(), 2U);
    EXPECT_EQ(buffers[1].records.size(), 1U);
    for (const SeenBuffer& buffer : buffers) {
      EXPECT_EQ(buffer.stream_id, static_cast<uint32_t>(buffer.requested_by));
      EXPECT_NE(buffer.completed_by, buffer.requested_by);
    }
    EXPECT_EQ(buffers[0].completed_by, buffers[1].completed_by);
    EXPECT_NE(buffers[0].requested_by, buffers[1].requested_by);
  });
}

void ExpectOneBufferForAll(Probe* probe) {
  LaunchKernel();
  std::thread other([] { LaunchKernels(2); });
  other.join();
  probe->Flush();
  ASSERT_EQ(probe->Buffers().size(), 1U);
  EXPECT_EQ(probe->Buffers()[0].records.size(), 3U);
}

TEST(Threads, OneBufferForAllBySwitch) {
  InChild({"XPU_FAKE_PER_THREAD=0"}, [] {
    Probe probe({kKernel});
    ExpectOneBufferForAll(&probe);
  });
}

TEST(Threads, OneBufferForAllByAttribute) {
  InChild({}, [] {
    Probe probe({kKernel});
    uint8_t off = 0;
    size_t size = sizeof(off);
    ASSERT_EQ(
        cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &off),
        CUPTI_SUCCESS);
    ExpectOneBufferForAll(&probe);
  });
}

TEST(Delivery, Late) {
  InChild({"XPU_FAKE_DELIVERY_DELAY_US=50000"}, [] {
    Probe probe({kKernel});
    LaunchKernels(1);
    const uint64_t begin = NowNs();
    probe.Flush();
    EXPECT_GE(NowNs() - begin, 50'000'000U);
    EXPECT_EQ(probe.Kernels().size(), 1U);
  });
}

TEST(Delivery, FullBufferComesWithoutFlush) {
  InChild({}, [] {
    Probe probe({kKernel});
    probe.buffer_bytes = 4 * sizeof(CUpti_ActivityKernel10) + 8;
    LaunchKernels(9);
    probe.WaitForBuffers(2);
    EXPECT_EQ(probe.Kernels().size(), 8U);
    probe.Flush();
    EXPECT_EQ(probe.Kernels().size(), 9U);
  });
}

TEST(Delivery, MaxRecordsFillABuffer) {
  InChild({}, [] {
    Probe probe({kKernel});
    probe.max_records = 3;
    LaunchKernels(7);
    probe.Flush();
    const auto buffers = probe.Buffers();
    ASSERT_EQ(buffers.size(), 3U);
    EXPECT_EQ(buffers[0].records.size(), 3U);
    EXPECT_EQ(buffers[2].records.size(), 1U);
  });
}

TEST(Delivery, FlushFromTheCompletedCallbackIsRefused) {
  InChild({}, [] {
    static std::atomic<int> result{-1};
    CUpti_SubscriberHandle subscriber = nullptr;
    cuptiSubscribe(
        &subscriber, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr);
    cuptiActivityRegisterCallbacks(
        [](uint8_t** buffer, size_t* size, size_t* max_records) {
          *size = 4096;
          *max_records = 0;
          *buffer = static_cast<uint8_t*>(std::malloc(*size));
        },
        [](CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) {
          result = cuptiActivityFlushAll(0);
          std::free(buffer);
        });
    cuptiActivityEnable(kKernel);
    LaunchKernels(1);
    EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
    EXPECT_EQ(result, CUPTI_ERROR_INVALID_OPERATION);
  });
}

TEST(Dropped, EveryFourthRecord) {
  InChild({"XPU_FAKE_DROP_EVERY=4"}, [] {
    Probe probe({kKernel});
    LaunchKernels(10);
    probe.Flush();
    EXPECT_EQ(probe.Kernels().size(), 8U);
    EXPECT_EQ(probe.dropped(), 2U);
  });
}

TEST(Dropped, WhenNoBufferIsGiven) {
  InChild({}, [] {
    Probe probe({kKernel});
    probe.refuse_buffers = true;
    LaunchKernels(5);
    probe.refuse_buffers = false;
    LaunchKernels(1);
    probe.Flush();
    EXPECT_EQ(probe.Kernels().size(), 1U);
    EXPECT_EQ(probe.dropped(), 5U);
  });
}

}  // namespace
}  // namespace xpu::fake_cuda_test
