// What the parts of graph_paths.cu share: the streams and buffers, replaying, the account.
#pragma once

#include <vector>

#include "gpu.h"

struct Site {
  std::string part;
  std::string path;  // of the code that made the node
  std::string what;  // kernel, "copy" or "set"
  std::string changed_by;
  uint64_t executions;
};

struct GraphRuns {
  std::string part;
  uint64_t nodes;  // as the GPU runs them: a child graph's, not the node that holds it
  uint64_t kernel_nodes;
  uint64_t replays;
  std::string launch_path[2];
};

struct Bench {
  uint64_t replays = 0;
  size_t bytes = 0;
  unsigned* data = nullptr;
  unsigned* copy = nullptr;
  cudaStream_t stream = nullptr;
  cudaStream_t side_stream = nullptr;
  cudaEvent_t fork = nullptr;
  cudaEvent_t join = nullptr;
  std::vector<Site> sites;
  std::vector<GraphRuns> graphs;
  workload::Tally tally;
};

// ---- what all parts do -------------------------------------------------------------------------

inline XPU_FRAME void ReplayFirst(cudaGraphExec_t executable, Bench* bench) {
  XPU_CUDA(cudaGraphLaunch(executable, bench->stream));
}

inline XPU_FRAME void ReplaySecond(cudaGraphExec_t executable, Bench* bench) {
  XPU_CUDA(cudaGraphLaunch(executable, bench->stream));
}

// A macro: the part's function is the direct caller of the two.
#define XPU_REPLAY(executable, bench)                 \
  do {                                                \
    for (uint64_t i = 0; i < (bench)->replays; ++i) { \
      ReplayFirst(executable, bench);                 \
      ReplaySecond(executable, bench);                \
    }                                                 \
    XPU_CUDA(cudaStreamSynchronize((bench)->stream)); \
    (bench)->tally.CountSync();                       \
  } while (false)

inline cudaGraphExec_t Instantiate(cudaGraph_t graph) {
  cudaGraphExec_t executable = nullptr;
  XPU_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  return executable;
}

inline cudaGraph_t EmptyGraph() {
  cudaGraph_t graph = nullptr;
  XPU_CUDA(cudaGraphCreate(&graph, 0));
  return graph;
}

inline void BeginCapture(Bench* bench) {
  XPU_CUDA(cudaStreamBeginCapture(bench->stream, cudaStreamCaptureModeThreadLocal));
}

inline cudaGraph_t EndCapture(Bench* bench) {
  cudaGraph_t graph = nullptr;
  XPU_CUDA(cudaStreamEndCapture(bench->stream, &graph));
  return graph;
}

// The graph was replayed by the two functions, with `sites` in it.
inline void Count(Bench* bench, const std::string& part, const std::string& function,
                  const std::vector<Site>& sites) {
  GraphRuns runs{part, sites.size(), 0, 2 * bench->replays, {}};
  runs.launch_path[0] = "main;" + function + ";ReplayFirst";
  runs.launch_path[1] = "main;" + function + ";ReplaySecond";
  for (Site site : sites) {
    site.part = part;
    site.executions = runs.replays;
    if (site.what == "copy") {
      for (uint64_t i = 0; i < runs.replays; ++i) bench->tally.CountCopy("DtoD", bench->bytes);
    } else if (site.what == "set") {
      for (uint64_t i = 0; i < runs.replays; ++i) bench->tally.CountMemset(bench->bytes);
    } else {
      ++runs.kernel_nodes;
      bench->tally.CountLaunch(site.path.c_str(), site.what.c_str(), runs.replays);
    }
    bench->sites.push_back(site);
  }
  bench->graphs.push_back(runs);
}

#define XPU_CAPTURE_KERNEL(bench, stream, kernel) \
  XPU_LAUNCH_UNCOUNTED(kernel, dim3(1), dim3(1), stream, (bench)->data)

// Parameters that point at the counter, for as long as `args` lives.
inline cudaKernelNodeParams NodeParams(void (*kernel)(unsigned*), void** args) {
  cudaKernelNodeParams params{};
  params.func = reinterpret_cast<void*>(kernel);
  params.gridDim = dim3(1);
  params.blockDim = dim3(1);
  params.kernelParams = args;
  return params;
}

inline void Write(const Bench& bench, workload::JsonLine* json) {
  json->BeginArray("node_sites");
  for (const Site& site : bench.sites) {
    json->BeginObject("");
    json->Add("part", site.part);
    json->Add("path", site.path);
    json->Add(site.what == "copy" || site.what == "set" ? "kind" : "kernel", site.what);
    if (!site.changed_by.empty()) json->Add("changed_by", site.changed_by);
    json->Add("executions", site.executions);
    json->EndObject();
  }
  json->EndArray();
  json->BeginArray("graphs");
  for (const GraphRuns& graph : bench.graphs) {
    json->BeginObject("");
    json->Add("part", graph.part);
    json->Add("nodes", graph.nodes);
    json->Add("kernel_nodes", graph.kernel_nodes);
    json->Add("replays", graph.replays);
    json->BeginObject("launch_paths");
    for (const std::string& path : graph.launch_path) json->Add(path, graph.replays / 2);
    json->EndObject();
    json->EndObject();
  }
  json->EndArray();
  bench.tally.Write(json);
}
