// What the processes of the scene do with their GPUs.
#include "tests/golden/scene.h"

namespace xpu::test {

void Scene::AddGpu() {
  builder_.events.gpu_processes.push_back({.time_ns = kStart + 3 * kMs,
                                           .instance = {kAppInstance},
                                           .state = InjectState::kActive,
                                           .pid = kApp,
                                           .namespace_pid = 10,
                                           .cupti_version = 26,
                                           .driver_version = 13000,
                                           .cupti_path = builder_.Text("/cuda/libcupti.so.13"),
                                           .detail = {}});
  AddDevice(kAppInstance, 0, "0123456789abcdef");
  AddDevice(kAppInstance, 1, "fedcba9876543210");
  builder_.Clock(kAppInstance, kClockOffset,
                 {kStart + 10 * kMs, kStart + 1'010 * kMs, kStart + 2'010 * kMs});
  const auto name = [&](uint32_t id, const char* text) {
    builder_.Callback(kAppInstance, ApiDomain::kRuntime, id, text);
    builder_.Callback(kHelperInstance, ApiDomain::kRuntime, id, text);
  };
  name(kLaunchKernel, "cudaLaunchKernel_v7000");
  name(kMemcpyAsync, "cudaMemcpyAsync_v3020");
  name(kMemsetAsync, "cudaMemsetAsync_v3020");
  name(kGraphLaunch, "cudaGraphLaunch_v10000");
  name(kStreamSynchronize, "cudaStreamSynchronize_v3020");
  name(kMemcpyPeerAsync, "cudaMemcpyPeerAsync_v4000");
  AddOperations();
  AddGraphs();
  AddCopies();
  AddOverheads();
}

void Scene::AddDevice(uint64_t instance, uint32_t device_id, const char* uuid) {
  builder_.events.devices.push_back({.instance = {instance},
                                     .device_id = device_id,
                                     .name = builder_.Text("NVIDIA H200"),
                                     .uuid = builder_.Text(uuid),
                                     .compute_capability_major = 9,
                                     .compute_capability_minor = 0,
                                     .multiprocessor_count = 132,
                                     .global_memory_bytes = 150'000'000'000});
}

void Scene::AddOperations() {
  const uint64_t at = kStart + 100 * kMs;
  uint32_t id = 0;
  // Each call is 5 us long, 100 us after the one before; its thread is 10 or 11 for the program.
  const auto call = [&](uint32_t callback_id, StackId stack, uint32_t tid = kApp) -> uint64_t {
    ++id;
    const uint64_t start = at + id * 100'000;
    builder_.Call(kAppInstance, id, callback_id, start, start + 5'000, tid == kApp ? 10 : 11);
    if (stack) builder_.Launch(kAppInstance, id, start + 500, kApp, tid, stack);
    return start;
  };
  const auto kernel = [&](uint64_t call_start, uint64_t duration, const char* symbol) {
    const uint64_t start = Cupti(call_start + 8'000);
    Kernel& added = builder_.AddKernel(kAppInstance, id, start, start + duration, symbol);
    added.grid_x = 64;
    added.grid_y = added.grid_z = 1;
    added.block_x = 256;
    added.block_y = added.block_z = 1;
    added.registers_per_thread = 32;
    added.dynamic_shared_memory_bytes = 1024;
  };
  const StackId first = LaunchStackOf(0x20);
  const StackId second = LaunchStackOf(0x40);  // another line of the same function

  kernel(call(kLaunchKernel, first), 20'400, kSoftmax);
  kernel(call(kLaunchKernel, second), 30'400, kSoftmax);
  kernel(call(kLaunchKernel, first), 1'000'700, kMatmul);
  kernel(call(kLaunchKernel, first, kWorker), 300, kMatmul);
  call(kLaunchKernel, second);  // its kernel never arrives
  kernel(call(kLaunchKernel, StackId{}), 7'000, kSoftmax);
  kernel(call(kLaunchKernel, first), 0, kSoftmax);  // no valid time
  builder_.events.kernels.back().start_ns = 0;
  builder_.events.kernels.back().end_ns = 0;

  uint64_t start = call(kMemcpyAsync, LaunchStackOf(0x20, 0x100));
  Memcpy& copy = builder_.events.memcpys.emplace_back();
  copy.instance = {kAppInstance};
  copy.record_size_bytes = 96;
  copy.start_ns = Cupti(start + 9'000);
  copy.end_ns = copy.start_ns + 50'000;
  copy.size_bytes = 4'000'000;
  copy.correlation_id = id;
  copy.context_id = 1;
  copy.stream_id = 7;
  copy.copy_kind = 1;
  copy.source_kind = 2;
  copy.destination_kind = 3;

  start = call(kMemsetAsync, LaunchStackOf(0x20, 0x200));
  Memset& set = builder_.events.memsets.emplace_back();
  set.instance = {kAppInstance};
  set.record_size_bytes = 88;
  set.start_ns = Cupti(start + 9'000);
  set.end_ns = set.start_ns + 2'000;
  set.size_bytes = 1'024;
  set.correlation_id = id;
  set.context_id = 1;
  set.stream_id = 7;

  start = call(kGraphLaunch, LaunchStackOf(0x20, 0x300));
  GraphLaunch& graph = builder_.events.graph_launches.emplace_back();
  graph.instance = {kAppInstance};
  graph.record_size_bytes = 64;
  graph.start_ns = Cupti(start + 9'000);
  graph.end_ns = graph.start_ns + 80'000;
  graph.correlation_id = id;
  graph.context_id = 1;
  graph.stream_id = 7;
  graph.graph_id = 5;

  start = call(kStreamSynchronize, LaunchStackOf(0x20, 0x400));
  Synchronization& wait = builder_.events.synchronizations.emplace_back();
  wait.instance = {kAppInstance};
  wait.record_size_bytes = 56;
  wait.start_ns = Cupti(start + 1'000);
  wait.end_ns = wait.start_ns + 3'000;
  wait.type = 3;
  wait.correlation_id = id;
  wait.context_id = 1;
  wait.stream_id = 7;

  call(kLaunchKernel, first);  // refused by CUDA
  builder_.events.api_calls.back().return_value = 701;
  // Launched before the recording began.
  builder_.AddKernel(kAppInstance, 999, Cupti(at), Cupti(at) + 600, kMatmul);
}

ApiCall& Scene::AddCall(uint32_t id, uint32_t callback_id, uint64_t start, StackId stack) {
  builder_.Launch(kAppInstance, id, start + 500, kApp, kApp, stack);
  return builder_.Call(kAppInstance, id, callback_id, start, start + 5'000, 10);
}

void Scene::AddNode(GraphNodeChange change, uint64_t time_ns, uint64_t node_id, uint64_t original,
                    uint32_t type, uint32_t correlation_id) {
  builder_.events.graph_nodes.push_back({.instance = {kAppInstance},
                                         .time_ns = time_ns,
                                         .change = change,
                                         .node_id = node_id,
                                         .original_node_id = original,
                                         .graph_id = static_cast<uint32_t>(node_id >> 32),
                                         .node_type = type,
                                         .tid = 10,
                                         .correlation_id = correlation_id});
}

// Graph 5 of the operations is a clone of graph 4, which no recorded call made: two kernels and a
// copy. Graph 7 is a clone of graph 6, which two launches were captured into; it is launched node
// by node, with a node of its own that nothing is known of. Nothing is known of graph 9 at all.
void Scene::AddGraphs() {
  using Change = GraphNodeChange;
  const auto node = [](uint64_t graph, uint64_t index) { return graph << 32 | index; };
  uint64_t at = kStart + 90 * kMs;
  for (uint64_t i = 0; i < 3; ++i) {
    AddNode(Change::kCreated, at, node(4, i), 0, i == 2 ? 1 : 0, 0);
    AddNode(Change::kCloned, at + kMs, node(5, i), node(4, i), 0, 0);
  }
  at = kStart + 300 * kMs;
  AddCall(101, kLaunchKernel, at, LaunchStackOf(0x20)).graph_nodes = 1;
  AddNode(Change::kCreated, at + 1'000, node(6, 0), 0, 0, 101);
  AddCall(102, kLaunchKernel, at + 10'000, LaunchStackOf(0x40)).graph_nodes = 1;
  AddNode(Change::kCreated, at + 11'000, node(6, 1), 0, 0, 102);
  for (uint64_t i = 0; i < 2; ++i) {
    AddNode(Change::kCloned, at + 20'000, node(7, i), node(6, i), 0, 0);
  }
  AddNode(Change::kUpdated, at + 30'000, node(7, 1), 0, 0, 0);
  const StackId launched = builder_.Stack({kAppText + 0x110, kCudart + 0x310, kInject + 0x10});
  uint64_t start = Cupti(at + 60'000);
  const auto run = [&](uint32_t id, uint64_t node_id, uint64_t duration, const char* symbol) {
    Kernel& kernel = builder_.AddKernel(kAppInstance, id, start, start + duration, symbol);
    kernel.graph_id = static_cast<uint32_t>(node_id >> 32);
    kernel.graph_node_id = node_id;
    start += duration;
  };
  AddCall(103, kGraphLaunch, at + 50'000, launched);
  run(103, node(7, 0), 11'000, kSoftmax);
  run(103, node(7, 1), 12'000, kMatmul);
  run(103, node(7, 8), 13'000, kMatmul);
  AddCall(104, kGraphLaunch, at + 60'000, launched);
  run(104, node(9, 0), 14'000, kMatmul);
}

// From one GPU to the other, and one whose call was not watched.
void Scene::AddCopies() {
  const uint64_t at = kStart + 310 * kMs;
  AddCall(105, kMemcpyPeerAsync, at, LaunchStackOf(0x20));
  for (const uint32_t id : {105u, 998u}) {
    Memcpy& copy = builder_.events.memcpys.emplace_back();
    copy.instance = {kAppInstance};
    copy.record_size_bytes = 112;
    copy.peer_to_peer = id == 105;
    copy.start_ns = Cupti(at + uint64_t{id} * 100);
    copy.end_ns = copy.start_ns + 3'000;
    copy.size_bytes = 2'000'000;
    copy.correlation_id = id;
    copy.device_id = 1;
    copy.context_id = 2;
    copy.stream_id = 9;
    copy.source_device_id = 1;
    copy.source_context_id = 2;
    copy.destination_device_id = 0;
    copy.destination_context_id = 1;
    copy.copy_kind = copy.peer_to_peer ? 10 : 8;
    copy.source_kind = 3;
    copy.destination_kind = 3;
  }
}

// Two that overlap, one without a time, and code compiled just in time.
void Scene::AddOverheads() {
  const auto add = [&](uint32_t kind, uint64_t start, uint64_t end, uint32_t correlation_id) {
    Overhead& overhead = builder_.events.overheads.emplace_back();
    overhead.instance = {kAppInstance};
    overhead.record_size_bytes = 56;
    overhead.overhead_kind = kind;
    overhead.start_ns = start;
    overhead.end_ns = end;
    overhead.correlation_id = correlation_id;
  };
  const uint64_t at = Cupti(kStart + 100 * kMs);
  add(5 << 16, at + 100'500, at + 104'500, 1);  // lazy function loading
  add(7 << 16, at + 101'000, at + 102'000, 0);  // activity buffer request
  add(6 << 16, 0, 0, 2);
  JitOperation& jit = builder_.events.jit_operations.emplace_back();
  jit.instance = {kAppInstance};
  jit.record_size_bytes = 72;
  jit.start_ns = at + 110'000;
  jit.end_ns = at + 190'000;
  jit.entry_kind = 1;
  jit.operation = 3;
  jit.correlation_id = 2;
  jit.jit_correlation_id = 1;
  jit.cache_size_bytes = 4096;
  jit.cache_path = builder_.Text("ComputeCache/0/1");
  jit.tid = 10;
}

// The same correlation ids as in the other process, one clock pair, another offset. It sees the
// application's second GPU alone, as device 0.
void Scene::AddHelper() {
  const uint64_t at = kStart + 200 * kMs;
  builder_.Clock(kHelperInstance, 5'000, {kStart + 20 * kMs});
  builder_.events.gpu_processes.push_back({.time_ns = kStart + 10 * kMs,
                                           .instance = {kHelperInstance},
                                           .state = InjectState::kFinished,
                                           .pid = kHelper,
                                           .namespace_pid = kHelper,
                                           .cupti_version = 26,
                                           .driver_version = 13000,
                                           .cupti_path = {},
                                           .detail = {}});
  AddDevice(kHelperInstance, 0, "fedcba9876543210");
  builder_.Call(kHelperInstance, 1, kLaunchKernel, at, at + 4'000, kHelper);
  builder_.Launch(kHelperInstance, 1, at + 100, kHelper, kHelper,
                  builder_.Stack({kAppText + 0x20}));
  builder_.AddKernel(kHelperInstance, 1, at + 10'000 + 5'000, at + 60'000 + 5'000, kMatmul);
}

}  // namespace xpu::test
