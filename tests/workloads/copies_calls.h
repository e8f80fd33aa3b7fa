// The calls of the workload `copies`: copies.h includes this list twice, once to make a function of
// each line, once to make the table of them. No include guard for that reason.
//
// XPU_CALL(function of ours, API function, kind, bytes per call, GPU records per call, body)

// ---- runtime API: copies of plain memory -------------------------------------------------------
XPU_CALL(CudaMemcpyHtoD, cudaMemcpy, "HtoD", kBytes, 1,
         return cudaMemcpy(room.a, room.pageable, kBytes, cudaMemcpyHostToDevice);)
XPU_CALL(CudaMemcpyDtoH, cudaMemcpy, "DtoH", kBytes, 1,
         return cudaMemcpy(room.pageable, room.a, kBytes, cudaMemcpyDeviceToHost);)
XPU_CALL(CudaMemcpyDtoD, cudaMemcpy, "DtoD", kBytes, 1,
         return cudaMemcpy(room.b, room.a, kBytes, cudaMemcpyDeviceToDevice);)
XPU_CALL(CudaMemcpyDefault, cudaMemcpy, "HtoD", kBytes, 1,
         return cudaMemcpy(room.a, room.pinned, kBytes, cudaMemcpyDefault);)
XPU_CALL(CudaMemcpyAsyncHtoD, cudaMemcpyAsync, "HtoD", kBytes, 1,
         return cudaMemcpyAsync(room.a, room.pinned, kBytes, cudaMemcpyHostToDevice, room.stream);)
XPU_CALL(CudaMemcpyAsyncDtoH, cudaMemcpyAsync, "DtoH", kBytes, 1,
         return cudaMemcpyAsync(room.pinned, room.a, kBytes, cudaMemcpyDeviceToHost, room.stream);)
XPU_CALL(CudaMemcpyAsyncDtoD, cudaMemcpyAsync, "DtoD", kBytes, 1,
         return cudaMemcpyAsync(room.b, room.a, kBytes, cudaMemcpyDeviceToDevice, room.stream);)
XPU_CALL(CudaMemcpyPeer, cudaMemcpyPeer, "DtoD", kBytes, 1,
         return cudaMemcpyPeer(room.b, 0, room.a, 0, kBytes);)
XPU_CALL(CudaMemcpyPeerAsync, cudaMemcpyPeerAsync, "DtoD", kBytes, 1,
         return cudaMemcpyPeerAsync(room.b, 0, room.a, 0, kBytes, room.stream);)
XPU_CALL(CudaMemcpy2D, cudaMemcpy2D, "DtoH", kBytes, 1,
         return cudaMemcpy2D(room.pageable, kWidth, room.a, kWidth, kWidth, kHeight,
                             cudaMemcpyDeviceToHost);)
XPU_CALL(CudaMemcpy2DAsync, cudaMemcpy2DAsync, "HtoD", kBytes, 1,
         return cudaMemcpy2DAsync(room.a, kWidth, room.pinned, kWidth, kWidth, kHeight,
                                  cudaMemcpyHostToDevice, room.stream);)
XPU_CALL(CudaMemcpy3D, cudaMemcpy3D, "DtoD", kBytes, 1, const auto params = Runtime3D(room);
         return cudaMemcpy3D(&params);)
XPU_CALL(CudaMemcpy3DAsync, cudaMemcpy3DAsync, "DtoD", kBytes, 1,
         const auto params = Runtime3D(room);
         return cudaMemcpy3DAsync(&params, room.stream);)
XPU_CALL(CudaMemcpy3DPeer, cudaMemcpy3DPeer, "DtoD", kBytes, 1,
         const auto params = Runtime3DPeer(room);
         return cudaMemcpy3DPeer(&params);)
XPU_CALL(CudaMemcpy3DPeerAsync, cudaMemcpy3DPeerAsync, "DtoD", kBytes, 1,
         const auto params = Runtime3DPeer(room);
         return cudaMemcpy3DPeerAsync(&params, room.stream);)
XPU_CALL(CudaMemcpyToSymbol, cudaMemcpyToSymbol, "HtoD", kBytes, 1,
         return cudaMemcpyToSymbol(room.symbol, room.pageable, kBytes, 0, cudaMemcpyHostToDevice);)
