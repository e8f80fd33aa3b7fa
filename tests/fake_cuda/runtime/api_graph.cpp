// The graph functions without a stream.
#include "runtime.h"

using namespace xpu::fake_cuda;

namespace {

template <typename Params>
CUDA_KERNEL_NODE_PARAMS KernelParams(const Params& params, CUfunction function, CUcontext context) {
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = function;
  kernel.ctx = context;
  kernel.gridDimX = params.gridDim.x;
  kernel.gridDimY = params.gridDim.y;
  kernel.gridDimZ = params.gridDim.z;
  kernel.blockDimX = params.blockDim.x;
  kernel.blockDimY = params.blockDim.y;
  kernel.blockDimZ = params.blockDim.z;
  kernel.sharedMemBytes = params.sharedMemBytes;
  kernel.kernelParams = params.kernelParams;
  return kernel;
}

CUDA_MEMCPY3D LineOf(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  CUDA_MEMCPY3D copy{};
  const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  copy.srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if (kind == cudaMemcpyDefault) copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcHost = from;
  copy.srcDevice = reinterpret_cast<CUdeviceptr>(from);
  copy.dstHost = to;
  copy.dstDevice = reinterpret_cast<CUdeviceptr>(to);
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

CUcontext CurrentContext() {
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  return context;
}

}  // namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  RuntimeScope scope(286, "cudaGraphCreate");
  return scope.Return(cuGraphCreate(graph, flags));
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t dependency_count,
                                   const cudaKernelNodeParams* params) {
  CUfunction function = FindKernel(params->func);
  RuntimeScope scope(289, "cudaGraphAddKernelNode");
  const CUDA_KERNEL_NODE_PARAMS kernel = KernelParams(*params, function, CurrentContext());
  return scope.Return(cuGraphAddKernelNode(node, graph, dependencies, dependency_count, &kernel));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t dependency_count,
                                     void* to, const void* from, size_t bytes,
                                     cudaMemcpyKind kind) {
  RuntimeScope scope(352, "cudaGraphAddMemcpyNode1D");
  const CUDA_MEMCPY3D copy = LineOf(to, from, bytes, kind);
  CUcontext context = CurrentContext();
  return scope.Return(
      cuGraphAddMemcpyNode(node, graph, dependencies, dependency_count, &copy, context));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t dependency_count,
                                   const cudaMemsetParams* params) {
  RuntimeScope scope(293, "cudaGraphAddMemsetNode");
  const CUDA_MEMSET_NODE_PARAMS set{reinterpret_cast<CUdeviceptr>(params->dst),
                                    params->pitch,
                                    params->value,
                                    params->elementSize,
                                    params->width,
                                    params->height};
  CUcontext context = CurrentContext();
  return scope.Return(
      cuGraphAddMemsetNode(node, graph, dependencies, dependency_count, &set, context));
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, size_t dependency_count,
                                       cudaGraph_t child) {
  RuntimeScope scope(298, "cudaGraphAddChildGraphNode");
  return scope.Return(cuGraphAddChildGraphNode(node, graph, dependencies, dependency_count, child));
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                             const cudaGraphNode_t* dependencies,
                             const cudaGraphEdgeData* /*edges*/, size_t dependency_count,
                             cudaGraphNodeParams* params) {
  CUfunction function = FindKernel(params->kernel.func);
  RuntimeScope scope(460, "cudaGraphAddNode");
  CUgraphNodeParams generic{};
  generic.type = static_cast<CUgraphNodeType>(params->type);
  generic.kernel = KernelParams(params->kernel, function, CurrentContext());
  return scope.Return(
      cuGraphAddNode(node, graph, dependencies, nullptr, dependency_count, &generic));
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  RuntimeScope scope(301, "cudaGraphClone");
  return scope.Return(cuGraphClone(clone, original));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  RuntimeScope scope(443, "cudaGraphInstantiate");
  return scope.Return(cuGraphInstantiateWithFlags(exec, graph, flags));
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  RuntimeScope scope(335, "cudaGraphExecUpdate");
  CUgraphExecUpdateResultInfo result{};
  const CUresult status = cuGraphExecUpdate(exec, graph, &result);
  info->result = static_cast<cudaGraphExecUpdateResult>(result.result);
  info->errorNode = result.errorNode;
  info->errorFromNode = result.errorFromNode;
  return scope.Return(status);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  CUfunction function = FindKernel(params->func);
  RuntimeScope scope(326, "cudaGraphExecKernelNodeSetParams");
  const CUDA_KERNEL_NODE_PARAMS kernel = KernelParams(*params, function, CurrentContext());
  return scope.Return(cuGraphExecKernelNodeSetParams(exec, node, &kernel));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  RuntimeScope scope(314, "cudaGraphDestroy");
  return scope.Return(cuGraphDestroy(graph));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  RuntimeScope scope(313, "cudaGraphExecDestroy");
  return scope.Return(cuGraphExecDestroy(exec));
}

}  // extern "C"
