// Every door through which a program launches something, each N times from a function of its own
// that launches a kernel of its own; see launch_doors.h. <<<>>> only where nvcc compiled.
//   --launches N (of each door)
// A door that this driver has no more is in the list with "launches" 0 and its error.
#define XPU_DOOR(name) name
#include "launch_doors.h"

Doors PlainDoors() { return {kDoors, sizeof(kDoors) / sizeof(kDoors[0])}; }

struct Result {
  const Door* door;
  bool per_thread;
  uint64_t launches;
  int error;
};

XPU_FRAME Result RunDoor(const Door& door, bool per_thread, uint64_t launches,
                         cudaStream_t stream) {
  Result result{&door, per_thread, 0, 0};
  while (result.launches < launches && result.error == 0) {
    result.error = door.run(stream);
    if (result.error == 0) ++result.launches;
  }
  XPU_CUDA(cudaDeviceSynchronize());
  return result;
}

void WriteResult(const Result& result, workload::JsonLine* json) {
  const std::string path = std::string("main;RunDoor;") + result.door->function;
  json->BeginObject("");
  json->Add("function", result.door->function);
  json->Add("path", path);
  json->Add("entry", result.door->entry);
  json->Add("api", result.door->api);
  json->AddBool("per_thread", result.per_thread);
  if (result.door->kernel != nullptr) json->Add("kernel", result.door->kernel);
  json->AddBool("record", result.door->kernel != nullptr);
  json->Add("launches", result.launches);
  if (result.error != 0) json->Add("error", static_cast<uint64_t>(result.error));
  json->EndObject();
}

int main(int argc, char** argv) {
  const uint64_t launches = workload::OptionNumber(argc, argv, "--launches", 10);
  cudaStream_t stream = nullptr;
  XPU_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  workload::JsonLine json;
  json.Add("workload", "launch_doors");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.BeginArray("doors");
  workload::Tally tally;
  for (const bool per_thread : {false, true}) {
    const Doors doors = per_thread ? PerThreadDoors() : PlainDoors();
    for (size_t i = 0; i < doors.count; ++i) {
      // The null stream of the second file is the thread's own.
      const Result result =
          RunDoor(doors.doors[i], per_thread, launches, per_thread ? nullptr : stream);
      tally.CountSync();
      WriteResult(result, &json);
      if (result.door->kernel == nullptr || result.launches == 0) continue;
      const std::string path = std::string("main;RunDoor;") + result.door->function;
      tally.CountLaunch(path.c_str(), result.door->kernel, result.launches);
    }
  }
  json.EndArray();
  tally.Write(&json);
  XPU_CUDA(cudaStreamDestroy(stream));
  workload::PrintLine(json.Finish());
  return 0;
}
