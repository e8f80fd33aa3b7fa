// Calls and who watches them: correlation ids, nesting, the observer that libcupti registers.
#include "calls.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../settings.h"
#include "device.h"
#include "graph.h"

namespace xpu::fake_cuda {
namespace {

std::atomic<const Observer*> g_observer{nullptr};
std::atomic<pid_t> g_initialized_pid{0};
std::atomic<bool> g_shut_down{false};
thread_local ApiCall* t_innermost = nullptr;
thread_local CUcontext t_context = nullptr;

uint32_t FirstCorrelationId() {
  return static_cast<uint32_t>(EnvNumber("XPU_FAKE_FIRST_CORRELATION_ID", 1));
}

std::atomic<uint32_t>& CorrelationIds() {
  static std::atomic<uint32_t> next{FirstCorrelationId()};
  return next;
}

// 0 is CUPTI_CORRELATION_ID_UNKNOWN, so a wrapped counter leaves it out.
uint32_t NextCorrelationId() {
  uint32_t id = 0;
  while (id == 0) id = CorrelationIds().fetch_add(1);
  return id;
}

// Kernels that were launched while nobody looked.
class UnseenKernels {
 public:
  static UnseenKernels& Get() {
    static auto* const kernels = new UnseenKernels;
    return *kernels;
  }
  void Add(const Activity& activity) {
    const std::lock_guard lock(mutex_);
    if (kernels_.size() >= kLook) RemoveFinished();
    kernels_.push_back(activity);
    kernels_.back().correlation_id = 0;
  }
  void Report(void (*report)(const Activity& activity)) {
    std::vector<Activity> kernels;
    {
      const std::lock_guard lock(mutex_);
      RemoveFinished();
      kernels.swap(kernels_);
    }
    for (const Activity& activity : kernels) report(activity);
  }

 private:
  static constexpr size_t kLook = 64;
  void RemoveFinished() {
    const uint64_t now_ns = NowNs();
    std::erase_if(kernels_, [&](const Activity& activity) { return activity.end_ns <= now_ns; });
  }

  std::mutex mutex_;
  std::vector<Activity> kernels_;
};

void Enter(ApiCall* call) {
  call->outer = t_innermost;
  call->nested = t_innermost != nullptr;
  const Observer* observer = g_observer.load();
  call->correlation_id = call->nested ? t_innermost->correlation_id : 0;
  // CUPTI counts calls while it is there. Without it there is but the call that loads it.
  if (call->correlation_id == 0 && (observer != nullptr || g_initialized_pid.load() == 0)) {
    call->correlation_id = NextCorrelationId();
  }
  t_innermost = call;
  call->start_ns = NowNs();
  if (observer != nullptr) observer->api(call, false);
}

void Exit(ApiCall* call, int result) {
  call->result = result;
  call->end_ns = NowNs();
  if (const Observer* observer = g_observer.load()) observer->api(call, true);
  t_innermost = call->outer;
}

// The first device is the one that a single device always was.
const char* DeviceName(uint32_t device) {
  static const char* const kNames[] = {"XPU simulated GPU", "XPU simulated GPU B",
                                       "XPU simulated GPU C", "XPU simulated GPU D"};
  return kNames[device % 4];
}

const char* DeviceUuid(uint32_t device) {
  static const char* const kUuids[] = {"xpu simulated 00", "xpu simulated 01", "xpu simulated 02",
                                       "xpu simulated 03"};
  return kUuids[device % 4];
}

const Driver kDriver = {
    .set_observer = [](const Observer* observer) { g_observer.store(observer); },
    .enter = &Enter,
    .exit = &Exit,
    .now_ns = &NowNs,
    .current_context = [] { return t_context; },
    .context_uid = [](CUcontext context) -> uint32_t {
      return context != nullptr && context->created ? ContextId(context) : 0;
    },
    .stream_id = [](CUcontext context, CUstream stream) -> std::optional<uint32_t> {
      stream = Resolve(stream);
      if (context != nullptr && stream->context != context) return std::nullopt;
      return stream->id;
    },
    .current_correlation_id = []() -> uint32_t {
      return t_innermost == nullptr ? 0 : t_innermost->correlation_id;
    },
    .initialized = [] { return g_initialized_pid.load() == getpid(); },
    .shut_down = [] { return g_shut_down.load(); },
    .context_exists =
        [] {
          const auto& contexts = TheDevice().contexts;
          return std::any_of(contexts.begin(), contexts.end(),
                             [](const CUctx_st& context) { return context.created; });
        },
    .device_count = [] { return static_cast<uint32_t>(TheDevice().contexts.size()); },
    .primary_context = [](int device) -> CUcontext { return &TheDevice().contexts[device]; },
    .device_name = &DeviceName,
    .device_uuid = &DeviceUuid,
    .graph_id = [](CUgraph graph) { return graph->id; },
    .graph_exec_id = [](CUgraphExec exec) { return exec->graph.id; },
    .graph_node_id = [](CUgraphNode node) { return node->id; },
    .has_executable_graphs = [] { return HasExecutableGraphs(); },
    .fault_ns =
        [](uint32_t context_id) {
          uint64_t first_ns = UINT64_MAX;
          for (const CUctx_st& context : TheDevice().contexts) {
            if (context_id != 0 && context_id != context.ordinal + 1) continue;
            first_ns = std::min(first_ns, context.fault_ns.load());
          }
          return first_ns;
        },
    .fault = [] { return FaultOf(*CurrentContext()); },
    .busy_until_ns =
        [] {
          uint64_t until_ns = 0;
          for (CUctx_st& context : TheDevice().contexts) {
            until_ns = std::max(until_ns, std::min(TailOfAll(&context), context.fault_ns.load()));
          }
          return until_ns;
        },
    .restart_correlation_ids = [] { CorrelationIds().store(FirstCorrelationId()); },
    .report_unfinished =
        [](void (*report)(const Activity&)) { UnseenKernels::Get().Report(report); },
};

// The driver opens /dev/nvidia-uvm and others, and maps some; a forked child has them too.
void MapDeviceFile() {
  std::string path(EnvText("XPU_FAKE_DEVICE_FILE", ""));
  Dl_info own{};
  if (path.empty() && dladdr(&kDriver, &own) != 0) {
    path = own.dli_fname;
    path.resize(path.rfind('/') + 1);
    path += "../dev/nvidia-uvm";
  }
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file >= 0) mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, file, 0);
}

