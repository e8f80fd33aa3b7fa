// Where the simulated CUPTI is as strict as the real one, or stricter, and a library that broke the
// rule would record the same: what system tests cannot see, although they hold the library by it.
// What else the device and its switches do shows in tests/system/gpu_*.py, which count it.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_runtime.h"
#include "cupti.h"

void probe_kernel(unsigned long long /*spin_ns*/) {}

namespace xpu::fake_cuda_test {
namespace {

void LaunchKernels(int count) {
  unsigned long long argument = 0;
  void* arguments[] = {&argument};
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(cudaLaunchKernel(reinterpret_cast<const void*>(&probe_kernel), dim3(1), dim3(32),
                               arguments, 0, nullptr),
              cudaSuccess);
  }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// In a process of its own: the libraries read their variables once. What fails there fails here.
void InChild(const char* variable, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (variable != nullptr) putenv(strdup(variable));
    body();
    std::fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child process says why";
}

// What the callbacks saw, on whatever thread.
std::atomic<int> buffers, records;
std::atomic<bool> gives_buffers;
std::atomic<const char*> last_name;
std::atomic<uint32_t> last_correlation_id;
std::atomic<int> result_of_flush;
std::vector<uint32_t> calls;  // on the thread of the test

void OnRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  *size = 64 << 10;
  *max_records = 0;
  *buffer = gives_buffers ? static_cast<uint8_t*>(std::malloc(*size)) : nullptr;
}

void OnCompleted(CUcontext /*context*/, uint32_t /*stream*/, uint8_t* buffer, size_t /*size*/,
                 size_t valid_bytes) {
  ++buffers;
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    ++records;
    last_name = reinterpret_cast<const CUpti_ActivityKernel10*>(record)->name;
    EXPECT_STREQ(last_name, "_Z12probe_kernely");
    last_correlation_id = reinterpret_cast<const CUpti_ActivityKernel10*>(record)->correlationId;
  }
  result_of_flush = cuptiActivityFlushAll(0);
  std::free(buffer);
}

CUpti_SubscriberHandle Subscribe() {
  CUpti_SubscriberHandle subscriber = nullptr;
  const auto on_call = [](void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void*) {
    calls.push_back(static_cast<uint32_t>(domain) * 1000 + id);
  };
  EXPECT_EQ(cuptiSubscribe(&subscriber, on_call, nullptr), CUPTI_SUCCESS);
  return subscriber;
}

// With the records of kernels on.
void Begin() {
  Subscribe();
  gives_buffers = true;
  EXPECT_EQ(cuptiActivityRegisterCallbacks(&OnRequested, &OnCompleted), CUPTI_SUCCESS);
  EXPECT_EQ(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
}

void Flush() { EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS); }

// The library copies the name of a record before it gives the buffer back.
TEST(Strictness, NamesEndWithTheCallback) {
  InChild(nullptr, [] {
    Begin();
    LaunchKernels(2);
    Flush();
    EXPECT_EQ(records, 2);
    EXPECT_STREQ(last_name, "#################");
  });
}

// It flushes on a thread of its own.
TEST(Strictness, ACallbackMayNotFlush) {
  InChild(nullptr, [] {
    Begin();
    LaunchKernels(1);
    Flush();
    EXPECT_EQ(result_of_flush, CUPTI_ERROR_INVALID_OPERATION);
  });
}

// It asks for each callback that it needs, and for no other, and gives all back.
TEST(Strictness, OnlyCallbacksThatAreOnCome) {
  InChild(nullptr, [] {
    CUpti_SubscriberHandle subscriber = Subscribe();
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, 307);
    LaunchKernels(2);
    EXPECT_EQ(calls, (std::vector<uint32_t>{1307, 1307, 1307, 1307}));
    EXPECT_EQ(cuptiUnsubscribe(subscriber), CUPTI_SUCCESS);
    LaunchKernels(1);
    EXPECT_EQ(calls.size(), 4U);
    Subscribe();  // what is free may be taken
  });
}

// It has a buffer for every request, or counts what it lost.
TEST(Strictness, WithoutABufferRecordsAreDroppedAndCounted) {
  InChild(nullptr, [] {
    Begin();
    gives_buffers = false;
    LaunchKernels(5);
    gives_buffers = true;
    LaunchKernels(1);
    Flush();
    EXPECT_EQ(records, 1);
    size_t dropped = 0;
    cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
    EXPECT_EQ(dropped, 5U);
  });
}

