// The calls of the workload `copies`: copies.h includes this list twice, once to make a function of
// each line, once to make the table of them. No include guard for that reason.
//
// XPU_CALL(function of ours, API function, kind, bytes per call, GPU records per call, body)

// ---- runtime API: copies of plain memory -------------------------------------------------------
XPU_CALL(CudaMemcpyHtoD, cudaMemcpy, "HtoD", kBytes, 1,
         return cudaMemcpy(resources.a, resources.pageable, kBytes, cudaMemcpyHostToDevice);)
XPU_CALL(CudaMemcpyDtoH, cudaMemcpy, "DtoH", kBytes, 1,
         return cudaMemcpy(resources.pageable, resources.a, kBytes, cudaMemcpyDeviceToHost);)
XPU_CALL(CudaMemcpyDtoD, cudaMemcpy, "DtoD", kBytes, 1,
         return cudaMemcpy(resources.b, resources.a, kBytes, cudaMemcpyDeviceToDevice);)
XPU_CALL(CudaMemcpyDefault, cudaMemcpy, "HtoD", kBytes, 1,
         return cudaMemcpy(resources.a, resources.pinned, kBytes, cudaMemcpyDefault);)
XPU_CALL(CudaMemcpyAsyncHtoD, cudaMemcpyAsync, "HtoD", kBytes, 1,
         return cudaMemcpyAsync(resources.a, resources.pinned, kBytes, cudaMemcpyHostToDevice,
                                resources.stream);)
XPU_CALL(CudaMemcpyAsyncDtoH, cudaMemcpyAsync, "DtoH", kBytes, 1,
         return cudaMemcpyAsync(resources.pinned, resources.a, kBytes, cudaMemcpyDeviceToHost,
                                resources.stream);)
XPU_CALL(CudaMemcpyAsyncDtoD, cudaMemcpyAsync, "DtoD", kBytes, 1,
         return cudaMemcpyAsync(resources.b, resources.a, kBytes, cudaMemcpyDeviceToDevice,
                                resources.stream);)
XPU_CALL(CudaMemcpyPeer, cudaMemcpyPeer, "DtoD", kBytes, 1,
         return cudaMemcpyPeer(resources.b, 0, resources.a, 0, kBytes);)
XPU_CALL(CudaMemcpyPeerAsync, cudaMemcpyPeerAsync, "DtoD", kBytes, 1,
         return cudaMemcpyPeerAsync(resources.b, 0, resources.a, 0, kBytes, resources.stream);)
XPU_CALL(CudaMemcpy2D, cudaMemcpy2D, "DtoH", kBytes, 1,
         return cudaMemcpy2D(resources.pageable, kWidth, resources.a, kWidth, kWidth, kHeight,
                             cudaMemcpyDeviceToHost);)
XPU_CALL(CudaMemcpy2DAsync, cudaMemcpy2DAsync, "HtoD", kBytes, 1,
         return cudaMemcpy2DAsync(resources.a, kWidth, resources.pinned, kWidth, kWidth, kHeight,
                                  cudaMemcpyHostToDevice, resources.stream);)
XPU_CALL(CudaMemcpy3D, cudaMemcpy3D, "DtoD", kBytes, 1, const auto params = Runtime3D(resources);
         return cudaMemcpy3D(&params);)
XPU_CALL(CudaMemcpy3DAsync, cudaMemcpy3DAsync, "DtoD", kBytes, 1,
         const auto params = Runtime3D(resources);
         return cudaMemcpy3DAsync(&params, resources.stream);)
XPU_CALL(CudaMemcpy3DPeer, cudaMemcpy3DPeer, "DtoD", kBytes, 1,
         const auto params = Runtime3DPeer(resources);
         return cudaMemcpy3DPeer(&params);)
XPU_CALL(CudaMemcpy3DPeerAsync, cudaMemcpy3DPeerAsync, "DtoD", kBytes, 1,
         const auto params = Runtime3DPeer(resources);
         return cudaMemcpy3DPeerAsync(&params, resources.stream);)
XPU_CALL(CudaMemcpyToSymbol, cudaMemcpyToSymbol, "HtoD", kBytes, 1,
         return cudaMemcpyToSymbol(resources.symbol, resources.pageable, kBytes, 0,
                                   cudaMemcpyHostToDevice);)
XPU_CALL(CudaMemcpyFromSymbol, cudaMemcpyFromSymbol, "DtoH", kBytes, 1,
         return cudaMemcpyFromSymbol(resources.pageable, resources.symbol, kBytes, 0,
                                     cudaMemcpyDeviceToHost);)
