// What the test program says to the stub of libcupti: it plays the driver and the GPU.
#pragma once

#include <cstdint>

struct StubCupti {
  // One API call as the driver would announce it: enter, then exit. A callback that was not enabled
  // is not called.
  void (*call)(uint32_t domain, uint32_t callback_id, uint32_t site, uint32_t correlation_id,
               int32_t return_value);
  void (*create_context)();
  // Adds a kernel record to the current buffer; `name` need live only until the buffer completes.
  void (*add_kernel)(uint32_t correlation_id, const char* name, uint64_t start_ns, uint64_t end_ns);
  int (*flushes)(int forced);
  // A change of a graph node. The handles of a node and of its graph are their ids, `graph` << 32 |
  // index and `graph`, until `move_node` gives the node another id. 0: no node.
  void (*graph_node)(uint32_t callback_id, uint64_t node, uint64_t original, uint32_t node_type);
  void (*move_node)(uint64_t node, uint64_t new_id);
  void (*graph_exec_created)(uint64_t graph_exec);
  // One call of cuGraphExecUpdate.
  void (*update_graph)(uint64_t graph_exec, uint64_t graph, uint32_t correlation_id,
                       int32_t return_value);
};

extern "C" const StubCupti* StubControl();

// Callback ids of the stub.
enum : uint32_t {
  kStubLaunchKernel = 211,      // runtime: cudaLaunchKernel_v7000
  kStubCuLaunchKernel = 307,    // driver: cuLaunchKernel
  kStubGraphUpdate = 308,       // driver: cuGraphExecUpdate_v2
  kStubInstantiate = 310,       // runtime: cudaGraphInstantiate_v10000
  kStubMalloc = 20,             // runtime: cudaMalloc_v3020, not watched
  kStubStreamSynchronize = 131  // runtime: cudaStreamSynchronize_v3020
};
