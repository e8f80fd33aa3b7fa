// Two GPUs: kernels with names of their own on each, copies between them in both directions.
//   --launches N (on each device) --copies C (of each kind and direction) --bytes B
//   --peer-access (each device may reach the other's memory: copies go straight)
//   --processes 2 (forked before CUDA: each uses one device and launches, nobody copies)
// With one device it says so ("devices": 1), uses that one only and copies nothing.
#include <vector>

#include <cuda.h>
#include <sys/wait.h>

#include "gpu.h"

__global__ void device_zero_kernel(unsigned* counter) {
#ifdef __CUDACC__
  *counter += 1;
#endif
}

__global__ void device_one_kernel(unsigned* counter) {
#ifdef __CUDACC__
  *counter += 1;
#endif
}

struct Settings {
  uint64_t launches;
  uint64_t copies;
  size_t bytes;
  bool peer_access;
};

struct Gpu {
  int ordinal = 0;
  std::string name;
  std::string uuid;  // 32 hexadecimal digits
  unsigned* data = nullptr;
  cudaStream_t stream = nullptr;
};

struct PeerCopies {
  const char* api;
  const char* path;
  int from;
  int to;
  uint64_t count;
};

struct Actor {
  Settings settings{};
  std::vector<Gpu> gpus;
  std::vector<PeerCopies> peer_copies;
  workload::Tally tally;
};

XPU_FRAME void LaunchOnZero(Actor* actor, const Gpu& gpu) {
  XPU_LAUNCH(&actor->tally, "RunDevices;LaunchOnZero", device_zero_kernel, dim3(1), dim3(1),
             gpu.stream, gpu.data);
}

XPU_FRAME void LaunchOnOne(Actor* actor, const Gpu& gpu) {
  XPU_LAUNCH(&actor->tally, "RunDevices;LaunchOnOne", device_one_kernel, dim3(1), dim3(1),
             gpu.stream, gpu.data);
}

XPU_FRAME void CopyPeer(const Settings& settings, const Gpu& from, const Gpu& to) {
  XPU_CUDA(cudaMemcpyPeer(to.data, to.ordinal, from.data, from.ordinal, settings.bytes));
}

XPU_FRAME void CopyPeerAsync(const Settings& settings, const Gpu& from, const Gpu& to) {
  XPU_CUDA(cudaMemcpyPeerAsync(to.data, to.ordinal, from.data, from.ordinal, settings.bytes,
                               from.stream));
}

XPU_FRAME void CopyDefaultAsync(const Settings& settings, const Gpu& from, const Gpu& to) {
  XPU_CUDA(cudaMemcpyAsync(to.data, from.data, settings.bytes, cudaMemcpyDefault, from.stream));
}

void Use(const Gpu& gpu) { XPU_CUDA(cudaSetDevice(gpu.ordinal)); }

Gpu OpenGpu(int ordinal, size_t bytes) {
  Gpu gpu;
  gpu.ordinal = ordinal;
  Use(gpu);
  XPU_CUDA(cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking));
  XPU_CUDA(cudaMalloc(reinterpret_cast<void**>(&gpu.data), bytes));
  char name[256] = "";
  CUuuid uuid{};
  cuDeviceGetName(name, sizeof(name), ordinal);
  cuDeviceGetUuid(&uuid, ordinal);
  gpu.name = name;
  for (const char byte : uuid.bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(byte));
    gpu.uuid += digits;
  }
  return gpu;
}

void CloseGpu(const Gpu& gpu) {
  Use(gpu);
  XPU_CUDA(cudaFree(gpu.data));
  XPU_CUDA(cudaStreamDestroy(gpu.stream));
}

// A copy may be put into the stream of either device: here the source's.
void CopyBetween(Actor* actor, const Gpu& from, const Gpu& to) {
  Use(from);
  const struct {
    const char* api;
    const char* path;
    void (*copy)(const Settings&, const Gpu&, const Gpu&);
  } kinds[] = {{"cudaMemcpyPeer", "CopyPeer", CopyPeer},
               {"cudaMemcpyPeerAsync", "CopyPeerAsync", CopyPeerAsync},
               {"cudaMemcpyAsync", "CopyDefaultAsync", CopyDefaultAsync}};
  for (const auto& kind : kinds) {
    for (uint64_t i = 0; i < actor->settings.copies; ++i) kind.copy(actor->settings, from, to);
    XPU_CUDA(cudaStreamSynchronize(from.stream));
    actor->tally.CountSync();
    actor->peer_copies.push_back(
        {kind.api, kind.path, from.ordinal, to.ordinal, actor->settings.copies});
  }
}

void AllowPeerAccess(const Gpu& gpu, const Gpu& peer) {
  Use(gpu);
  XPU_CUDA(cudaDeviceEnablePeerAccess(peer.ordinal, 0));
}