XPU_CALL(CudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync, "HtoD", kBytes, 1,
         return cudaMemcpyToSymbolAsync(resources.symbol, resources.pinned, kBytes, 0,
                                        cudaMemcpyHostToDevice, resources.stream);)
XPU_CALL(CudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync, "DtoH", kBytes, 1,
         return cudaMemcpyFromSymbolAsync(resources.pinned, resources.symbol, kBytes, 0,
                                          cudaMemcpyDeviceToHost, resources.stream);)
XPU_CALL(CudaMemcpyBatchAsync, cudaMemcpyBatchAsync, "DtoD", 2 * kBytes, 2,
         const void* from[] = {resources.a, resources.a};
         void* to[] = {resources.b, resources.c}; const size_t sizes[] = {kBytes, kBytes};
         cudaMemcpyAttributes attributes{};
         attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream; size_t index = 0;
         return cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, resources.stream);)
XPU_CALL(CudaMemcpy3DBatchAsync, cudaMemcpy3DBatchAsync, "DtoD", kBytes, 1,
         auto operation = Runtime3DBatch(resources);
         return cudaMemcpy3DBatchAsync(1, &operation, 0, resources.stream);)

// ---- runtime API: copies of arrays -------------------------------------------------------------
XPU_CALL(CudaMemcpyToArray, cudaMemcpyToArray, "HtoA", kBytes, 1,
         return cudaMemcpyToArray(resources.array, 0, 0, resources.pageable, kBytes,
                                  cudaMemcpyHostToDevice);)
XPU_CALL(CudaMemcpyFromArray, cudaMemcpyFromArray, "AtoH", kBytes, 1,
         return cudaMemcpyFromArray(resources.pageable, resources.array, 0, 0, kBytes,
                                    cudaMemcpyDeviceToHost);)
// cudart copies through device memory of its own.
XPU_CALL(CudaMemcpyArrayToArray, cudaMemcpyArrayToArray, "AtoD+DtoA", 2 * kBytes, 2,
         return cudaMemcpyArrayToArray(resources.other_array, 0, 0, resources.array, 0, 0, kBytes,
                                       cudaMemcpyDeviceToDevice);)
XPU_CALL(CudaMemcpyToArrayAsync, cudaMemcpyToArrayAsync, "HtoA", kBytes, 1,
         return cudaMemcpyToArrayAsync(resources.array, 0, 0, resources.pinned, kBytes,
                                       cudaMemcpyHostToDevice, resources.stream);)
XPU_CALL(CudaMemcpyFromArrayAsync, cudaMemcpyFromArrayAsync, "AtoH", kBytes, 1,
         return cudaMemcpyFromArrayAsync(resources.pinned, resources.array, 0, 0, kBytes,
                                         cudaMemcpyDeviceToHost, resources.stream);)
XPU_CALL(CudaMemcpy2DToArray, cudaMemcpy2DToArray, "HtoA", kBytes, 1,
         return cudaMemcpy2DToArray(resources.array, 0, 0, resources.pageable, kWidth, kWidth,
                                    kHeight, cudaMemcpyHostToDevice);)
XPU_CALL(CudaMemcpy2DFromArray, cudaMemcpy2DFromArray, "AtoH", kBytes, 1,
         return cudaMemcpy2DFromArray(resources.pageable, kWidth, resources.array, 0, 0, kWidth,
                                      kHeight, cudaMemcpyDeviceToHost);)
XPU_CALL(CudaMemcpy2DArrayToArray, cudaMemcpy2DArrayToArray, "AtoA", kBytes, 1,
         return cudaMemcpy2DArrayToArray(resources.other_array, 0, 0, resources.array, 0, 0, kWidth,
                                         kHeight, cudaMemcpyDeviceToDevice);)
XPU_CALL(CudaMemcpy2DToArrayAsync, cudaMemcpy2DToArrayAsync, "DtoA", kBytes, 1,
         return cudaMemcpy2DToArrayAsync(resources.array, 0, 0, resources.a, kWidth, kWidth,
                                         kHeight, cudaMemcpyDeviceToDevice, resources.stream);)
XPU_CALL(CudaMemcpy2DFromArrayAsync, cudaMemcpy2DFromArrayAsync, "AtoD", kBytes, 1,
         return cudaMemcpy2DFromArrayAsync(resources.a, kWidth, resources.array, 0, 0, kWidth,
                                           kHeight, cudaMemcpyDeviceToDevice, resources.stream);)

