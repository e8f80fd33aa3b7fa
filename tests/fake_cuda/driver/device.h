// The simulated device: one GPU, one context, in-order streams. Nothing is computed; each piece of
// work gets a start and an end on a timeline of CLOCK_MONOTONIC when it is enqueued, so all times
// are known at once and waiting is sleeping until one of them. Memory is host memory, and copies
// and sets happen when they are enqueued.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <cuda.h>

#include "../hooks.h"

struct CUctx_st {
  bool created = false;
  unsigned retains = 0;
};

struct CUstream_st {
  uint32_t id = 0;
  bool blocking = false;  // waits for the null stream, and that one for it
  uint64_t tail_ns = 0;   // end of the last work enqueued
  CUgraph capture = nullptr;
};

struct CUevent_st {
  uint64_t time_ns = 0;  // 0: never recorded
};

struct CUfunc_st {
  std::string name;
  CUmodule module = nullptr;
  int spin_argument = -1;  // index of the argument that says how many ns the kernel runs
  bool loaded = false;
};

struct CUmod_st {
  std::string image;
  uint32_t id = 0;
  bool announced = false;  // MODULE_LOADED
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};

struct CUgraphNode_st {
  uint64_t id = 0;  // graph id << 32 | index
  uint32_t type = 0;
  xpu::fake_cuda::Activity activity;
  uint64_t duration_ns = 0;
  CUfunction function = nullptr;
};

struct CUgraph_st {
  uint32_t id = 0;
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

struct CUgraphExec_st {
  CUgraph_st graph;
};

namespace xpu::fake_cuda {

// What has no genuine handle of its own. Everything below is guarded by `mutex`.
struct Device {
  std::mutex mutex;
  CUctx_st context;
  CUstream_st null_stream;
  std::set<CUstream> streams;  // all but the null stream
  std::map<uintptr_t, size_t> device_memory;
  std::map<uintptr_t, size_t> pinned_memory;
  uint32_t next_stream_id = 13;  // 6 to 12 are the context's own: see Announce of the context
  uint32_t next_module_id = 23;
  uint32_t next_graph_id = 1;
  int64_t next_grid_id = 1;
  uint64_t launch_latency_ns = 0;
  uint64_t gap_ns = 0;
};

Device& TheDevice();
const Driver& TheDriver();

uint64_t NowNs();
void SleepUntil(uint64_t monotonic_ns);

// CUDA_SUCCESS when a call that needs a context may go on.
CUresult CheckContext();

// Reports to the observer, if any. Without the device's mutex held.
void Emit(const Activity& activity);
void Announce(const Resource& resource);

CUstream Resolve(CUstream stream);

// Puts work of `duration_ns` at the end of the stream and reports it, or makes it a node of the
// graph that the stream is captured into. `activity` has everything but times and ids. Returns the
// end, 0 when captured.
uint64_t Enqueue(CUstream stream, Activity activity, uint64_t duration_ns,
                 CUfunction function = nullptr);

// How many grid ids the work takes: the first kernel of vector_add has 1, that of
// transformer_shared 2 after a set of 16384 bytes, that of driver_api 1 after a set of 512.
int64_t GridIds(const Activity& activity);

// Work that is not on a copy engine's channel goes over its stream's: 0 for the null stream
// (vector_add), 1 for the first of the program's own (transformer_shared). With several streams the
// real choice changes from run to run.
void UseChannel(const CUstream_st& stream, Activity* activity);

uint64_t TailOf(CUstream stream);
uint64_t TailOfAll();

void AddNode(CUgraph graph, const Activity& activity, uint64_t duration_ns, CUfunction function);

// Before a launch: module and function are loaded at their first use.
void LoadFunction(CUfunction function, bool captured);

bool IsPinned(const void* pointer);

}  // namespace xpu::fake_cuda
