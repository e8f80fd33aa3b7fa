// PyTorch's caching allocator of CUDA memory. It calls c10::reportMemoryUsageToProfiler, a function
// of libc10, for each block that it hands out and for each that it takes back; libc10_cuda holds
// the address of that function in one slot of its global offset table. While a session records
// memory, the slot leads to a function of ours, which notes the block with the stack of its thread
// and goes on to PyTorch's.
//
// A uprobe on the function was measured and rejected (tests/bench/README.md): a trap for each block
// costs several times what the stack does.
//
// Only functions whose exact signature is known are followed: what the arguments mean, the name
// does not say.
#pragma once

#include "cupti_inject/injection.h"

namespace xpu::inject {

// Puts our function into the slot where the loader has mapped PyTorch since the last call, and
// again where the loader has bound the slot meanwhile. On the thread that follows the loader, or
// before there is one: it takes the loader's lock.
void FollowTorchAllocator(Injection& self);
// Gives the slot what it had. Whoever is in our function goes on to PyTorch's. Likewise.
void LeaveTorchAllocator();

}  // namespace xpu::inject