// As the driver does it: before any context exists, inside the first cuInit.
void LoadInjection() {
  const std::string path(EnvText("CUDA_INJECTION64_PATH", ""));
  if (path.empty()) return;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  if (initialize != nullptr) initialize();
}

}  // namespace

const Driver& TheDriver() { return kDriver; }

void Emit(const Activity& activity) {
  if (const Observer* observer = g_observer.load()) {
    observer->activity(activity);
  } else if (activity.kind == ActivityKind::kKernel) {
    UnseenKernels::Get().Add(activity);
  }
}

void Announce(const Resource& resource) {
  if (const Observer* observer = g_observer.load()) observer->resource(resource);
}

void SetThreadContext(CUcontext context) { t_context = context; }

CUresult CheckInitialized() {
  if (g_shut_down.load()) return CUDA_ERROR_DEINITIALIZED;
  const pid_t pid = g_initialized_pid.load();
  // A forked child has no device: the real one says the same.
  return pid == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult CheckContext() {
  if (const CUresult result = CheckInitialized(); result != CUDA_SUCCESS) return result;
  if (t_context == nullptr || !t_context->created) return CUDA_ERROR_INVALID_CONTEXT;
  return FaultOf(*t_context);
}

// At exit. Work that was launched goes on being simulated.
static void ShutDown() {
  const uint64_t ms = EnvNumber("XPU_FAKE_SHUT_DOWN_MS", 0);
  if (ms == 0) return;
  g_shut_down.store(true);
  SleepUntil(NowNs() + ms * 1'000'000);
}

bool InitializeOnce() {
  static std::once_flag once;
  bool first = false;
  std::call_once(once, [&first] {
    first = true;
    TheDevice();
    std::atexit(&ShutDown);
    LoadInjection();
    for (const CUctx_st& context : TheDevice().contexts) {
      Activity device{ActivityKind::kDevice};
      device.device_id = context.ordinal;
      Emit(device);
    }
    MapDeviceFile();
    g_initialized_pid.store(getpid());
    Announce({.callback_id = 5});  // CU_INIT_FINISHED
  });
  return first;
}

}  // namespace xpu::fake_cuda

extern "C" const xpu::fake_cuda::Driver* xpu_fake_driver() { return &xpu::fake_cuda::TheDriver(); }