XPU_CALL(CudaMemcpyFromSymbol, cudaMemcpyFromSymbol, "DtoH", kBytes, 1,
         return cudaMemcpyFromSymbol(room.pageable, room.symbol, kBytes, 0,
                                     cudaMemcpyDeviceToHost);)
XPU_CALL(CudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync, "HtoD", kBytes, 1,
         return cudaMemcpyToSymbolAsync(room.symbol, room.pinned, kBytes, 0, cudaMemcpyHostToDevice,
                                        room.stream);)
XPU_CALL(CudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync, "DtoH", kBytes, 1,
         return cudaMemcpyFromSymbolAsync(room.pinned, room.symbol, kBytes, 0,
                                          cudaMemcpyDeviceToHost, room.stream);)
XPU_CALL(CudaMemcpyBatchAsync, cudaMemcpyBatchAsync, "DtoD", 2 * kBytes, 2,
         const void* from[] = {room.a, room.a};
         void* to[] = {room.b, room.c}; const size_t sizes[] = {kBytes, kBytes};
         cudaMemcpyAttributes attributes{};
         attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream; size_t index = 0;
         return cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, room.stream);)
XPU_CALL(CudaMemcpy3DBatchAsync, cudaMemcpy3DBatchAsync, "DtoD", kBytes, 1,
         auto operation = Runtime3DBatch(room);
         return cudaMemcpy3DBatchAsync(1, &operation, 0, room.stream);)

// ---- runtime API: copies of arrays -------------------------------------------------------------
XPU_CALL(CudaMemcpyToArray, cudaMemcpyToArray, "HtoA", kBytes, 1,
         return cudaMemcpyToArray(room.array, 0, 0, room.pageable, kBytes, cudaMemcpyHostToDevice);)
XPU_CALL(CudaMemcpyFromArray, cudaMemcpyFromArray, "AtoH", kBytes, 1,
         return cudaMemcpyFromArray(room.pageable, room.array, 0, 0, kBytes,
                                    cudaMemcpyDeviceToHost);)
// cudart copies through device memory of its own.
XPU_CALL(CudaMemcpyArrayToArray, cudaMemcpyArrayToArray, "AtoD+DtoA", 2 * kBytes, 2,
         return cudaMemcpyArrayToArray(room.other_array, 0, 0, room.array, 0, 0, kBytes,
                                       cudaMemcpyDeviceToDevice);)
XPU_CALL(CudaMemcpyToArrayAsync, cudaMemcpyToArrayAsync, "HtoA", kBytes, 1,
         return cudaMemcpyToArrayAsync(room.array, 0, 0, room.pinned, kBytes,
                                       cudaMemcpyHostToDevice, room.stream);)
XPU_CALL(CudaMemcpyFromArrayAsync, cudaMemcpyFromArrayAsync, "AtoH", kBytes, 1,
         return cudaMemcpyFromArrayAsync(room.pinned, room.array, 0, 0, kBytes,
                                         cudaMemcpyDeviceToHost, room.stream);)
XPU_CALL(CudaMemcpy2DToArray, cudaMemcpy2DToArray, "HtoA", kBytes, 1,
         return cudaMemcpy2DToArray(room.array, 0, 0, room.pageable, kWidth, kWidth, kHeight,
                                    cudaMemcpyHostToDevice);)
XPU_CALL(CudaMemcpy2DFromArray, cudaMemcpy2DFromArray, "AtoH", kBytes, 1,
         return cudaMemcpy2DFromArray(room.pageable, kWidth, room.array, 0, 0, kWidth, kHeight,
                                      cudaMemcpyDeviceToHost);)
XPU_CALL(CudaMemcpy2DArrayToArray, cudaMemcpy2DArrayToArray, "AtoA", kBytes, 1,
         return cudaMemcpy2DArrayToArray(room.other_array, 0, 0, room.array, 0, 0, kWidth, kHeight,
                                         cudaMemcpyDeviceToDevice);)
XPU_CALL(CudaMemcpy2DToArrayAsync, cudaMemcpy2DToArrayAsync, "DtoA", kBytes, 1,
         return cudaMemcpy2DToArrayAsync(room.array, 0, 0, room.a, kWidth, kWidth, kHeight,
                                         cudaMemcpyDeviceToDevice, room.stream);)
XPU_CALL(CudaMemcpy2DFromArrayAsync, cudaMemcpy2DFromArrayAsync, "AtoD", kBytes, 1,
         return cudaMemcpy2DFromArrayAsync(room.a, kWidth, room.array, 0, 0, kWidth, kHeight,
                                           cudaMemcpyDeviceToDevice, room.stream);)