// It does not take the records of a buffer for those of one thread.
TEST(Strictness, OneBufferForAllThreadsOnRequest) {
  for (const bool per_thread : {true, false}) {
    InChild(per_thread ? nullptr : "XPU_FAKE_PER_THREAD=0", [per_thread] {
      Begin();
      LaunchKernels(1);
      std::thread([] { LaunchKernels(2); }).join();
      Flush();
      EXPECT_EQ(records, 3);
      EXPECT_EQ(buffers, per_thread ? 2 : 1);
    });
  }
}

// How a process of its own ends that runs `body`.
int StatusOf(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stderr) == nullptr) _exit(2);
    body();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

bool Aborts(const std::function<void()>& body) {
  const int status = StatusOf(body);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

// What the callback of a call does.
std::function<void(const CUpti_CallbackData&)> on_call;

void SubscribeToLaunches(bool driver = false) {
  CUpti_SubscriberHandle subscriber = nullptr;
  const auto callback = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
    on_call(*static_cast<const CUpti_CallbackData*>(data));
  };
  EXPECT_EQ(cuptiSubscribe(&subscriber, callback, nullptr), CUPTI_SUCCESS);
  EXPECT_EQ(driver ? cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, 307)
                   : cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, 211),
            CUPTI_SUCCESS);
}

// It finalises CUPTI at the end of a call, or once all was flushed.
TEST(Strictness, FinalizeIsAllowedAtTheEndOfACallAndAfterAFlush) {
  const auto finalize_at = [](CUpti_ApiCallbackSite site, bool driver = false) {
    SubscribeToLaunches(driver);
    on_call = [site](const CUpti_CallbackData& data) {
      if (data.callbackSite == site) cuptiFinalize();
    };
    LaunchKernels(2);
  };
  EXPECT_TRUE(Aborts([&] { finalize_at(CUPTI_API_ENTER); }));
  EXPECT_FALSE(Aborts([&] { finalize_at(CUPTI_API_EXIT); }));
  EXPECT_TRUE(Aborts([&] { finalize_at(CUPTI_API_EXIT, true); }));  // inside the runtime's call
  const auto finalize_after = [](bool flush) {
    Begin();
    LaunchKernels(1);
    if (flush) Flush();
    cuptiFinalize();
  };
  EXPECT_TRUE(Aborts([&] { finalize_after(false); }));
  EXPECT_FALSE(Aborts([&] { finalize_after(true); }));
}

// Each of its sessions has ids of its own, and nothing of the one before.
TEST(Strictness, AfterFinalizeItBeginsAnew) {
  InChild(nullptr, [] {
    std::vector<uint32_t> ids;
    for (int session = 0; session < 2; ++session) {
      SubscribeToLaunches();
      on_call = [&](const CUpti_CallbackData& data) {
        if (data.callbackSite == CUPTI_API_ENTER) ids.push_back(data.correlationId);
      };
      LaunchKernels(1);
      EXPECT_EQ(cuptiFinalize(), CUPTI_SUCCESS);
      EXPECT_EQ(cuptiActivityFlushAll(0), CUPTI_ERROR_NOT_INITIALIZED);
      LaunchKernels(3);
    }
    ASSERT_EQ(ids.size(), 2U);
    EXPECT_LT(ids[1], ids[0] + 3);
    Begin();
    LaunchKernels(1);
    Flush();
    EXPECT_EQ(records, 1);
  });
}

// It is there late: what was launched before and runs yet has a record without a call.
TEST(Strictness, AKernelThatRunsWhenItStartsHasARecord) {
  InChild(nullptr, [] {
    unsigned long long argument = 300'000'000;
    void* arguments[] = {&argument};
    // Its first call waits for what runs then, and reports nothing yet.
    EXPECT_EQ(cuptiActivityRegisterCallbacks(&OnRequested, &OnCompleted), CUPTI_SUCCESS);
    ASSERT_EQ(cudaLaunchKernel(reinterpret_cast<const void*>(&probe_kernel), dim3(1), dim3(32),
                               arguments, 0, nullptr),
              cudaSuccess);
    Begin();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    Flush();
    EXPECT_EQ(records, 1);
    EXPECT_EQ(last_correlation_id, 0U);
  });
}

// It never asks for GRAPH_TRACE in a program that ran before it came.
TEST(Strictness, GraphTraceComesBeforeTheFirstGraph) {
  const auto begin = [](bool late) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    if (!late) cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    cudaGraphCreate(&graph, 0);
    cudaGraphInstantiate(&exec, graph, 0);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  };
  EXPECT_FALSE(Aborts([&] { begin(false); }));
  EXPECT_TRUE(Aborts([&] { begin(true); }));
}

}  // namespace
}  // namespace xpu::fake_cuda_test
