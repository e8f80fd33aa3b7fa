// Launches, then ends in one of the ways programs end; the line of JSON comes before the end.
//   --launches N --how=return|exit|_exit|abort|segfault|sigkill
//   --sync --linger-ms M (sleep before the end)
// Without --sync kernels may still be running at the end.
#include <csignal>

#include "gpu.h"

__global__ void exit_styles_kernel(unsigned long long spin_ns) {
#ifdef __CUDACC__
  gpu::SpinFor(spin_ns);
#endif
}

XPU_FRAME void LaunchBeforeExit(uint64_t launches, workload::Tally* tally) {
  constexpr unsigned long long kSpinNs = 5'000;
  for (uint64_t i = 0; i < launches; ++i) {
    XPU_LAUNCH(tally, "main;LaunchBeforeExit", exit_styles_kernel, dim3(1), dim3(1), nullptr,
               kSpinNs);
  }
}

void EndBy(const std::string& how) {
  if (how == "exit") std::exit(0);
  if (how == "_exit") _exit(0);
  if (how == "abort") std::abort();
  if (how == "segfault") raise(SIGSEGV);
  if (how == "sigkill") kill(getpid(), SIGKILL);
}

int main(int argc, char** argv) {
  const std::string how = workload::OptionString(argc, argv, "--how", "return");
  workload::Tally tally;
  LaunchBeforeExit(workload::OptionNumber(argc, argv, "--launches", 100), &tally);
  if (workload::Flag(argc, argv, "--sync")) {
    XPU_CUDA(cudaDeviceSynchronize());
    tally.CountSync();
  }
  usleep(static_cast<useconds_t>(workload::OptionNumber(argc, argv, "--linger-ms", 0) * 1000));
  workload::JsonLine json;
  json.Add("workload", "exit_styles");
  json.Add("how", how);
  json.Add("pid", static_cast<uint64_t>(getpid()));
  tally.Write(&json);
  workload::PrintLine(json.Finish());
  EndBy(how);
  return 0;
}
