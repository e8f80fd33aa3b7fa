// The graph functions without a stream; those with one are in api_stream_calls.cpp.
#include <array>

#include "calls.h"
#include "graph.h"
#include "kernel.h"
#include "memory.h"

using namespace xpu::fake_cuda;

namespace {

bool Prepare(const CUDA_KERNEL_NODE_PARAMS& params, Work* work) {
  CUfunction function =
      params.func != nullptr ? params.func : reinterpret_cast<CUfunction>(params.kern);
  if (function == nullptr) return false;
  LoadFunction(function, true);
  *work = KernelWork(function,
                     LaunchConfig({params.gridDimX, params.gridDimY, params.gridDimZ},
                                  {params.blockDimX, params.blockDimY, params.blockDimZ},
                                  params.sharedMemBytes, nullptr),
                     params.kernelParams);
  return true;
}

CUresult AddKernel(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                   size_t dependency_count, const CUDA_KERNEL_NODE_PARAMS& params) {
  Work work;
  if (!Prepare(params, &work)) return CUDA_ERROR_INVALID_VALUE;
  *node = AddNode(graph, dependencies, dependency_count, work);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned int /*flags*/) {
  DriverScope scope(501, "cuGraphCreate");
  *graph = NewGraph();
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t dependency_count, const CUDA_KERNEL_NODE_PARAMS* params) {
  DriverScope scope(689, "cuGraphAddKernelNode_v2");
  return scope.Return(AddKernel(node, graph, dependencies, dependency_count, *params));
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t dependency_count, const CUDA_MEMCPY3D* params,
                              CUcontext /*context*/) {
  DriverScope scope(504, "cuGraphAddMemcpyNode");
  *node = AddNode(graph, dependencies, dependency_count,
                  CopyWork(DestinationOf(*params), SourceOf(*params), BoxOf(*params), true));
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                              size_t dependency_count, const CUDA_MEMSET_NODE_PARAMS* params,
                              CUcontext /*context*/) {
  DriverScope scope(506, "cuGraphAddMemsetNode");
  const size_t bytes = params->elementSize * params->width * params->height;
  *node = AddNode(graph, dependencies, dependency_count, SetWork(params->value, bytes, true));
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t dependency_count, CUgraph child) {
  DriverScope scope(525, "cuGraphAddChildGraphNode");
  *node = AddNode(graph, dependencies, dependency_count, Work{}, child);
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        const CUgraphEdgeData* /*edges*/, size_t dependency_count,
                        CUgraphNodeParams* params) {
  DriverScope scope(723, "cuGraphAddNode_v2");
  if (params->type != CU_GRAPH_NODE_TYPE_KERNEL) return scope.Return(CUDA_ERROR_INVALID_VALUE);
  return scope.Return(AddKernel(node, graph, dependencies, dependency_count, params->kernel));
}

CUresult cuGraphClone(CUgraph* clone, CUgraph original) {
  DriverScope scope(523, "cuGraphClone");
  *clone = NewGraph();
  CloneNodes(original, *clone);
  Announce({.callback_id = kGraphCloned, .graph = *clone, .original_graph = original});
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                     unsigned long long /*flags*/) {
  DriverScope scope(643, "cuGraphInstantiateWithFlags");
  if (const CUresult result = CheckContext(); result != CUDA_SUCCESS) return scope.Return(result);
  *exec = Instantiate(graph, scope.correlation_id());
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  const std::array<const void*, 3> params{exec, graph, info};  // as in cuGraphExecUpdate_v2_params
  DriverScope scope(696, "cuGraphExecUpdate_v2", params.data());
  const bool same = Update(exec, graph);
  info->result = same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  return scope.Return(same ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS* params) {
  DriverScope scope(692, "cuGraphExecKernelNodeSetParams_v2");
  CUgraphNode copy = CopyOf(exec, node->id);
  Work work;
  if (copy == nullptr || !Prepare(*params, &work)) return scope.Return(CUDA_ERROR_INVALID_VALUE);
  work.activity.grid_id = copy->work.activity.grid_id;
  copy->work = work;
  Announce({.callback_id = kNodeParamsSet, .node = copy, .original_node = node});
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph graph) {
  DriverScope scope(517, "cuGraphDestroy");
  AnnounceDestruction(graph);
  delete graph;
  return scope.Return(CUDA_SUCCESS);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  DriverScope scope(516, "cuGraphExecDestroy");
  Announce({.callback_id = kExecDestroyStarting, .exec = exec});
  AnnounceDestruction(&exec->graph);
  delete exec;
  return scope.Return(CUDA_SUCCESS);
}

}  // extern "C"
