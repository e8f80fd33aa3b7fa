// Every variant of memcpy, memset, synchronization and allocation of runtime and driver API, each C
// times from a function of its own; see copies_calls.h for the list.
//   --calls C --parts=plain|per-thread|all --functions=NAME,... (these alone)
//   --warmup W (calls of each function that come before the C and are not timed)
// After the calls of each function, and after its warm-up, one cudaDeviceSynchronize from
// main;RunCalls. A function that
// this driver refuses is in the list with what it managed and its error.
#define XPU_COPY(name) name
#include "copies.h"

CopyCalls PlainCopyCalls() { return {kCopyCalls, sizeof(kCopyCalls) / sizeof(kCopyCalls[0])}; }

#ifdef __CUDACC__
__device__
#endif
    unsigned char g_symbol[kBytes];

struct Result {
  uint64_t calls = 0;
  uint64_t ns = 0;
  int error = 0;
};

XPU_FRAME Result RunCalls(const CopyCall& call, uint64_t count, Resources* resources) {
  Result result;
  const uint64_t begin = workload::ClockNs(CLOCK_MONOTONIC);
  while (result.calls < count && result.error == 0) {
    result.error = call.run(*resources);
    if (result.error == 0) ++result.calls;
  }
  XPU_CUDA(cudaDeviceSynchronize());
  result.ns = workload::ClockNs(CLOCK_MONOTONIC) - begin;
  return result;
}

cudaArray_t NewArray(size_t width, size_t height) {
  const cudaChannelFormatDesc bytes = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
  cudaArray_t array = nullptr;
  XPU_CUDA(cudaMallocArray(&array, &bytes, width, height, 0));
  return array;
}

Resources CreateResources() {
  Resources resources;
  for (void** pointer : {&resources.a, &resources.b, &resources.c})
    XPU_CUDA(cudaMalloc(pointer, kBytes));
  XPU_CUDA(cudaMallocHost(&resources.pinned, kBytes));
  XPU_CUDA(cudaMallocManaged(&resources.managed, kBytes, cudaMemAttachGlobal));
  resources.pageable = std::calloc(1, kBytes);
  resources.symbol = g_symbol;
  resources.array = NewArray(kWidth, kHeight);
  resources.other_array = NewArray(kWidth, kHeight);
  resources.line = NewArray(kBytes, 0);
  resources.other_line = NewArray(kBytes, 0);
  cuCtxGetCurrent(&resources.context);
  XPU_CUDA(cudaStreamCreateWithFlags(&resources.stream, cudaStreamNonBlocking));
  XPU_CUDA(cudaEventCreate(&resources.event));
  XPU_CUDA(cudaEventRecord(resources.event, resources.stream));
  return resources;
}

void Clear(const Resources& resources) {
  for (void* pointer : {resources.a, resources.b, resources.c, resources.managed})
    XPU_CUDA(cudaFree(pointer));
  XPU_CUDA(cudaFreeHost(resources.pinned));
  for (cudaArray_t array :
       {resources.array, resources.other_array, resources.line, resources.other_line}) {
    XPU_CUDA(cudaFreeArray(array));
  }
  XPU_CUDA(cudaEventDestroy(resources.event));
  XPU_CUDA(cudaStreamDestroy(resources.stream));
  std::free(resources.pageable);
}

void Write(const CopyCall& call, const Result& result, bool per_thread, workload::JsonLine* json) {
  json->BeginObject("");
  json->Add("function", call.function);
  json->Add("path", std::string("main;RunCalls;") + call.function);
  json->Add("api", call.api);
  json->AddBool("per_thread", per_thread);
  json->Add("kind", call.kind);
  json->Add("calls", result.calls);
  json->Add("bytes_per_call", call.bytes);
  json->Add("records_per_call", static_cast<uint64_t>(call.records));
  if (result.error != 0) json->Add("error", static_cast<uint64_t>(result.error));
  json->EndObject();
}

// True where nothing was chosen.
bool IsChosen(const std::string& chosen, const char* function) {
  return chosen.empty() ||
         ("," + chosen + ",").find(std::string(",") + function + ",") != std::string::npos;
}

int main(int argc, char** argv) {
  const uint64_t calls = workload::OptionNumber(argc, argv, "--calls", 3);
  const uint64_t warmup = workload::OptionNumber(argc, argv, "--warmup", 0);
  const std::string chosen = workload::OptionString(argc, argv, "--functions", "");
  const std::string parts = workload::OptionString(argc, argv, "--parts", "all");
  Resources resources = CreateResources();
  workload::JsonLine json;
  json.Add("workload", "copies");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.BeginArray("calls");
  uint64_t syncs = 0;
  uint64_t timed_calls = 0;
  uint64_t timed_ns = 0;
  for (const bool per_thread : {false, true}) {
    if (parts == (per_thread ? "plain" : "per-thread")) continue;
    const CopyCalls list = per_thread ? PerThreadCopyCalls() : PlainCopyCalls();
    for (size_t i = 0; i < list.count; ++i) {
      if (!IsChosen(chosen, list.calls[i].function)) continue;
      Result before;
      if (warmup > 0) {
        before = RunCalls(list.calls[i], warmup, &resources);
        ++syncs;
      }
      Result result = RunCalls(list.calls[i], calls, &resources);
      ++syncs;
      timed_calls += result.calls;
      timed_ns += result.ns;
      result.calls += before.calls;
      Write(list.calls[i], result, per_thread, &json);
    }
  }
  json.EndArray();
  json.Add("device_syncs_of_main", syncs);
  workload::AddTiming("copy", timed_calls, timed_ns, &json);
  Clear(resources);
  workload::PrintLine(json.Finish());
  return 0;
}
