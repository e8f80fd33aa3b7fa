#include "cupti_inject/watched_calls.h"

#include <gtest/gtest.h>

#include "cupti_inject/cupti_abi.h"

namespace xpu::inject {
namespace {

using cupti::kDomainDriver;
using cupti::kDomainRuntime;

TEST(IsWatched, DriverLaunchesCopiesSetsAndWaits) {
  for (const char* name : {"cuLaunch",
                           "cuLaunchGrid",
                           "cuLaunchGridAsync",
                           "cuLaunchKernel",
                           "cuLaunchKernel_ptsz",
                           "cuLaunchKernelEx",
                           "cuLaunchKernelEx_ptsz",
                           "cuLaunchCooperativeKernel",
                           "cuLaunchCooperativeKernelMultiDevice",
                           "cuLaunchHostFunc",
                           "cuGraphLaunch",
                           "cuGraphLaunch_ptsz",
                           "cuMemcpyHtoD_v2",
                           "cuMemcpyDtoHAsync_v2_ptsz",
                           "cuMemcpy",
                           "cuMemcpy3DBatchAsync_v2",
                           "cuMemcpyPeerAsync",
                           "cu64MemcpyDtoD",
                           "cuMemsetD8_v2",
                           "cuMemsetD2D32Async_ptsz",
                           "cuCtxSynchronize",
                           "cuCtxSynchronize_v2",
                           "cuStreamSynchronize_ptsz",
                           "cuStreamWaitEvent_ptsz",
                           "cuEventSynchronize"}) {
    EXPECT_TRUE(IsWatched(kDomainDriver, name)) << name;
  }
}

TEST(IsWatched, RuntimeLaunchesCopiesSetsAndWaits) {
  for (const char* name : {"cudaLaunch_v3020",
                           "cudaLaunchKernel_v7000",
                           "cudaLaunchKernel_ptsz_v7000",
                           "cudaLaunchKernelExC_v11060",
                           "__cudaLaunchKernel_v13000",
                           "__cudaLaunchKernel_ptsz_v13000",
                           "cudaLaunchCooperativeKernel_v9000",
                           "cudaLaunchHostFunc_v10000",
                           "cudaGraphLaunch_v10000",
                           "cudaMemcpy_v3020",
                           "cudaMemcpyToSymbolAsync_ptsz_v7000",
                           "cudaMemcpy3DPeerAsync_v4000",
                           "cudaMemcpyBatchAsync_v13000",
                           "cudaMemset_v3020",
                           "cudaMemset3DAsync_ptsz_v7000",
                           "cudaDeviceSynchronize_v3020",
                           "cudaThreadSynchronize_v3020",
                           "cudaStreamSynchronize_ptsz_v7000",
                           "cudaEventSynchronize_v3020",
                           "cudaStreamWaitEvent_v3020",
                           "cudaLaunchKernel"}) {
    EXPECT_TRUE(IsWatched(kDomainRuntime, name)) << name;
  }
}

TEST(IsWatched, CallsThatMakeOrChangeNodesOfGraphs) {
  for (const char* name :
       {"cuGraphAddKernelNode_v2", "cuGraphAddNode_v2", "cuGraphAddChildGraphNode", "cuGraphClone",
        "cuGraphInstantiateWithFlags", "cuGraphExecUpdate_v2", "cuGraphKernelNodeSetParams_v2",
        "cuGraphExecMemcpyNodeSetParams"}) {
    EXPECT_TRUE(IsWatched(kDomainDriver, name)) << name;
    EXPECT_FALSE(IsWatched(kDomainRuntime, name)) << name;
  }
  for (const char* name :
       {"cudaGraphAddKernelNode_v10000", "cudaGraphClone_v10000", "cudaGraphInstantiate_v12000",
        "cudaGraphExecUpdate_v10020", "cudaGraphExecKernelNodeSetParams_v10010"}) {
    EXPECT_TRUE(IsWatched(kDomainRuntime, name)) << name;
  }
}

TEST(IsWatched, NothingElse) {
  for (const char* name :
       {"", "cuInit", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemGetInfo_v2", "cuModuleLoad",
        "cuCtxGetCurrent", "cuStreamQuery", "cuEventRecord", "cuGraphDestroy", "cuGraphExecDestroy",
        "cuGraphKernelNodeGetParams", "cuGraphCreate", "cuFuncGetAttribute", "cuMemPrefetchAsync",
        "cudaLaunchKernel"}) {
    EXPECT_FALSE(IsWatched(kDomainDriver, name)) << name;
  }
  for (const char* name :
       {"cudaMalloc_v3020", "cudaGetLastError_v3020", "cudaStreamIsCapturing_v10000",
        "cudaGraphGetNodes_v10000", "cudaEventQuery_v3020", "cudaConfigureCall_v3020",
        "cuLaunchKernel", "__cudaRegisterFunction"}) {
    EXPECT_FALSE(IsWatched(kDomainRuntime, name)) << name;
  }
  EXPECT_FALSE(IsWatched(kDomainRuntime, nullptr));
  EXPECT_FALSE(IsWatched(cupti::kDomainResource, "cuLaunchKernel"));
}

TEST(AllocatesMemory, AllocationsAndReleases) {
  for (const char* name : {"cuMemAlloc_v2", "cuMemAllocAsync", "cuMemAllocManaged", "cuMemFree_v2",
                           "cuMemFreeHost", "cuMemHostAlloc"}) {
    EXPECT_TRUE(AllocatesMemory(kDomainDriver, name)) << name;
    EXPECT_FALSE(AllocatesMemory(kDomainRuntime, name)) << name;
  }
  for (const char* name : {"cudaMalloc_v3020", "cudaMallocAsync_v11020", "cudaMallocHost_v3020",
                           "cudaFree_v3020", "cudaFreeHost_v3020", "cudaHostAlloc_v3020"}) {
    EXPECT_TRUE(AllocatesMemory(kDomainRuntime, name)) << name;
  }
  EXPECT_FALSE(AllocatesMemory(kDomainDriver, "cuMemGetInfo_v2"));
  EXPECT_FALSE(AllocatesMemory(kDomainRuntime, nullptr));
}

}  // namespace
}  // namespace xpu::inject
