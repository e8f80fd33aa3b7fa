// Launches before, in and after ranges of the program's own, on several threads, and how many
// there were of each: what a recording of nothing but those ranges must have.
// `--by profiler|push|start` opens them, `--rounds N` of them, `--threads N`, `--launches N` each.
#include <barrier>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>

#include "gpu.h"

#define XPU_PHASE_KERNEL(name) \
  __global__ void name(int* value) { (void)value; }
XPU_PHASE_KERNEL(outside_kernel)
XPU_PHASE_KERNEL(inside_kernel)
XPU_PHASE_KERNEL(first_inside_kernel)
XPU_PHASE_KERNEL(first_outside_kernel)

struct Options {
  std::string_view by = "profiler";
  uint64_t rounds = 3;
  uint64_t threads = 3;
  uint64_t launches = 50;
};

class Switch {
 public:
  explicit Switch(std::string_view by) : by_(by), domain_(nvtxDomainCreateA("app")) {}

  void Open() {
    if (by_ == "profiler") XPU_CUDA(cudaProfilerStart());
    if (by_ == "push") nvtxDomainRangePushEx(domain_, Text("step"));
    if (by_ == "start") range_ = nvtxDomainRangeStartEx(domain_, Text("step"));
  }
  void Close() {
    if (by_ == "profiler") XPU_CUDA(cudaProfilerStop());
    if (by_ == "push") nvtxDomainRangePop(domain_);
    if (by_ == "start") nvtxDomainRangeEnd(domain_, range_);
  }

 private:
  const nvtxEventAttributes_t* Text(const char* text) {
    attributes_ = {};
    attributes_.version = NVTX_VERSION;
    attributes_.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes_.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes_.message.ascii = text;
    return &attributes_;
  }

  const std::string_view by_;
  nvtxDomainHandle_t domain_;
  nvtxEventAttributes_t attributes_{};
  nvtxRangeId_t range_ = 0;
};

template <typename Kernel>
XPU_FRAME void Launch(Kernel kernel, uint64_t count) {
  int* value = nullptr;
  for (uint64_t i = 0; i < count; ++i) {
    gpu::PackedArgs arguments(kernel, value);
    XPU_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1),
                              arguments.pointers(), 0, nullptr));
  }
}

// All threads launch what belongs into a phase, then all go on to the next.
XPU_FRAME void Work(const Options& options, std::barrier<>& phase) {
  for (uint64_t round = 0; round < options.rounds; ++round) {
    Launch(outside_kernel, options.launches);
    phase.arrive_and_wait();
    phase.arrive_and_wait();  // the range is open
    Launch(inside_kernel, options.launches);
    phase.arrive_and_wait();
    phase.arrive_and_wait();  // it is closed
  }
  Launch(outside_kernel, options.launches);
}

XPU_FRAME void Direct(const Options& options, Switch& range, std::barrier<>& phase) {
  for (uint64_t round = 0; round < options.rounds; ++round) {
    phase.arrive_and_wait();
    range.Open();
    Launch(first_inside_kernel, 1);
    phase.arrive_and_wait();
    phase.arrive_and_wait();
    range.Close();
    Launch(first_outside_kernel, 1);
    phase.arrive_and_wait();
  }
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view word = argv[i];
    if (word == "--by") options.by = argv[i + 1];
    if (word == "--rounds") options.rounds = std::strtoull(argv[i + 1], nullptr, 10);
    if (word == "--threads") options.threads = std::strtoull(argv[i + 1], nullptr, 10);
    if (word == "--launches") options.launches = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return options;
}

int main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  XPU_CUDA(cudaSetDevice(0));
  Switch range(options.by);
  std::barrier<> phase(static_cast<std::ptrdiff_t>(options.threads) + 1);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < options.threads; ++i) {
    threads.emplace_back([&] { Work(options, phase); });
  }
  Direct(options, range, phase);
  for (std::thread& thread : threads) thread.join();
  XPU_CUDA(cudaDeviceSynchronize());

  const uint64_t in_threads = options.threads * options.launches;
  workload::JsonLine line;
  line.Add("workload", "capture_ranges");
  line.BeginObject("kernels");
  line.Add("inside_kernel", in_threads * options.rounds);
  line.Add("first_inside_kernel", options.rounds);
  line.Add("outside_kernel", in_threads * (options.rounds + 1));
  line.Add("first_outside_kernel", options.rounds);
  line.EndObject();
  workload::PrintLine(line.Finish());
  return 0;
}
