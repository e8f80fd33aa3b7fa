// Who put a node into a CUDA graph. A replay runs nodes of the executable graph long after the code
// that made them has returned: each change of a node is reported with the call under way, whose
// stack the marker has taken.
#pragma once

#include <cstdint>

#include "cupti_inject/cupti_abi.h"
#include "cupti_inject/injection.h"

namespace xpu::inject {

// Notes from now on who makes the nodes of CUDA graphs. False: this CUPTI cannot tell.
bool WatchGraphNodes(const Injection& self);
void OnGraphNode(Injection& self, uint32_t callback_id, const cupti::GraphData& data);
// At the end of a call that updated an executable graph.
void OnGraphUpdated(Injection& self, const cupti::GraphExecUpdateParameters& parameters);
// At the end of a call that made nodes.
void ForgetNodes(Injection& self, uint32_t correlation_id);

// A replay was seen, on its thread: see LeaveCupti.
void NoteGraphThread(ThreadState& thread);

}  // namespace xpu::inject