// ---- driver API: copies of plain memory --------------------------------------------------------
XPU_CALL(CuMemcpy, cuMemcpy, "DtoD", kBytes, 1,
         return cuMemcpy(Address(resources.b), Address(resources.a), kBytes);)
XPU_CALL(CuMemcpyAsync, cuMemcpyAsync, "HtoD", kBytes, 1,
         return cuMemcpyAsync(Address(resources.a), Address(resources.pinned), kBytes,
                              resources.stream);)
XPU_CALL(CuMemcpyPeer, cuMemcpyPeer, "DtoD", kBytes, 1,
         return cuMemcpyPeer(Address(resources.b), resources.context, Address(resources.a),
                             resources.context, kBytes);)
XPU_CALL(CuMemcpyPeerAsync, cuMemcpyPeerAsync, "DtoD", kBytes, 1,
         return cuMemcpyPeerAsync(Address(resources.b), resources.context, Address(resources.a),
                                  resources.context, kBytes, resources.stream);)
XPU_CALL(CuMemcpyHtoD, cuMemcpyHtoD, "HtoD", kBytes, 1,
         return cuMemcpyHtoD(Address(resources.a), resources.pageable, kBytes);)
XPU_CALL(CuMemcpyDtoH, cuMemcpyDtoH, "DtoH", kBytes, 1,
         return cuMemcpyDtoH(resources.pageable, Address(resources.a), kBytes);)
XPU_CALL(CuMemcpyDtoD, cuMemcpyDtoD, "DtoD", kBytes, 1,
         return cuMemcpyDtoD(Address(resources.b), Address(resources.a), kBytes);)
XPU_CALL(CuMemcpyHtoDAsync, cuMemcpyHtoDAsync, "HtoD", kBytes, 1,
         return cuMemcpyHtoDAsync(Address(resources.a), resources.pinned, kBytes,
                                  resources.stream);)
XPU_CALL(CuMemcpyDtoHAsync, cuMemcpyDtoHAsync, "DtoH", kBytes, 1,
         return cuMemcpyDtoHAsync(resources.pinned, Address(resources.a), kBytes,
                                  resources.stream);)
XPU_CALL(CuMemcpyDtoDAsync, cuMemcpyDtoDAsync, "DtoD", kBytes, 1,
         return cuMemcpyDtoDAsync(Address(resources.b), Address(resources.a), kBytes,
                                  resources.stream);)
XPU_CALL(CuMemcpy2D, cuMemcpy2D, "DtoD", kBytes, 1, const auto params = Driver2D(resources);
         return cuMemcpy2D(&params);)
XPU_CALL(CuMemcpy2DUnaligned, cuMemcpy2DUnaligned, "DtoD", kBytes, 1,
         const auto params = Driver2D(resources);
         return cuMemcpy2DUnaligned(&params);)
XPU_CALL(CuMemcpy2DAsync, cuMemcpy2DAsync, "DtoD", kBytes, 1,
         const auto params = Driver2D(resources);
         return cuMemcpy2DAsync(&params, resources.stream);)
XPU_CALL(CuMemcpy3D, cuMemcpy3D, "DtoD", kBytes, 1, const auto params = Driver3D(resources);
         return cuMemcpy3D(&params);)
XPU_CALL(CuMemcpy3DAsync, cuMemcpy3DAsync, "DtoD", kBytes, 1,
         const auto params = Driver3D(resources);
         return cuMemcpy3DAsync(&params, resources.stream);)
XPU_CALL(CuMemcpy3DPeer, cuMemcpy3DPeer, "DtoD", kBytes, 1,
         const auto params = Driver3DPeer(resources);
         return cuMemcpy3DPeer(&params);)
XPU_CALL(CuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, "DtoD", kBytes, 1,
         const auto params = Driver3DPeer(resources);
         return cuMemcpy3DPeerAsync(&params, resources.stream);)
XPU_CALL(CuMemcpyBatchAsync, cuMemcpyBatchAsync, "DtoD", 2 * kBytes, 2,
         CUdeviceptr from[] = {Address(resources.a), Address(resources.a)};
         CUdeviceptr to[] = {Address(resources.b), Address(resources.c)};
         size_t sizes[] = {kBytes, kBytes}; CUmemcpyAttributes attributes{};
         attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM; size_t index = 0;
         return cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, resources.stream);)
