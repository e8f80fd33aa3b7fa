// Which function a name stands for: the present version, and in a file compiled with
// CUDA_API_PER_THREAD_DEFAULT_STREAM the one that uses the per-thread default stream.
#pragma once

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define __CUDA_API_PTDS(api) api##_ptds
#define __CUDA_API_PTSZ(api) api##_ptsz
#else
#define __CUDA_API_PTDS(api) api
#define __CUDA_API_PTSZ(api) api
#endif

#define cuMemAlloc cuMemAlloc_v2
#define cuMemFree cuMemFree_v2
#define cuCtxPushCurrent cuCtxPushCurrent_v2
#define cuCtxPopCurrent cuCtxPopCurrent_v2
#define cuStreamDestroy cuStreamDestroy_v2
#define cuEventDestroy cuEventDestroy_v2
#define cuEventElapsedTime cuEventElapsedTime_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2
#define cuDeviceTotalMem cuDeviceTotalMem_v2
#define cuArray3DCreate cuArray3DCreate_v2
#define cuArray3DGetDescriptor cuArray3DGetDescriptor_v2
#define cuGraphAddKernelNode cuGraphAddKernelNode_v2
#define cuGraphExecKernelNodeSetParams cuGraphExecKernelNodeSetParams_v2
#define cuGraphExecUpdate cuGraphExecUpdate_v2
#define cuGraphAddNode cuGraphAddNode_v2

#define cuMemcpy __CUDA_API_PTDS(cuMemcpy)
#define cuMemcpyPeer __CUDA_API_PTDS(cuMemcpyPeer)
#define cuMemcpyHtoD __CUDA_API_PTDS(cuMemcpyHtoD_v2)
#define cuMemcpyDtoH __CUDA_API_PTDS(cuMemcpyDtoH_v2)
#define cuMemcpyDtoD __CUDA_API_PTDS(cuMemcpyDtoD_v2)
#define cuMemcpyDtoA __CUDA_API_PTDS(cuMemcpyDtoA_v2)
#define cuMemcpyAtoD __CUDA_API_PTDS(cuMemcpyAtoD_v2)
#define cuMemcpyHtoA __CUDA_API_PTDS(cuMemcpyHtoA_v2)
#define cuMemcpyAtoH __CUDA_API_PTDS(cuMemcpyAtoH_v2)
#define cuMemcpyAtoA __CUDA_API_PTDS(cuMemcpyAtoA_v2)
#define cuMemcpy2D __CUDA_API_PTDS(cuMemcpy2D_v2)
#define cuMemcpy2DUnaligned __CUDA_API_PTDS(cuMemcpy2DUnaligned_v2)
#define cuMemcpy3D __CUDA_API_PTDS(cuMemcpy3D_v2)
#define cuMemcpy3DPeer __CUDA_API_PTDS(cuMemcpy3DPeer)
#define cuMemsetD8 __CUDA_API_PTDS(cuMemsetD8_v2)
#define cuMemsetD16 __CUDA_API_PTDS(cuMemsetD16_v2)
#define cuMemsetD32 __CUDA_API_PTDS(cuMemsetD32_v2)
#define cuMemsetD2D8 __CUDA_API_PTDS(cuMemsetD2D8_v2)
#define cuMemsetD2D16 __CUDA_API_PTDS(cuMemsetD2D16_v2)
#define cuMemsetD2D32 __CUDA_API_PTDS(cuMemsetD2D32_v2)