XPU_FRAME void RunDevices(Actor* actor, int first, int last) {
  for (int i = first; i <= last; ++i) actor->gpus.push_back(OpenGpu(i, actor->settings.bytes));
  const std::vector<Gpu>& gpus = actor->gpus;
  if (actor->settings.peer_access && gpus.size() == 2) {
    AllowPeerAccess(gpus[0], gpus[1]);
    AllowPeerAccess(gpus[1], gpus[0]);
  }
  for (uint64_t i = 0; i < actor->settings.launches; ++i) {
    for (const Gpu& gpu : gpus) {
      Use(gpu);
      if (gpu.ordinal == 0) {
        LaunchOnZero(actor, gpu);
      } else {
        LaunchOnOne(actor, gpu);
      }
    }
  }
  for (const Gpu& gpu : gpus) {
    Use(gpu);
    XPU_CUDA(cudaStreamSynchronize(gpu.stream));
    actor->tally.CountSync();
  }
  if (gpus.size() == 2) {
    CopyBetween(actor, gpus[0], gpus[1]);
    CopyBetween(actor, gpus[1], gpus[0]);
  }
  for (const Gpu& gpu : gpus) CloseGpu(gpu);
}

std::string ActorJson(const Actor& actor) {
  workload::JsonLine json;
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.BeginArray("gpus");
  for (const Gpu& gpu : actor.gpus) {
    json.BeginObject("");
    json.Add("device", static_cast<uint64_t>(gpu.ordinal));
    json.Add("name", gpu.name);
    json.Add("uuid", gpu.uuid);
    json.Add("kernel", gpu.ordinal == 0 ? "device_zero_kernel" : "device_one_kernel");
    json.EndObject();
  }
  json.EndArray();
  json.BeginArray("peer_copies");
  for (const PeerCopies& copies : actor.peer_copies) {
    json.BeginObject("");
    json.Add("api", copies.api);
    json.Add("path", copies.path);
    json.Add("from", static_cast<uint64_t>(copies.from));
    json.Add("to", static_cast<uint64_t>(copies.to));
    json.Add("calls", copies.count);
    json.Add("bytes_per_call", actor.settings.bytes);
    json.EndObject();
  }
  json.EndArray();
  actor.tally.Write(&json);
  return json.Finish();
}

int DeviceCount() {
  int count = 0;
  XPU_CUDA(cudaGetDeviceCount(&count));
  return count;
}

// A child that has one device: the first byte says how many there are, the rest is JSON.
[[noreturn]] void RunChild(Actor* actor, int ordinal, int report_fd) {
  const int count = DeviceCount();
  if (ordinal < count) RunDevices(actor, ordinal, ordinal);
  const std::string report = std::string(1, static_cast<char>('0' + count)) + ActorJson(*actor);
  const ssize_t written = write(report_fd, report.data(), report.size());
  std::exit(written == static_cast<ssize_t>(report.size()) ? 0 : 1);
}

std::string ReadAll(int fd) {
  std::string text;
  char chunk[4096];
  ssize_t size = 0;
  while ((size = read(fd, chunk, sizeof(chunk))) > 0) text.append(chunk, static_cast<size_t>(size));
  return text;
}

// Returns the JSON of both; `*devices` as the children see it, 0 when a child failed.
std::string RunProcesses(Actor* actor, int* devices) {
  int report[2][2];
  pid_t children[2];
  for (int i = 0; i < 2; ++i) {
    if (pipe(report[i]) != 0) std::exit(1);
    children[i] = fork();
    if (children[i] < 0) std::exit(1);
    if (children[i] == 0) RunChild(actor, i, report[i][1]);
    close(report[i][1]);
  }
  std::string json;
  for (int i = 0; i < 2; ++i) {
    const std::string text = ReadAll(report[i][0]);
    int status = 0;
    waitpid(children[i], &status, 0);
    *devices = text.empty() || status != 0 ? 0 : text[0] - '0';
    if (*devices == 0) std::exit(1);
    json += (i == 0 ? "[" : ",") + text.substr(1);
  }
  return json + "]";
}

int main(int argc, char** argv) {
  Actor actor;
  actor.settings.launches = workload::OptionNumber(argc, argv, "--launches", 20);
  actor.settings.copies = workload::OptionNumber(argc, argv, "--copies", 3);
  actor.settings.bytes = workload::OptionNumber(argc, argv, "--bytes", 1 << 20);
  actor.settings.peer_access = workload::Flag(argc, argv, "--peer-access");
  int devices = 0;
  std::string actors;
  if (workload::OptionNumber(argc, argv, "--processes", 1) == 2) {
    actors = RunProcesses(&actor, &devices);
  } else {
    devices = DeviceCount();
    RunDevices(&actor, 0, devices >= 2 ? 1 : 0);
    actors = "[" + ActorJson(actor) + "]";
  }
  workload::JsonLine json;
  json.Add("workload", "peer");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.Add("devices", static_cast<uint64_t>(devices));
  json.AddRaw("actors", actors);
  workload::PrintLine(json.Finish());
  return 0;
}