XPU_CALL(CuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync, "DtoD", kBytes, 1,
         auto operation = Driver3DBatch(resources);
         return cuMemcpy3DBatchAsync(1, &operation, 0, resources.stream);)

// ---- driver API: copies of arrays --------------------------------------------------------------
XPU_CALL(CuMemcpyDtoA, cuMemcpyDtoA, "DtoA", kBytes, 1,
         return cuMemcpyDtoA(Array(resources.line), 0, Address(resources.a), kBytes);)
XPU_CALL(CuMemcpyAtoD, cuMemcpyAtoD, "AtoD", kBytes, 1,
         return cuMemcpyAtoD(Address(resources.a), Array(resources.line), 0, kBytes);)
XPU_CALL(CuMemcpyHtoA, cuMemcpyHtoA, "HtoA", kBytes, 1,
         return cuMemcpyHtoA(Array(resources.line), 0, resources.pageable, kBytes);)
XPU_CALL(CuMemcpyAtoH, cuMemcpyAtoH, "AtoH", kBytes, 1,
         return cuMemcpyAtoH(resources.pageable, Array(resources.line), 0, kBytes);)
XPU_CALL(CuMemcpyAtoA, cuMemcpyAtoA, "AtoA", kBytes, 1,
         return cuMemcpyAtoA(Array(resources.other_line), 0, Array(resources.line), 0, kBytes);)
XPU_CALL(CuMemcpyHtoAAsync, cuMemcpyHtoAAsync, "HtoA", kBytes, 1,
         return cuMemcpyHtoAAsync(Array(resources.line), 0, resources.pinned, kBytes,
                                  resources.stream);)
XPU_CALL(CuMemcpyAtoHAsync, cuMemcpyAtoHAsync, "AtoH", kBytes, 1,
         return cuMemcpyAtoHAsync(resources.pinned, Array(resources.line), 0, kBytes,
                                  resources.stream);)

// ---- sets --------------------------------------------------------------------------------------
XPU_CALL(CudaMemset, cudaMemset, "set", kBytes, 1, return cudaMemset(resources.a, 1, kBytes);)
XPU_CALL(CudaMemset2D, cudaMemset2D, "set", kBytes, 1,
         return cudaMemset2D(resources.a, kWidth, 2, kWidth, kHeight);)
XPU_CALL(CudaMemset3D, cudaMemset3D, "set", kBytes, 1,
         return cudaMemset3D(Pitched(resources.a), 3, Extent());)
XPU_CALL(CudaMemsetAsync, cudaMemsetAsync, "set", kBytes, 1,
         return cudaMemsetAsync(resources.a, 4, kBytes, resources.stream);)
XPU_CALL(CudaMemset2DAsync, cudaMemset2DAsync, "set", kBytes, 1,
         return cudaMemset2DAsync(resources.a, kWidth, 5, kWidth, kHeight, resources.stream);)
XPU_CALL(CudaMemset3DAsync, cudaMemset3DAsync, "set", kBytes, 1,
         return cudaMemset3DAsync(Pitched(resources.a), 6, Extent(), resources.stream);)
XPU_CALL(CuMemsetD8, cuMemsetD8, "set", kBytes, 1,
         return cuMemsetD8(Address(resources.a), 7, kBytes);)
XPU_CALL(CuMemsetD16, cuMemsetD16, "set", kBytes, 1,
         return cuMemsetD16(Address(resources.a), 8, kBytes / 2);)
XPU_CALL(CuMemsetD32, cuMemsetD32, "set", kBytes, 1,
         return cuMemsetD32(Address(resources.a), 9, kBytes / 4);)
XPU_CALL(CuMemsetD2D8, cuMemsetD2D8, "set", kBytes, 1,
         return cuMemsetD2D8(Address(resources.a), kWidth, 10, kWidth, kHeight);)
XPU_CALL(CuMemsetD2D16, cuMemsetD2D16, "set", kBytes, 1,
         return cuMemsetD2D16(Address(resources.a), kWidth, 11, kWidth / 2, kHeight);)
XPU_CALL(CuMemsetD2D32, cuMemsetD2D32, "set", kBytes, 1,
         return cuMemsetD2D32(Address(resources.a), kWidth, 12, kWidth / 4, kHeight);)
XPU_CALL(CuMemsetD8Async, cuMemsetD8Async, "set", kBytes, 1,
         return cuMemsetD8Async(Address(resources.a), 13, kBytes, resources.stream);)