#define cuMemcpyAsync __CUDA_API_PTSZ(cuMemcpyAsync)
#define cuMemcpyPeerAsync __CUDA_API_PTSZ(cuMemcpyPeerAsync)
#define cuMemcpyHtoDAsync __CUDA_API_PTSZ(cuMemcpyHtoDAsync_v2)
#define cuMemcpyDtoHAsync __CUDA_API_PTSZ(cuMemcpyDtoHAsync_v2)
#define cuMemcpyDtoDAsync __CUDA_API_PTSZ(cuMemcpyDtoDAsync_v2)
#define cuMemcpyHtoAAsync __CUDA_API_PTSZ(cuMemcpyHtoAAsync_v2)
#define cuMemcpyAtoHAsync __CUDA_API_PTSZ(cuMemcpyAtoHAsync_v2)
#define cuMemcpy2DAsync __CUDA_API_PTSZ(cuMemcpy2DAsync_v2)
#define cuMemcpy3DAsync __CUDA_API_PTSZ(cuMemcpy3DAsync_v2)
#define cuMemcpy3DPeerAsync __CUDA_API_PTSZ(cuMemcpy3DPeerAsync)
#define cuMemcpyBatchAsync __CUDA_API_PTSZ(cuMemcpyBatchAsync_v2)
#define cuMemcpy3DBatchAsync __CUDA_API_PTSZ(cuMemcpy3DBatchAsync_v2)
#define cuMemsetD8Async __CUDA_API_PTSZ(cuMemsetD8Async)
#define cuMemsetD16Async __CUDA_API_PTSZ(cuMemsetD16Async)
#define cuMemsetD32Async __CUDA_API_PTSZ(cuMemsetD32Async)
#define cuMemsetD2D8Async __CUDA_API_PTSZ(cuMemsetD2D8Async)
#define cuMemsetD2D16Async __CUDA_API_PTSZ(cuMemsetD2D16Async)
#define cuMemsetD2D32Async __CUDA_API_PTSZ(cuMemsetD2D32Async)
#define cuMemPrefetchAsync __CUDA_API_PTSZ(cuMemPrefetchAsync_v2)
#define cuMemAllocAsync __CUDA_API_PTSZ(cuMemAllocAsync)
#define cuMemFreeAsync __CUDA_API_PTSZ(cuMemFreeAsync)
#define cuStreamSynchronize __CUDA_API_PTSZ(cuStreamSynchronize)
#define cuStreamQuery __CUDA_API_PTSZ(cuStreamQuery)
#define cuStreamWaitEvent __CUDA_API_PTSZ(cuStreamWaitEvent)
#define cuEventRecord __CUDA_API_PTSZ(cuEventRecord)
#define cuStreamBeginCapture __CUDA_API_PTSZ(cuStreamBeginCapture_v2)
#define cuStreamEndCapture __CUDA_API_PTSZ(cuStreamEndCapture)
#define cuStreamIsCapturing __CUDA_API_PTSZ(cuStreamIsCapturing)
#define cuGraphLaunch __CUDA_API_PTSZ(cuGraphLaunch)
#define cuLaunchKernel __CUDA_API_PTSZ(cuLaunchKernel)
#define cuLaunchKernelEx __CUDA_API_PTSZ(cuLaunchKernelEx)
#define cuLaunchCooperativeKernel __CUDA_API_PTSZ(cuLaunchCooperativeKernel)
#define cuLaunchHostFunc __CUDA_API_PTSZ(cuLaunchHostFunc)

// ---- runtime API -------------------------------------------------------------------------------

#define cudaMemcpy __CUDA_API_PTDS(cudaMemcpy)
#define cudaMemcpy2D __CUDA_API_PTDS(cudaMemcpy2D)
#define cudaMemcpyToSymbol __CUDA_API_PTDS(cudaMemcpyToSymbol)
#define cudaMemcpyFromSymbol __CUDA_API_PTDS(cudaMemcpyFromSymbol)
#define cudaMemcpyToArray __CUDA_API_PTDS(cudaMemcpyToArray)
#define cudaMemcpyFromArray __CUDA_API_PTDS(cudaMemcpyFromArray)
#define cudaMemcpyArrayToArray __CUDA_API_PTDS(cudaMemcpyArrayToArray)
#define cudaMemcpy2DToArray __CUDA_API_PTDS(cudaMemcpy2DToArray)
#define cudaMemcpy2DFromArray __CUDA_API_PTDS(cudaMemcpy2DFromArray)
#define cudaMemcpy2DArrayToArray __CUDA_API_PTDS(cudaMemcpy2DArrayToArray)
#define cudaMemcpy3D __CUDA_API_PTDS(cudaMemcpy3D)
#define cudaMemcpy3DPeer __CUDA_API_PTDS(cudaMemcpy3DPeer)
#define cudaMemset __CUDA_API_PTDS(cudaMemset)
#define cudaMemset2D __CUDA_API_PTDS(cudaMemset2D)
#define cudaMemset3D __CUDA_API_PTDS(cudaMemset3D)

