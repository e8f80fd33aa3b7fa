// Every API function through which a program launches something, each called N times by a function
// of its own that launches a kernel of its own; see launch_entry_points.h. <<<>>> only where nvcc
// compiled.
//   --launches N (of each function)
// A function that this driver does not have any more is listed with "launches" 0 and its error.
#define XPU_ENTRY_POINT(name) name
#include "launch_entry_points.h"

EntryPoints PlainEntryPoints() {
  return {kEntryPoints, sizeof(kEntryPoints) / sizeof(kEntryPoints[0])};
}

struct Result {
  const EntryPoint* entry_point;
  bool per_thread;
  uint64_t launches;
  int error;
};

XPU_FRAME Result RunEntryPoint(const EntryPoint& entry_point, bool per_thread, uint64_t launches,
                               cudaStream_t stream) {
  Result result{&entry_point, per_thread, 0, 0};
  while (result.launches < launches && result.error == 0) {
    result.error = entry_point.run(stream);
    if (result.error == 0) ++result.launches;
  }
  XPU_CUDA(cudaDeviceSynchronize());
  return result;
}

void WriteResult(const Result& result, workload::JsonLine* json) {
  const std::string path = std::string("main;RunEntryPoint;") + result.entry_point->function;
  json->BeginObject("");
  json->Add("function", result.entry_point->function);
  json->Add("path", path);
  json->Add("entry", result.entry_point->entry);
  json->Add("api", result.entry_point->api);
  json->AddBool("per_thread", result.per_thread);
  if (result.entry_point->kernel != nullptr) json->Add("kernel", result.entry_point->kernel);
  json->AddBool("record", result.entry_point->kernel != nullptr);
  json->Add("launches", result.launches);
  if (result.error != 0) json->Add("error", static_cast<uint64_t>(result.error));
  json->EndObject();
}

int main(int argc, char** argv) {
  const uint64_t launches = workload::OptionNumber(argc, argv, "--launches", 10);
  cudaStream_t stream = nullptr;
  XPU_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  workload::JsonLine json;
  json.Add("workload", "launch_entry_points");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.BeginArray("entry_points");
  workload::Tally tally;
  for (const bool per_thread : {false, true}) {
    const EntryPoints entry_points = per_thread ? PerThreadEntryPoints() : PlainEntryPoints();
    for (size_t i = 0; i < entry_points.count; ++i) {
      // The null stream of the second file is the thread's own.
      const Result result = RunEntryPoint(entry_points.entry_points[i], per_thread, launches,
                                          per_thread ? nullptr : stream);
      tally.CountSync();
      WriteResult(result, &json);
      if (result.entry_point->kernel == nullptr || result.launches == 0) continue;
      const std::string path = std::string("main;RunEntryPoint;") + result.entry_point->function;
      tally.CountLaunch(path.c_str(), result.entry_point->kernel, result.launches);
    }
  }
  json.EndArray();
  tally.Write(&json);
  XPU_CUDA(cudaStreamDestroy(stream));
  workload::PrintLine(json.Finish());
  return 0;
}
