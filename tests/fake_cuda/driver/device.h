// The simulated devices: GPUs with one context each, in-order streams. Nothing is computed; each
// piece of work gets a start and an end on a timeline of CLOCK_MONOTONIC when it is enqueued, so
// all times are known at once and waiting is sleeping until one of them. Memory is host memory, and
// memory operations happen when they are enqueued.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <cuda.h>

#include "../hooks.h"

namespace xpu::fake_cuda {

// What a stream or a graph node does.
struct Work {
  Activity activity{ActivityKind::kNone};  // all but times and ids
  uint64_t duration_ns = 0;
  CUfunction function = nullptr;  // of a kernel
};

}  // namespace xpu::fake_cuda

struct CUstream_st {
  uint32_t id = 0;
  CUcontext context = nullptr;
  bool blocking = false;           // waits for the null stream, and that one for it
  uint64_t tail_ns = 0;            // end of the last work enqueued
  std::atomic<int> host_calls{0};  // cuLaunchHostFunc: not yet returned
  CUgraph capture = nullptr;
  std::vector<size_t> capture_tail;  // nodes of `capture` that the next one depends on
};

struct CUctx_st {
  uint32_t ordinal = 0;
  std::atomic<CUresult> fault{CUDA_SUCCESS};
  std::atomic<uint64_t> fault_ns{UINT64_MAX};  // when it happens
  bool created = false;
  unsigned retains = 0;
  CUstream_st null_stream;
  std::set<CUstream> streams;  // all but the null stream
};

struct CUevent_st {
  uint32_t id = 0;
  uint64_t time_ns = 0;  // 0: never recorded
  CUgraph capture = nullptr;
  std::vector<size_t> capture_tail;
};

struct CUfunc_st {
  std::string name;
  CUmodule module = nullptr;
  int spin_argument = -1;  // index of the argument that says how many ns the kernel runs
  bool loaded = false;
  unsigned block[3] = {1, 1, 1};  // cuFuncSetBlockShape
};

struct CUmod_st {
  std::string image;
  uint32_t id = 0;
  bool announced = false;  // MODULE_LOADED
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};

struct CUarray_st {
  std::vector<uint8_t> data;
  size_t width = 0;  // bytes
  size_t height = 0;
};

struct CUgraphNode_st {
  uint64_t id = 0;         // graph id << 32 | index
  uint64_t origin_id = 0;  // the node that this one was cloned from, 0: none
  uint32_t type = 0;       // CUgraphNodeType
  xpu::fake_cuda::Work work;
  std::vector<size_t> dependencies;   // indices in the same graph
  std::unique_ptr<CUgraph_st> child;  // of a child graph node
  bool dissolved = false;             // its nodes count as the executable graph's own
};

struct CUgraph_st {
  uint32_t id = 0;
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  std::vector<CUstream> capturing;  // the streams that add to it
};

struct CUgraphExec_st {
  CUgraph_st graph;
};

namespace xpu::fake_cuda {

struct Block {
  size_t size;
  uint32_t device;
};

// What has no genuine handle of its own. Everything below is guarded by `mutex`.
struct Device {
  std::mutex mutex;
  std::deque<CUctx_st> contexts;  // the primary one of each device; their addresses are handles
  std::map<uintptr_t, Block> device_memory;
  std::map<uintptr_t, Block> pinned_memory;
  std::map<uintptr_t, Block> managed_memory;
  uint32_t next_stream_id = 13;  // 6 to 12 are the first context's own
  uint32_t next_module_id = 23;
  uint32_t next_graph_id = 1;
  uint32_t next_event_id = 1;
  int64_t next_grid_id = 1;
};

// From a call to the earliest start of its work, and between two pieces of work of one stream.
inline constexpr uint64_t kLaunchLatencyNs = 3000, kGapNs = 500;

Device& TheDevice();
const Driver& TheDriver();

uint64_t NowNs();
void SleepUntil(uint64_t monotonic_ns);

// The end of a kernel that does not end. Later times can be computed with it.
inline constexpr uint64_t kNever = uint64_t{1} << 62;

// CUDA_SUCCESS when a call that needs a context may go on.
CUresult CheckContext();

// The fault that has happened in the context.
CUresult FaultOf(const CUctx_st& context);
// Returns at that time, earlier when the context faults.
void WaitUntil(const CUctx_st& context, uint64_t monotonic_ns);

// Gives work times and counts it as launched: with XPU_FAKE_ENDLESS it may not end, with
// XPU_FAKE_FAULT end the context. With the device's mutex held.
void Schedule(CUcontext context, uint64_t start_ns, uint64_t duration_ns, Activity* activity);

// The calling thread's, the first device's when it has none.
CUcontext CurrentContext();
uint32_t ContextId(CUcontext context);  // in records

// Reports to the observer, if any. Without the device's mutex held.
void Emit(const Activity& activity);
void Announce(const Resource& resource);

// The stream of a handle: nullptr and CU_STREAM_LEGACY are the null stream of the thread's
// context, CU_STREAM_PER_THREAD the thread's own in it.
CUstream Resolve(CUstream stream);

// Puts the work at the end of the stream and reports it, or makes it a node of the graph that the
// stream is captured into. Returns the end, 0 when captured.
uint64_t Enqueue(CUstream stream, Work work);

// How many grid ids the work takes: the first kernel of vector_add has 1, that of
// transformer_shared 2 after a set of 16384 bytes, that of driver_api 1 after a set of 512.
int64_t GridIds(const Activity& activity);

// Work that is not on a copy engine's channel goes over its stream's: 0 for the null stream
// (vector_add), 1 for the first of the program's own (transformer_shared). With several streams the
// real choice changes from run to run.
void UseChannel(const CUstream_st& stream, Activity* activity);

uint64_t TailOf(CUstream stream);
uint64_t TailOfAll(CUcontext context);

// Wait as long as the work takes, host functions included, or until the context faults.
void WaitFor(CUstream stream);
void WaitForAll(CUcontext context);

}  // namespace xpu::fake_cuda