#define cudaMemcpyAsync __CUDA_API_PTSZ(cudaMemcpyAsync)
#define cudaMemcpy2DAsync __CUDA_API_PTSZ(cudaMemcpy2DAsync)
#define cudaMemcpyToSymbolAsync __CUDA_API_PTSZ(cudaMemcpyToSymbolAsync)
#define cudaMemcpyFromSymbolAsync __CUDA_API_PTSZ(cudaMemcpyFromSymbolAsync)
#define cudaMemcpyToArrayAsync __CUDA_API_PTSZ(cudaMemcpyToArrayAsync)
#define cudaMemcpyFromArrayAsync __CUDA_API_PTSZ(cudaMemcpyFromArrayAsync)
#define cudaMemcpy2DToArrayAsync __CUDA_API_PTSZ(cudaMemcpy2DToArrayAsync)
#define cudaMemcpy2DFromArrayAsync __CUDA_API_PTSZ(cudaMemcpy2DFromArrayAsync)
#define cudaMemcpy3DAsync __CUDA_API_PTSZ(cudaMemcpy3DAsync)
#define cudaMemcpy3DPeerAsync __CUDA_API_PTSZ(cudaMemcpy3DPeerAsync)
#define cudaMemcpyBatchAsync __CUDA_API_PTSZ(cudaMemcpyBatchAsync)
#define cudaMemcpy3DBatchAsync __CUDA_API_PTSZ(cudaMemcpy3DBatchAsync)
#define cudaMemsetAsync __CUDA_API_PTSZ(cudaMemsetAsync)
#define cudaMemset2DAsync __CUDA_API_PTSZ(cudaMemset2DAsync)
#define cudaMemset3DAsync __CUDA_API_PTSZ(cudaMemset3DAsync)
#define cudaMemPrefetchAsync __CUDA_API_PTSZ(cudaMemPrefetchAsync)
#define cudaMallocAsync __CUDA_API_PTSZ(cudaMallocAsync)
#define cudaFreeAsync __CUDA_API_PTSZ(cudaFreeAsync)
#define cudaStreamSynchronize __CUDA_API_PTSZ(cudaStreamSynchronize)
#define cudaStreamQuery __CUDA_API_PTSZ(cudaStreamQuery)
#define cudaStreamWaitEvent __CUDA_API_PTSZ(cudaStreamWaitEvent)
#define cudaEventRecord __CUDA_API_PTSZ(cudaEventRecord)
#define cudaStreamBeginCapture __CUDA_API_PTSZ(cudaStreamBeginCapture)
#define cudaStreamEndCapture __CUDA_API_PTSZ(cudaStreamEndCapture)
#define cudaGraphLaunch __CUDA_API_PTSZ(cudaGraphLaunch)
#define cudaLaunchKernel __CUDA_API_PTSZ(cudaLaunchKernel)
#define cudaLaunchKernelExC __CUDA_API_PTSZ(cudaLaunchKernelExC)
#define cudaLaunchCooperativeKernel __CUDA_API_PTSZ(cudaLaunchCooperativeKernel)
#define cudaLaunchHostFunc __CUDA_API_PTSZ(cudaLaunchHostFunc)