// ---- driver API: copies of plain memory --------------------------------------------------------
XPU_CALL(CuMemcpy, cuMemcpy, "DtoD", kBytes, 1,
         return cuMemcpy(Address(room.b), Address(room.a), kBytes);)
XPU_CALL(CuMemcpyAsync, cuMemcpyAsync, "HtoD", kBytes, 1,
         return cuMemcpyAsync(Address(room.a), Address(room.pinned), kBytes, room.stream);)
XPU_CALL(CuMemcpyPeer, cuMemcpyPeer, "DtoD", kBytes, 1,
         return cuMemcpyPeer(Address(room.b), room.context, Address(room.a), room.context, kBytes);)
XPU_CALL(CuMemcpyPeerAsync, cuMemcpyPeerAsync, "DtoD", kBytes, 1,
         return cuMemcpyPeerAsync(Address(room.b), room.context, Address(room.a), room.context,
                                  kBytes, room.stream);)
XPU_CALL(CuMemcpyHtoD, cuMemcpyHtoD, "HtoD", kBytes, 1,
         return cuMemcpyHtoD(Address(room.a), room.pageable, kBytes);)
XPU_CALL(CuMemcpyDtoH, cuMemcpyDtoH, "DtoH", kBytes, 1,
         return cuMemcpyDtoH(room.pageable, Address(room.a), kBytes);)
XPU_CALL(CuMemcpyDtoD, cuMemcpyDtoD, "DtoD", kBytes, 1,
         return cuMemcpyDtoD(Address(room.b), Address(room.a), kBytes);)
XPU_CALL(CuMemcpyHtoDAsync, cuMemcpyHtoDAsync, "HtoD", kBytes, 1,
         return cuMemcpyHtoDAsync(Address(room.a), room.pinned, kBytes, room.stream);)
XPU_CALL(CuMemcpyDtoHAsync, cuMemcpyDtoHAsync, "DtoH", kBytes, 1,
         return cuMemcpyDtoHAsync(room.pinned, Address(room.a), kBytes, room.stream);)
XPU_CALL(CuMemcpyDtoDAsync, cuMemcpyDtoDAsync, "DtoD", kBytes, 1,
         return cuMemcpyDtoDAsync(Address(room.b), Address(room.a), kBytes, room.stream);)
XPU_CALL(CuMemcpy2D, cuMemcpy2D, "DtoD", kBytes, 1, const auto params = Driver2D(room);
         return cuMemcpy2D(&params);)
XPU_CALL(CuMemcpy2DUnaligned, cuMemcpy2DUnaligned, "DtoD", kBytes, 1,
         const auto params = Driver2D(room);
         return cuMemcpy2DUnaligned(&params);)
XPU_CALL(CuMemcpy2DAsync, cuMemcpy2DAsync, "DtoD", kBytes, 1, const auto params = Driver2D(room);
         return cuMemcpy2DAsync(&params, room.stream);)
XPU_CALL(CuMemcpy3D, cuMemcpy3D, "DtoD", kBytes, 1, const auto params = Driver3D(room);
         return cuMemcpy3D(&params);)
XPU_CALL(CuMemcpy3DAsync, cuMemcpy3DAsync, "DtoD", kBytes, 1, const auto params = Driver3D(room);
         return cuMemcpy3DAsync(&params, room.stream);)
XPU_CALL(CuMemcpy3DPeer, cuMemcpy3DPeer, "DtoD", kBytes, 1, const auto params = Driver3DPeer(room);
         return cuMemcpy3DPeer(&params);)
XPU_CALL(CuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, "DtoD", kBytes, 1,
         const auto params = Driver3DPeer(room);
         return cuMemcpy3DPeerAsync(&params, room.stream);)
XPU_CALL(CuMemcpyBatchAsync, cuMemcpyBatchAsync, "DtoD", 2 * kBytes, 2,
         CUdeviceptr from[] = {Address(room.a), Address(room.a)};
         CUdeviceptr to[] = {Address(room.b), Address(room.c)}; size_t sizes[] = {kBytes, kBytes};
         CUmemcpyAttributes attributes{};
         attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM; size_t index = 0;
         return cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &index, 1, room.stream);)
