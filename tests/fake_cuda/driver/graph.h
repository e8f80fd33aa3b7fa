// Graphs: how they are built, copied and replayed, with the callbacks of the resource domain.
#pragma once

#include "device.h"

namespace xpu::fake_cuda {

// Values of CUpti_CallbackIdResource.
enum : uint32_t {
  kGraphCreated = 9,
  kGraphDestroyStarting = 10,
  kGraphCloned = 11,
  kNodeCreateStarting = 12,
  kNodeCreated = 13,
  kNodeDestroyStarting = 14,
  kDependencyCreated = 15,
  kDependencyDestroyStarting = 16,
  kExecCreateStarting = 17,
  kExecCreated = 18,
  kExecDestroyStarting = 19,
  kNodeCloned = 20,
  kNodeParamsSet = 23,
};

// Announced as created.
CUgraph NewGraph();

// What is put into a stream under capture becomes a node after those that the stream waits for.
void CaptureWork(CUstream stream, const Work& work);

// Begins, joins or leaves a capture.
void JoinCapture(CUstream stream, CUgraph graph, const std::vector<size_t>& dependencies);
CUgraph LeaveCapture(CUstream stream);

// A node that the program makes itself; a node with `child` holds a copy of that graph.
CUgraphNode AddNode(CUgraph graph, const CUgraphNode* dependencies, size_t dependency_count,
                    const Work& work, CUgraph child = nullptr);

// Nodes of `from` in `to`, each announced as created and cloned.
void CloneNodes(CUgraph from, CUgraph to);

CUgraphExec Instantiate(CUgraph graph, uint32_t correlation_id);
bool HasExecutableGraphs();  // or has had

// The executable graph's nodes do what those of `graph` do. False: the graphs differ.
bool Update(CUgraphExec exec, CUgraph graph);

// The executable graph's copy of a node; nullptr: none.
CUgraphNode CopyOf(CUgraphExec exec, uint64_t node_id);

void AnnounceDestruction(CUgraph graph);
void Replay(CUgraphExec exec, CUstream stream, uint32_t correlation_id);

}  // namespace xpu::fake_cuda