XPU_CALL(CuMemsetD16Async, cuMemsetD16Async, "set", kBytes, 1,
         return cuMemsetD16Async(Address(resources.a), 14, kBytes / 2, resources.stream);)
XPU_CALL(CuMemsetD32Async, cuMemsetD32Async, "set", kBytes, 1,
         return cuMemsetD32Async(Address(resources.a), 15, kBytes / 4, resources.stream);)
XPU_CALL(CuMemsetD2D8Async, cuMemsetD2D8Async, "set", kBytes, 1,
         return cuMemsetD2D8Async(Address(resources.a), kWidth, 16, kWidth, kHeight,
                                  resources.stream);)
XPU_CALL(CuMemsetD2D16Async, cuMemsetD2D16Async, "set", kBytes, 1,
         return cuMemsetD2D16Async(Address(resources.a), kWidth, 17, kWidth / 2, kHeight,
                                   resources.stream);)
XPU_CALL(CuMemsetD2D32Async, cuMemsetD2D32Async, "set", kBytes, 1,
         return cuMemsetD2D32Async(Address(resources.a), kWidth, 18, kWidth / 4, kHeight,
                                   resources.stream);)

// ---- synchronization ---------------------------------------------------------------------------
XPU_CALL(CudaDeviceSynchronize, cudaDeviceSynchronize, "device sync", 0, 1,
         return cudaDeviceSynchronize();)
XPU_CALL(CudaStreamSynchronize, cudaStreamSynchronize, "stream sync", 0, 1,
         return cudaStreamSynchronize(resources.stream);)
XPU_CALL(CudaEventSynchronize, cudaEventSynchronize, "event sync", 0, 1,
         return cudaEventSynchronize(resources.event);)
XPU_CALL(CudaStreamWaitEvent, cudaStreamWaitEvent, "stream wait event", 0, 1,
         return cudaStreamWaitEvent(resources.stream, resources.event, 0);)
XPU_CALL(CuCtxSynchronize, cuCtxSynchronize, "device sync", 0, 1, return cuCtxSynchronize();)
XPU_CALL(CuStreamSynchronize, cuStreamSynchronize, "stream sync", 0, 1,
         return cuStreamSynchronize(resources.stream);)
XPU_CALL(CuEventSynchronize, cuEventSynchronize, "event sync", 0, 1,
         return cuEventSynchronize(resources.event);)
XPU_CALL(CuStreamWaitEvent, cuStreamWaitEvent, "stream wait event", 0, 1,
         return cuStreamWaitEvent(resources.stream, resources.event, 0);)

// ---- memory ------------------------------------------------------------------------------------
XPU_CALL(CudaMemPrefetchAsync, cudaMemPrefetchAsync, "prefetch", kBytes, 0,
         return cudaMemPrefetchAsync(resources.managed, kBytes, {cudaMemLocationTypeDevice, 0}, 0,
                                     resources.stream);)
XPU_CALL(CuMemPrefetchAsync, cuMemPrefetchAsync, "prefetch", kBytes, 0,
         return cuMemPrefetchAsync(Address(resources.managed), kBytes, HostLocation(), 0,
                                   resources.stream);)
XPU_CALL(CudaMalloc, cudaMalloc, "alloc", kBytes, 0, return cudaMalloc(resources.Push(), kBytes);)
XPU_CALL(CudaFree, cudaFree, "free", kBytes, 0, return cudaFree(resources.Pop());)
XPU_CALL(CudaMallocAsync, cudaMallocAsync, "alloc", kBytes, 0,
         return cudaMallocAsync(resources.Push(), kBytes, resources.stream);)
XPU_CALL(CudaFreeAsync, cudaFreeAsync, "free", kBytes, 0,
         return cudaFreeAsync(resources.Pop(), resources.stream);)
XPU_CALL(CuMemAlloc, cuMemAlloc, "alloc", kBytes, 0,
         return cuMemAlloc(reinterpret_cast<CUdeviceptr*>(resources.Push()), kBytes);)
XPU_CALL(CuMemFree, cuMemFree, "free", kBytes, 0, return cuMemFree(Address(resources.Pop()));)
XPU_CALL(CuMemAllocAsync, cuMemAllocAsync, "alloc", kBytes, 0,
         return cuMemAllocAsync(reinterpret_cast<CUdeviceptr*>(resources.Push()), kBytes,
                                resources.stream);)
XPU_CALL(CuMemFreeAsync, cuMemFreeAsync, "free", kBytes, 0,
         return cuMemFreeAsync(Address(resources.Pop()), resources.stream);)