XPU_CALL(CuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync, "DtoD", kBytes, 1,
         auto operation = Driver3DBatch(room);
         return cuMemcpy3DBatchAsync(1, &operation, 0, room.stream);)

// ---- driver API: copies of arrays --------------------------------------------------------------
XPU_CALL(CuMemcpyDtoA, cuMemcpyDtoA, "DtoA", kBytes, 1,
         return cuMemcpyDtoA(Array(room.line), 0, Address(room.a), kBytes);)
XPU_CALL(CuMemcpyAtoD, cuMemcpyAtoD, "AtoD", kBytes, 1,
         return cuMemcpyAtoD(Address(room.a), Array(room.line), 0, kBytes);)
XPU_CALL(CuMemcpyHtoA, cuMemcpyHtoA, "HtoA", kBytes, 1,
         return cuMemcpyHtoA(Array(room.line), 0, room.pageable, kBytes);)
XPU_CALL(CuMemcpyAtoH, cuMemcpyAtoH, "AtoH", kBytes, 1,
         return cuMemcpyAtoH(room.pageable, Array(room.line), 0, kBytes);)
XPU_CALL(CuMemcpyAtoA, cuMemcpyAtoA, "AtoA", kBytes, 1,
         return cuMemcpyAtoA(Array(room.other_line), 0, Array(room.line), 0, kBytes);)
XPU_CALL(CuMemcpyHtoAAsync, cuMemcpyHtoAAsync, "HtoA", kBytes, 1,
         return cuMemcpyHtoAAsync(Array(room.line), 0, room.pinned, kBytes, room.stream);)
XPU_CALL(CuMemcpyAtoHAsync, cuMemcpyAtoHAsync, "AtoH", kBytes, 1,
         return cuMemcpyAtoHAsync(room.pinned, Array(room.line), 0, kBytes, room.stream);)

// ---- sets --------------------------------------------------------------------------------------
XPU_CALL(CudaMemset, cudaMemset, "set", kBytes, 1, return cudaMemset(room.a, 1, kBytes);)
XPU_CALL(CudaMemset2D, cudaMemset2D, "set", kBytes, 1,
         return cudaMemset2D(room.a, kWidth, 2, kWidth, kHeight);)
XPU_CALL(CudaMemset3D, cudaMemset3D, "set", kBytes, 1,
         return cudaMemset3D(Pitched(room.a), 3, Extent());)
XPU_CALL(CudaMemsetAsync, cudaMemsetAsync, "set", kBytes, 1,
         return cudaMemsetAsync(room.a, 4, kBytes, room.stream);)
XPU_CALL(CudaMemset2DAsync, cudaMemset2DAsync, "set", kBytes, 1,
         return cudaMemset2DAsync(room.a, kWidth, 5, kWidth, kHeight, room.stream);)
XPU_CALL(CudaMemset3DAsync, cudaMemset3DAsync, "set", kBytes, 1,
         return cudaMemset3DAsync(Pitched(room.a), 6, Extent(), room.stream);)
XPU_CALL(CuMemsetD8, cuMemsetD8, "set", kBytes, 1, return cuMemsetD8(Address(room.a), 7, kBytes);)
XPU_CALL(CuMemsetD16, cuMemsetD16, "set", kBytes, 1,
         return cuMemsetD16(Address(room.a), 8, kBytes / 2);)
XPU_CALL(CuMemsetD32, cuMemsetD32, "set", kBytes, 1,
         return cuMemsetD32(Address(room.a), 9, kBytes / 4);)
XPU_CALL(CuMemsetD2D8, cuMemsetD2D8, "set", kBytes, 1,
         return cuMemsetD2D8(Address(room.a), kWidth, 10, kWidth, kHeight);)
XPU_CALL(CuMemsetD2D16, cuMemsetD2D16, "set", kBytes, 1,
         return cuMemsetD2D16(Address(room.a), kWidth, 11, kWidth / 2, kHeight);)
XPU_CALL(CuMemsetD2D32, cuMemsetD2D32, "set", kBytes, 1,
         return cuMemsetD2D32(Address(room.a), kWidth, 12, kWidth / 4, kHeight);)
XPU_CALL(CuMemsetD8Async, cuMemsetD8Async, "set", kBytes, 1,
         return cuMemsetD8Async(Address(room.a), 13, kBytes, room.stream);)
