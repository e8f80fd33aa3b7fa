// Several devices, the doors of a launch, graphs built by hand, and the switches that go with them.
#include <atomic>
#include <set>

#include <gtest/gtest.h>

#include "probe.h"

// What a file compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM calls.
extern "C" cudaError_t cudaLaunchKernel_ptsz(const void* function, dim3 grid, dim3 block,
                                             void** args, size_t shared_bytes, cudaStream_t stream);

namespace xpu::fake_cuda_test {
namespace {

const void* const kKernelAddress = reinterpret_cast<const void*>(&probe_kernel);

// Domain and id of the calls that came while `body` ran, in order.
std::vector<std::pair<uint32_t, uint32_t>> EntriesOf(Probe* probe,
                                                     const std::function<void()>& body) {
  const size_t before = probe->Calls().size();
  body();
  std::vector<std::pair<uint32_t, uint32_t>> entries;
  const std::vector<SeenCall> calls = probe->Calls();
  for (size_t i = before; i < calls.size(); ++i) {
    if (!calls[i].exit) entries.emplace_back(calls[i].domain, calls[i].callback_id);
  }
  return entries;
}

using Entries = std::vector<std::pair<uint32_t, uint32_t>>;

TEST(Doors, EachHasItsOwnId) {
  InChild({}, [] {
    Probe probe({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    LaunchKernel();  // whatever comes first
    unsigned long long spin = 0;
    void* args[] = {&spin};
    cudaLaunchConfig_t config{};
    EXPECT_EQ(EntriesOf(&probe,
                        [&] {
                          cudaLaunchCooperativeKernel(kKernelAddress, 1, 1, args, 0, nullptr);
                          cudaLaunchKernelExC(&config, kKernelAddress, args);
                          cudaLaunchKernel_ptsz(kKernelAddress, 1, 1, args, 0, nullptr);
                        }),
              (Entries{{2, 269}, {1, 477}, {2, 430}, {1, 652}, {2, 214}, {1, 442}}));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    probe.Flush();
    ASSERT_EQ(probe.Kernels().size(), 4U);
    EXPECT_EQ(probe.Kernels()[2].kernel().streamId, 7U);
    EXPECT_NE(probe.Kernels()[3].kernel().streamId, 7U) << "the thread's own stream";
  });
}

TEST(Doors, AHostFunctionRunsBehindTheWorkAndHasNoRecord) {
  InChild({}, [] {
    Probe probe({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    std::atomic<int> calls = 0;
    LaunchKernel(5'000'000);
    EXPECT_EQ(cudaLaunchHostFunc(
                  nullptr, [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &calls),
              cudaSuccess);
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
    EXPECT_EQ(calls, 1);
    probe.Flush();
    EXPECT_EQ(probe.Kernels().size(), 1U);
  });
}

TEST(Devices, HaveNamesContextsAndPeerCopies) {
  InChild({"XPU_FAKE_DEVICES=2"}, [] {
    Probe probe({CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                 CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2});
    void* memory[2] = {};
    for (int device = 0; device < 2; ++device) {
      EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
      EXPECT_EQ(cudaMalloc(&memory[device], 1000), cudaSuccess);
      LaunchKernel();
    }
    EXPECT_EQ(cudaMemcpyPeer(memory[0], 0, memory[1], 1, 1000), cudaSuccess);
    EXPECT_EQ(cudaMemcpyPeer(memory[1], 1, memory[1], 1, 1000), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    probe.Flush();
    std::set<std::string> uuids;
    for (const SeenRecord& record : probe.Records(CUPTI_ACTIVITY_KIND_DEVICE)) {
      const auto device = record.As<CUpti_ActivityDevice5>();
      uuids.emplace(reinterpret_cast<const char*>(device.uuid), 16);
    }
    EXPECT_EQ(uuids, (std::set<std::string>{"xpu simulated 00", "xpu simulated 01"}));
    ASSERT_EQ(probe.Kernels().size(), 2U);
    for (uint32_t i = 0; i < 2; ++i) {
      EXPECT_EQ(probe.Kernels()[i].kernel().deviceId, i);
      EXPECT_EQ(probe.Kernels()[i].kernel().contextId, i + 1);
    }
    const auto peers = probe.Records(CUPTI_ACTIVITY_KIND_MEMCPY2);
    ASSERT_EQ(peers.size(), 1U);
    const auto peer = peers[0].As<CUpti_ActivityMemcpyPtoP4>();
    EXPECT_EQ(peer.srcDeviceId, 1U);
    EXPECT_EQ(peer.dstDeviceId, 0U);
    EXPECT_EQ(peer.bytes, 1000U);
    EXPECT_EQ(probe.Records(CUPTI_ACTIVITY_KIND_MEMCPY).size(), 1U) << "within one device";
  });
}

TEST(Devices, WorkAgainAfterAReset) {
  InChild({}, [] {
    Probe probe({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    LaunchKernels(1);
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
    LaunchKernels(2);
    probe.Flush();
    EXPECT_EQ(probe.Kernels().size(), 3U);
  });
}

cudaGraphNode_t AddKernel(cudaGraph_t graph, const cudaGraphNode_t* before) {
  unsigned long long spin = 0;
  void* args[] = {&spin};
  cudaKernelNodeParams params{};
  params.func = const_cast<void*>(kKernelAddress);
  params.kernelParams = args;
  cudaGraphNode_t node = nullptr;
  EXPECT_EQ(cudaGraphAddKernelNode(&node, graph, before, before == nullptr ? 0 : 1, &params),
            cudaSuccess);
  return node;
}

// As graph_paths on the real device: the child's node has a number of the executable graph.
TEST(Graphs, AChildsNodeMovesIntoTheExecutableGraph) {
  InChild({}, [] {
    Probe probe({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    cudaGraph_t child = nullptr;
    cudaGraph_t parent = nullptr;
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaGraphCreate(&child, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphCreate(&parent, 0), cudaSuccess);
    AddKernel(child, nullptr);
    cudaGraphNode_t first = AddKernel(parent, nullptr);
    cudaGraphNode_t holder = nullptr;
    EXPECT_EQ(cudaGraphAddChildGraphNode(&holder, parent, &first, 1, child), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&executable, parent, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphLaunch(executable, nullptr), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    probe.Flush();
    ASSERT_EQ(probe.Kernels().size(), 2U);
    const CUpti_ActivityKernel10 one = probe.Kernels()[0].kernel();
    const CUpti_ActivityKernel10 other = probe.Kernels()[1].kernel();
    EXPECT_EQ(one.graphNodeId, uint64_t{one.graphId} << 32);
    EXPECT_EQ(other.graphNodeId, (uint64_t{one.graphId} << 32) + 2);
    EXPECT_EQ(other.graphId, one.graphId);
  });
}

TEST(Graphs, RecordsBeyondTheDeviceBuffersHaveNoTimes) {
  InChild({"XPU_FAKE_DEVICE_BUFFER_RECORDS=3"}, [] {
    Probe probe({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaGraphCreate(&graph, 0), cudaSuccess);
    AddKernel(graph, nullptr);
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(cudaGraphLaunch(executable, nullptr), cudaSuccess);
    LaunchKernels(1);  // eager launches have buffers of their own
    probe.Flush();
    std::vector<bool> timed;
    for (const SeenRecord& record : probe.Kernels()) timed.push_back(record.kernel().end != 0);
    EXPECT_EQ(timed, (std::vector<bool>{true, true, true, false, false, true}));
  });
}

TEST(Subscribers, TheHoldersNameCanBeChosen) {
  InChild({"XPU_FAKE_SUBSCRIBED=1", "XPU_FAKE_HOLDER=torch.profiler"}, [] {
    char name[64] = "";
    CUpti_SubscriberParams params{CUpti_SubscriberParams_STRUCT_SIZE, "xpu", name, sizeof(name)};
    CUpti_SubscriberHandle subscriber = nullptr;
    const auto ignore = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {};
    EXPECT_EQ(cuptiSubscribe_v2(&subscriber, ignore, nullptr, &params),
              CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    EXPECT_STREQ(name, "torch.profiler");
  });
}

}  // namespace
}  // namespace xpu::fake_cuda_test
