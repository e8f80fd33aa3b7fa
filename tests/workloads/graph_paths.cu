// CUDA graphs whose nodes come from different code. Each part makes a graph in its own way, from
// functions of its own with kernels of their own, and replays it from two functions.
//   --replays M (by each of the two) --bytes B (of memory operations) --parts=a,b,... (default:
//   all)
// Parts: capture, fork, explicit, generic, child, clone, update, setparams.
// "node_sites" says which code made each node and how often it ran; "graphs" which graph
// was replayed how often and from where.
#include "graph_paths.h"

#define XPU_GRAPH_KERNEL(name) \
  __global__ void name(unsigned* counter) { XPU_DEVICE_CODE(*counter += 1;) }
#ifdef __CUDACC__
#define XPU_DEVICE_CODE(code) code
#else
#define XPU_DEVICE_CODE(code)
#endif

XPU_GRAPH_KERNEL(capture_first_kernel)
XPU_GRAPH_KERNEL(capture_second_kernel)
XPU_GRAPH_KERNEL(fork_main_kernel)
XPU_GRAPH_KERNEL(fork_side_kernel)
XPU_GRAPH_KERNEL(explicit_kernel)
XPU_GRAPH_KERNEL(generic_kernel)
XPU_GRAPH_KERNEL(parent_kernel)
XPU_GRAPH_KERNEL(child_kernel)
XPU_GRAPH_KERNEL(clone_kernel)
XPU_GRAPH_KERNEL(update_kernel)
XPU_GRAPH_KERNEL(setparams_before_kernel)
XPU_GRAPH_KERNEL(setparams_after_kernel)

// ---- capture: one stream -----------------------------------------------------------------------

XPU_FRAME void CaptureFirst(Bench* bench) {
  XPU_CAPTURE_KERNEL(bench, bench->stream, capture_first_kernel);
}

XPU_FRAME void CaptureSecond(Bench* bench) {
  XPU_CAPTURE_KERNEL(bench, bench->stream, capture_second_kernel);
}

XPU_FRAME cudaGraph_t CaptureStraight(Bench* bench) {
  BeginCapture(bench);
  XPU_CUDA(cudaMemsetAsync(bench->data, 0, bench->bytes, bench->stream));
  CaptureFirst(bench);
  CaptureSecond(bench);
  XPU_CUDA(cudaMemcpyAsync(bench->copy, bench->data, bench->bytes, cudaMemcpyDeviceToDevice,
                           bench->stream));
  return EndCapture(bench);
}

XPU_FRAME void RunCapture(Bench* bench) {
  cudaGraph_t graph = CaptureStraight(bench);
  cudaGraphExec_t executable = Instantiate(graph);
  XPU_CUDA(cudaGraphDestroy(graph));
  XPU_REPLAY(executable, bench);
  XPU_CUDA(cudaGraphExecDestroy(executable));
  const std::string path = "main;RunCapture;CaptureStraight";
  Count(bench, "capture", "RunCapture",
        {{"", path, "set", "", 0},
         {"", path + ";CaptureFirst", "capture_first_kernel", "", 0},
         {"", path + ";CaptureSecond", "capture_second_kernel", "", 0},
         {"", path, "copy", "", 0}});
}

// ---- fork: a second stream joins the capture through events ------------------------------------

XPU_FRAME void CaptureSide(Bench* bench) {
  XPU_CUDA(cudaEventRecord(bench->fork, bench->stream));
  XPU_CUDA(cudaStreamWaitEvent(bench->side_stream, bench->fork, 0));
  XPU_CAPTURE_KERNEL(bench, bench->side_stream, fork_side_kernel);
  XPU_CUDA(cudaEventRecord(bench->join, bench->side_stream));
}

XPU_FRAME cudaGraph_t CaptureForked(Bench* bench) {
  BeginCapture(bench);
  CaptureSide(bench);
  XPU_CAPTURE_KERNEL(bench, bench->stream, fork_main_kernel);
  XPU_CUDA(cudaStreamWaitEvent(bench->stream, bench->join, 0));
  return EndCapture(bench);
}

XPU_FRAME void RunFork(Bench* bench) {
  cudaGraph_t graph = CaptureForked(bench);
  cudaGraphExec_t executable = Instantiate(graph);
  XPU_CUDA(cudaGraphDestroy(graph));
  XPU_REPLAY(executable, bench);
  XPU_CUDA(cudaGraphExecDestroy(executable));
  const std::string path = "main;RunFork;CaptureForked";
  Count(bench, "fork", "RunFork",
        {{"", path, "fork_main_kernel", "", 0},
         {"", path + ";CaptureSide", "fork_side_kernel", "", 0}});
}

// ---- explicit: a function for each kind of node ------------------------------------------------