XPU_CALL(CuMemsetD16Async, cuMemsetD16Async, "set", kBytes, 1,
         return cuMemsetD16Async(Address(room.a), 14, kBytes / 2, room.stream);)
XPU_CALL(CuMemsetD32Async, cuMemsetD32Async, "set", kBytes, 1,
         return cuMemsetD32Async(Address(room.a), 15, kBytes / 4, room.stream);)
XPU_CALL(CuMemsetD2D8Async, cuMemsetD2D8Async, "set", kBytes, 1,
         return cuMemsetD2D8Async(Address(room.a), kWidth, 16, kWidth, kHeight, room.stream);)
XPU_CALL(CuMemsetD2D16Async, cuMemsetD2D16Async, "set", kBytes, 1,
         return cuMemsetD2D16Async(Address(room.a), kWidth, 17, kWidth / 2, kHeight, room.stream);)
XPU_CALL(CuMemsetD2D32Async, cuMemsetD2D32Async, "set", kBytes, 1,
         return cuMemsetD2D32Async(Address(room.a), kWidth, 18, kWidth / 4, kHeight, room.stream);)

// ---- synchronisation ---------------------------------------------------------------------------
XPU_CALL(CudaDeviceSynchronize, cudaDeviceSynchronize, "device sync", 0, 1,
         return cudaDeviceSynchronize();)
XPU_CALL(CudaStreamSynchronize, cudaStreamSynchronize, "stream sync", 0, 1,
         return cudaStreamSynchronize(room.stream);)
XPU_CALL(CudaEventSynchronize, cudaEventSynchronize, "event sync", 0, 1,
         return cudaEventSynchronize(room.event);)
XPU_CALL(CudaStreamWaitEvent, cudaStreamWaitEvent, "stream wait event", 0, 1,
         return cudaStreamWaitEvent(room.stream, room.event, 0);)
XPU_CALL(CuCtxSynchronize, cuCtxSynchronize, "device sync", 0, 1, return cuCtxSynchronize();)
XPU_CALL(CuStreamSynchronize, cuStreamSynchronize, "stream sync", 0, 1,
         return cuStreamSynchronize(room.stream);)
XPU_CALL(CuEventSynchronize, cuEventSynchronize, "event sync", 0, 1,
         return cuEventSynchronize(room.event);)
XPU_CALL(CuStreamWaitEvent, cuStreamWaitEvent, "stream wait event", 0, 1,
         return cuStreamWaitEvent(room.stream, room.event, 0);)

// ---- memory ------------------------------------------------------------------------------------
XPU_CALL(CudaMemPrefetchAsync, cudaMemPrefetchAsync, "prefetch", kBytes, 0,
         return cudaMemPrefetchAsync(room.managed, kBytes, {cudaMemLocationTypeDevice, 0}, 0,
                                     room.stream);)
XPU_CALL(CuMemPrefetchAsync, cuMemPrefetchAsync, "prefetch", kBytes, 0,
         return cuMemPrefetchAsync(Address(room.managed), kBytes, HostLocation(), 0, room.stream);)
XPU_CALL(CudaMalloc, cudaMalloc, "alloc", kBytes, 0, return cudaMalloc(room.Push(), kBytes);)
XPU_CALL(CudaFree, cudaFree, "free", kBytes, 0, return cudaFree(room.Pop());)
XPU_CALL(CudaMallocAsync, cudaMallocAsync, "alloc", kBytes, 0,
         return cudaMallocAsync(room.Push(), kBytes, room.stream);)
XPU_CALL(CudaFreeAsync, cudaFreeAsync, "free", kBytes, 0,
         return cudaFreeAsync(room.Pop(), room.stream);)
XPU_CALL(CuMemAlloc, cuMemAlloc, "alloc", kBytes, 0,
         return cuMemAlloc(reinterpret_cast<CUdeviceptr*>(room.Push()), kBytes);)
XPU_CALL(CuMemFree, cuMemFree, "free", kBytes, 0, return cuMemFree(Address(room.Pop()));)
XPU_CALL(CuMemAllocAsync, cuMemAllocAsync, "alloc", kBytes, 0,
         return cuMemAllocAsync(reinterpret_cast<CUdeviceptr*>(room.Push()), kBytes, room.stream);)
XPU_CALL(CuMemFreeAsync, cuMemFreeAsync, "free", kBytes, 0,
         return cuMemFreeAsync(Address(room.Pop()), room.stream);)
