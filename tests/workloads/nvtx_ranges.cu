// Ranges of every sort that NVTX has, with kernels launched inside them, and how many of what there
// must be. `--no-gpu`: ranges only. `--rounds N`, `--threads N`.
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <nvtx3/nvToolsExt.h>

#include "gpu.h"

__global__ void forward_kernel(int* value) {
#ifdef __CUDACC__
  *value += 1;
#endif
}

__global__ void backward_kernel(int* value) {
#ifdef __CUDACC__
  *value -= 1;
#endif
}

// What the program did, by "domain:text" of the range.
struct Counts {
  std::map<std::string, uint64_t> pushed;
  std::map<std::string, uint64_t> started;
  std::map<std::string, uint64_t> kernels;  // "range/kernel"
  uint64_t marks = 0;

  void Add(const Counts& more) {
    for (const auto& [name, count] : more.pushed) pushed[name] += count;
    for (const auto& [name, count] : more.started) started[name] += count;
    for (const auto& [name, count] : more.kernels) kernels[name] += count;
    marks += more.marks;
  }
};

struct Options {
  uint64_t rounds = 20;
  uint64_t threads = 2;
  bool use_gpu = true;
};

nvtxEventAttributes_t Attributes() {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return attributes;
}

class Worker {
 public:
  Worker(const Options& options, nvtxDomainHandle_t domain, nvtxStringHandle_t registered)
      : options_(options), domain_(domain), registered_(registered) {}

  const Counts& counts() const { return counts_; }

  XPU_FRAME void Run() {
    int* value = nullptr;
    if (options_.use_gpu) {
      XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&value), sizeof(int)));
      XPU_CUDA(cudaMemset(value, 0, sizeof(int)));
    }
    for (uint64_t round = 0; round < options_.rounds; ++round) Round(round, value);
    if (options_.use_gpu) XPU_CUDA(cudaDeviceSynchronize());
  }

 private:
  XPU_FRAME void Round(uint64_t round, int* value) {
    Push(":round", nvtxRangePushA("round"));
    nvtxEventAttributes_t forward = Attributes();
    forward.category = 7;
    forward.colorType = NVTX_COLOR_ARGB;
    forward.color = 0xff00ff00;
    forward.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    forward.payload.ullValue = round;
    forward.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    forward.message.registered = registered_;
    Push("model:forward", nvtxDomainRangePushEx(domain_, &forward));
    Launch("forward_kernel", forward_kernel, value);
    Launch("forward_kernel", forward_kernel, value);
    Pop(nvtxDomainRangePop(domain_));
    Push(":\u00fcber", nvtxRangePushW(L"\u00fcber"));
    Launch("backward_kernel", backward_kernel, value);
    Pop(nvtxRangePop());
    nvtxMarkA("round is over");
    ++counts_.marks;
    Pop(nvtxRangePop());
  }

  void Push(const char* name, int level) {
    ++counts_.pushed[name];
    open_.push_back({name, level});
  }
  void Pop(int /*level*/) { open_.pop_back(); }

  template <typename Kernel>
  XPU_FRAME void Launch(const char* name, Kernel kernel, int* value) {
    for (const Open& range : open_) ++counts_.kernels[std::string(range.name) + "/" + name];
    if (!options_.use_gpu) return;
    gpu::PackedArgs arguments(kernel, value);
    XPU_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1),
                              arguments.pointers(), 0, nullptr));
  }

  struct Open {
    const char* name;
    int level;
  };
  const Options& options_;
  const nvtxDomainHandle_t domain_;
  const nvtxStringHandle_t registered_;
  std::vector<Open> open_;
  Counts counts_;
};

// Begun here, ended by another thread.
void StartAndEndElsewhere(Counts* counts) {
  nvtxRangeId_t outer = nvtxRangeStartA("outer");
  nvtxRangeId_t crossing = nvtxRangeStartA("crossing");
  std::thread([outer] { nvtxRangeEnd(outer); }).join();
  nvtxRangeEnd(crossing);
  ++counts->started[":outer"];
  ++counts->started[":crossing"];
}

void AddCounts(workload::JsonLine* line, const char* key,
               const std::map<std::string, uint64_t>& counts) {
  line->BeginObject(key);
  for (const auto& [name, count] : counts) line->Add(name, count);
  line->EndObject();
}

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--no-gpu") {
      options.use_gpu = false;
    } else if (word == "--rounds" && i + 1 < argc) {
      options.rounds = std::strtoull(argv[++i], nullptr, 10);
    } else if (word == "--threads" && i + 1 < argc) {
      options.threads = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::fprintf(stderr, "usage: %s [--no-gpu] [--rounds N] [--threads N]\n", argv[0]);
      std::exit(2);
    }
  }
  return options;
}

int main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  Counts counts;
  nvtxDomainHandle_t domain = nvtxDomainCreateA("model");
  nvtxDomainNameCategoryA(domain, 7, "layers");
  std::string text = "forward";
  nvtxStringHandle_t registered = nvtxDomainRegisterStringA(domain, text.c_str());
  text = "overwritten";  // what was registered is NVTX's
  std::vector<Worker> workers(options.threads, Worker(options, domain, registered));
  StartAndEndElsewhere(&counts);
  std::vector<std::thread> threads;
  for (Worker& worker : workers) threads.emplace_back([&worker] { worker.Run(); });
  for (std::thread& thread : threads) thread.join();
  for (const Worker& worker : workers) counts.Add(worker.counts());
  nvtxRangePushA("never ended");
  ++counts.pushed[":never ended"];

  workload::JsonLine line;
  line.Add("workload", "nvtx_ranges");
  AddCounts(&line, "pushed", counts.pushed);
  AddCounts(&line, "started", counts.started);
  AddCounts(&line, "kernels", counts.kernels);
  line.Add("marks", counts.marks);
  workload::PrintLine(line.Finish());
  return 0;
}