XPU_FRAME cudaGraphNode_t AddSet(Bench* bench, cudaGraph_t graph) {
  cudaMemsetParams params{};
  params.dst = bench->data;
  params.elementSize = 1;
  params.width = bench->bytes;
  params.height = 1;
  params.pitch = bench->bytes;
  cudaGraphNode_t node = nullptr;
  XPU_CUDA(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
  return node;
}

XPU_FRAME cudaGraphNode_t AddKernel(Bench* bench, cudaGraph_t graph, cudaGraphNode_t before,
                                    void (*kernel)(unsigned*)) {
  void* args[] = {&bench->data};
  const cudaKernelNodeParams params = NodeParams(kernel, args);
  cudaGraphNode_t node = nullptr;
  XPU_CUDA(cudaGraphAddKernelNode(&node, graph, &before, before == nullptr ? 0 : 1, &params));
  return node;
}

XPU_FRAME cudaGraphNode_t AddCopy(Bench* bench, cudaGraph_t graph, cudaGraphNode_t before) {
  cudaGraphNode_t node = nullptr;
  XPU_CUDA(cudaGraphAddMemcpyNode1D(&node, graph, &before, 1, bench->copy, bench->data,
                                    bench->bytes, cudaMemcpyDeviceToDevice));
  return node;
}

XPU_FRAME cudaGraph_t BuildExplicit(Bench* bench) {
  cudaGraph_t graph = EmptyGraph();
  cudaGraphNode_t last = AddSet(bench, graph);
  last = AddKernel(bench, graph, last, explicit_kernel);
  AddCopy(bench, graph, last);
  return graph;
}

XPU_FRAME void RunExplicit(Bench* bench) {
  cudaGraph_t graph = BuildExplicit(bench);
  cudaGraphExec_t executable = Instantiate(graph);
  XPU_REPLAY(executable, bench);
  XPU_CUDA(cudaGraphExecDestroy(executable));
  XPU_CUDA(cudaGraphDestroy(graph));
  const std::string path = "main;RunExplicit;BuildExplicit";
  Count(bench, "explicit", "RunExplicit",
        {{"", path + ";AddSet", "set", "", 0},
         {"", path + ";AddKernel", "explicit_kernel", "", 0},
         {"", path + ";AddCopy", "copy", "", 0}});
}

// ---- generic: cudaGraphAddNode -----------------------------------------------------------------

XPU_FRAME void AddGeneric(Bench* bench, cudaGraph_t graph) {
  void* args[] = {&bench->data};
  cudaGraphNodeParams params = {};
  params.type = cudaGraphNodeTypeKernel;
  params.kernel.func = reinterpret_cast<void*>(&generic_kernel);
  params.kernel.gridDim = dim3(1);
  params.kernel.blockDim = dim3(1);
  params.kernel.kernelParams = args;
  cudaGraphNode_t node = nullptr;
  XPU_CUDA(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
}

XPU_FRAME void RunGeneric(Bench* bench) {
  cudaGraph_t graph = EmptyGraph();
  AddGeneric(bench, graph);
  cudaGraphExec_t executable = Instantiate(graph);
  XPU_REPLAY(executable, bench);
  XPU_CUDA(cudaGraphExecDestroy(executable));
  XPU_CUDA(cudaGraphDestroy(graph));
  Count(bench, "generic", "RunGeneric",
        {{"", "main;RunGeneric;AddGeneric", "generic_kernel", "", 0}});
}

// ---- child: a graph as a node of another -------------------------------------------------------

XPU_FRAME cudaGraph_t BuildChild(Bench* bench) {
  cudaGraph_t graph = EmptyGraph();
  AddKernel(bench, graph, nullptr, child_kernel);
  return graph;
}

XPU_FRAME cudaGraph_t BuildParent(Bench* bench, cudaGraph_t child) {
  cudaGraph_t graph = EmptyGraph();
  cudaGraphNode_t node = AddKernel(bench, graph, nullptr, parent_kernel);
  cudaGraphNode_t child_node = nullptr;
  XPU_CUDA(cudaGraphAddChildGraphNode(&child_node, graph, &node, 1, child));
  return graph;
}

XPU_FRAME void RunChild(Bench* bench) {
  cudaGraph_t child = BuildChild(bench);
  cudaGraph_t parent = BuildParent(bench, child);
  cudaGraphExec_t executable = Instantiate(parent);
  XPU_REPLAY(executable, bench);
  XPU_CUDA(cudaGraphExecDestroy(executable));
  XPU_CUDA(cudaGraphDestroy(parent));
  XPU_CUDA(cudaGraphDestroy(child));
  Count(bench, "child", "RunChild",
        {{"", "main;RunChild;BuildParent;AddKernel", "parent_kernel", "", 0},
         {"", "main;RunChild;BuildChild;AddKernel", "child_kernel", "", 0}});
}

// ---- clone: the original is gone before the clone is instantiated ------------------------------

XPU_FRAME cudaGraph_t BuildOriginal(Bench* bench) {
  cudaGraph_t graph = EmptyGraph();
  AddKernel(bench, graph, nullptr, clone_kernel);
  return graph;
}

XPU_FRAME cudaGraph_t CloneGraph(cudaGraph_t original) {
  cudaGraph_t clone = nullptr;
  XPU_CUDA(cudaGraphClone(&clone, original));
  XPU_CUDA(cudaGraphDestroy(original));
  return clone;
}

XPU_FRAME void RunClone(Bench* bench) {
  cudaGraph_t clone = CloneGraph(BuildOriginal(bench));
  cudaGraphExec_t executable = Instantiate(clone);
  XPU_REPLAY(executable, bench);
  XPU_CUDA(cudaGraphExecDestroy(executable));
  XPU_CUDA(cudaGraphDestroy(clone));
  Count(bench, "clone", "RunClone",
        {{"", "main;RunClone;BuildOriginal;AddKernel", "clone_kernel", "", 0}});
}

// ---- update: an executable graph takes over what other code captured ---------------------------

XPU_FRAME cudaGraph_t CaptureBefore(Bench* bench) {
  BeginCapture(bench);
  XPU_CAPTURE_KERNEL(bench, bench->stream, update_kernel);
  return EndCapture(bench);
}

XPU_FRAME cudaGraph_t CaptureAfter(Bench* bench) {
  BeginCapture(bench);
  XPU_CAPTURE_KERNEL(bench, bench->stream, update_kernel);
  return EndCapture(bench);
}

XPU_FRAME void UpdateExecutable(cudaGraphExec_t executable, cudaGraph_t graph) {
  cudaGraphExecUpdateResultInfo info{};
  XPU_CUDA(cudaGraphExecUpdate(executable, graph, &info));
}

XPU_FRAME void RunUpdate(Bench* bench) {
  cudaGraph_t before = CaptureBefore(bench);
  cudaGraphExec_t executable = Instantiate(before);
  XPU_REPLAY(executable, bench);
  cudaGraph_t after = CaptureAfter(bench);
  UpdateExecutable(executable, after);
  XPU_REPLAY(executable, bench);
  XPU_CUDA(cudaGraphExecDestroy(executable));
  XPU_CUDA(cudaGraphDestroy(before));
  XPU_CUDA(cudaGraphDestroy(after));
  Count(bench, "update-before", "RunUpdate",
        {{"", "main;RunUpdate;CaptureBefore", "update_kernel", "", 0}});
  Count(
      bench, "update-after", "RunUpdate",
      {{"", "main;RunUpdate;CaptureAfter", "update_kernel", "main;RunUpdate;UpdateExecutable", 0}});
}

// ---- setparams: one node of an executable graph gets another kernel ----------------------------

XPU_FRAME void SetNodeParams(Bench* bench, cudaGraphExec_t executable, cudaGraphNode_t node) {
  void* args[] = {&bench->data};
  const cudaKernelNodeParams params = NodeParams(setparams_after_kernel, args);
  XPU_CUDA(cudaGraphExecKernelNodeSetParams(executable, node, &params));
}

XPU_FRAME void RunSetParams(Bench* bench) {
  cudaGraph_t graph = EmptyGraph();
  cudaGraphNode_t node = AddKernel(bench, graph, nullptr, setparams_before_kernel);
  cudaGraphExec_t executable = Instantiate(graph);
  XPU_REPLAY(executable, bench);
  SetNodeParams(bench, executable, node);
  XPU_REPLAY(executable, bench);
  XPU_CUDA(cudaGraphExecDestroy(executable));
  XPU_CUDA(cudaGraphDestroy(graph));
  const std::string path = "main;RunSetParams;AddKernel";
  Count(bench, "setparams-before", "RunSetParams", {{"", path, "setparams_before_kernel", "", 0}});
  Count(bench, "setparams-after", "RunSetParams",
        {{"", path, "setparams_after_kernel", "main;RunSetParams;SetNodeParams", 0}});
}

int main(int argc, char** argv) {
  constexpr struct {
    const char* name;
    void (*run)(Bench*);
  } kParts[] = {{"capture", RunCapture}, {"fork", RunFork},          {"explicit", RunExplicit},
                {"generic", RunGeneric}, {"child", RunChild},        {"clone", RunClone},
                {"update", RunUpdate},   {"setparams", RunSetParams}};
  const std::string parts = workload::OptionString(argc, argv, "--parts", "all");
  Bench bench;
  bench.replays = workload::OptionNumber(argc, argv, "--replays", 5);
  bench.bytes = workload::OptionNumber(argc, argv, "--bytes", 1 << 16);
  XPU_CUDA(cudaStreamCreateWithFlags(&bench.stream, cudaStreamNonBlocking));
  XPU_CUDA(cudaStreamCreateWithFlags(&bench.side_stream, cudaStreamNonBlocking));
  XPU_CUDA(cudaEventCreate(&bench.fork));
  XPU_CUDA(cudaEventCreate(&bench.join));
  XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&bench.data), bench.bytes));
  XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&bench.copy), bench.bytes));
  for (const auto& part : kParts) {
    const bool wanted =
        parts == "all" ||
        ("," + parts + ",").find("," + std::string(part.name) + ",") != std::string::npos;
    if (wanted) part.run(&bench);
  }
  XPU_CUDA(cudaFree(bench.data));
  XPU_CUDA(cudaFree(bench.copy));
  workload::JsonLine json;
  json.Add("workload", "graph_paths");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  Write(bench, &json);
  workload::PrintLine(json.Finish());
  return 0;
}
