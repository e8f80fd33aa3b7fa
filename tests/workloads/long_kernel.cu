// One kernel that runs for long, with launches queued after it on its stream and others that
// finish at once on a second stream: what a profiler gets to see while something is unfinished.
//   --long-ms M --launches N (on each stream, spread over the time of the long kernel)
#include "gpu.h"

__global__ void long_kernel(unsigned long long spin_ns) {
#ifdef __CUDACC__
  gpu::SpinFor(spin_ns);
#endif
}

__global__ void queued_kernel() {}

__global__ void side_kernel() {}

XPU_FRAME void LaunchLong(cudaStream_t stream, uint64_t milliseconds, workload::Tally* tally) {
  XPU_LAUNCH(tally, "main;LaunchLong", long_kernel, dim3(1), dim3(1), stream,
             milliseconds * 1'000'000);
}

XPU_FRAME void LaunchQueued(cudaStream_t stream, workload::Tally* tally) {
  XPU_LAUNCH(tally, "main;LaunchQueued", queued_kernel, dim3(1), dim3(1), stream);
}

XPU_FRAME void LaunchSide(cudaStream_t stream, workload::Tally* tally) {
  XPU_LAUNCH(tally, "main;LaunchSide", side_kernel, dim3(1), dim3(1), stream);
}

int main(int argc, char** argv) {
  const uint64_t long_ms = workload::OptionNumber(argc, argv, "--long-ms", 2000);
  const uint64_t launches = workload::OptionNumber(argc, argv, "--launches", 50);
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) {
    XPU_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  workload::Tally tally;
  // Loading a kernel may wait for the running ones, so all are loaded before the long one starts.
  LaunchQueued(streams[0], &tally);
  LaunchSide(streams[1], &tally);
  LaunchLong(streams[0], 0, &tally);
  for (cudaStream_t stream : streams) XPU_CUDA(cudaStreamSynchronize(stream));

  LaunchLong(streams[0], long_ms, &tally);
  for (uint64_t i = 0; i < launches; ++i) {
    LaunchQueued(streams[0], &tally);
    LaunchSide(streams[1], &tally);
    usleep(static_cast<useconds_t>(long_ms * 800 / launches));
  }
  for (cudaStream_t stream : streams) {
    XPU_CUDA(cudaStreamSynchronize(stream));
    XPU_CUDA(cudaStreamDestroy(stream));
  }
  workload::JsonLine json;
  json.Add("workload", "long_kernel");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.Add("long_ns", long_ms * 1'000'000);
  tally.Write(&json);
  workload::PrintLine(json.Finish());
  return 0;
}
