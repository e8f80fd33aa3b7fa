// What the three simulated libraries say to each other. libcuda holds the device and exports one
// table, xpu_fake_driver(); libcupti registers an Observer in it; libcudart opens its API calls
// through it. All times are CLOCK_MONOTONIC nanoseconds; libcupti turns them into CUPTI's clock.
#pragma once

#include <cstdint>
#include <optional>

#include <cuda.h>

namespace xpu::fake_cuda {

// Values of CUpti_CallbackDomain.
inline constexpr uint32_t kDriverDomain = 1;
inline constexpr uint32_t kRuntimeDomain = 2;

// An API call under way, on the caller's stack.
struct ApiCall {
  uint32_t domain;
  uint32_t callback_id;
  const char* name;
  const void* params;
  const char* symbol;  // of a launch, else nullptr
  uint32_t correlation_id;
  bool nested;  // inside a call of the same thread: then it has that call's correlation id
  uint64_t correlation_data;
  uint64_t start_ns;
  uint64_t end_ns;
  int result;
  ApiCall* outer;
};

// Values of CUpti_ActivityKind.
enum class ActivityKind : uint32_t {
  kNone = 0,  // a piece of work without a record: host functions, graph nodes that hold a graph
  kMemcpy = 1,
  kMemset = 2,
  kSerialKernel = 3,
  kDriver = 4,
  kRuntime = 5,
  kDevice = 8,
  kContext = 9,
  kKernel = 10,
  kOverhead = 17,
  kMemcpyPeer = 22,  // MEMCPY2
  kStream = 37,
  kSync = 38,
  kMemoryOperation = 49,  // MEMORY2
  kGraphTrace = 51,
  kJit = 52,
};

// One thing that becomes an activity record. Which fields count depends on `kind`.
struct Activity {
  ActivityKind kind;
  uint32_t correlation_id = 0;
  uint32_t device_id = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;  // may lie in the future: unfinished
  uint32_t graph_id = 0;
  uint64_t graph_node_id = 0;
  uint32_t channel_id = 1;
  uint32_t channel_type = 1;
  // kernel
  const char* name = nullptr;
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t dynamic_shared_bytes = 0;
  uint16_t registers = 16;
  int64_t grid_id = 0;
  // memcpy, memset
  uint64_t bytes = 0;
  uint32_t value = 0;
  uint8_t copy_kind = 0;
  uint8_t source_kind = 0;
  uint8_t destination_kind = 0;
  bool async = false;
  uint32_t source_device = 0;  // peer to peer
  uint32_t destination_device = 0;
  uint64_t address = 0;            // of allocated memory; `type`: 1 allocated, 2 freed
  uint32_t event_id = UINT32_MAX;  // synchronization
  uint64_t jit_id = 0;  // just-in-time compilation; `name`: path in the cache, `bytes`: its size
  // synchronization, overhead, stream, just-in-time compilation: its type, flag or operation
  uint32_t type = 0;
  int32_t priority = 0;
};

// Values of CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind, CUpti_ActivitySynchronizationType,
// CUpti_ActivityOverheadKind.
inline constexpr uint8_t kCopyHtoD = 1;
inline constexpr uint8_t kCopyDtoH = 2;
inline constexpr uint8_t kCopyHtoA = 3;
inline constexpr uint8_t kCopyAtoH = 4;
inline constexpr uint8_t kCopyAtoA = 5;
inline constexpr uint8_t kCopyAtoD = 6;
inline constexpr uint8_t kCopyDtoA = 7;
inline constexpr uint8_t kCopyDtoD = 8;
inline constexpr uint8_t kCopyHtoH = 9;
inline constexpr uint8_t kCopyPtoP = 10;
inline constexpr uint8_t kPageable = 1;
inline constexpr uint8_t kPinned = 2;
inline constexpr uint8_t kDeviceMemory = 3;
inline constexpr uint8_t kArray = 4;
inline constexpr uint8_t kManaged = 5;
inline constexpr uint32_t kEventSync = 1;
inline constexpr uint32_t kStreamWaitEvent = 2;
inline constexpr uint32_t kStreamSync = 3;
inline constexpr uint32_t kContextSync = 4;
inline constexpr uint32_t kOverheadFlush = 1 << 16;
inline constexpr uint32_t kOverheadInstrumentation = 2 << 16;
inline constexpr uint32_t kOverheadResource = 3 << 16;
inline constexpr uint32_t kOverheadLazyLoading = 5 << 16;
inline constexpr uint32_t kOverheadBufferRequest = 7 << 16;
// Values of CUpti_ActivityJitOperationType.
inline constexpr uint32_t kJitCacheStore = 2;
inline constexpr uint32_t kJitCompile = 3;

// One callback of the resource domain; handles are nullptr where the id does not have them.
struct Resource {
  uint32_t callback_id;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraph original_graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNode original_node = nullptr;
  CUgraphNode dependency = nullptr;
  CUgraphExec exec = nullptr;
  uint32_t node_type = 0;
  uint32_t module_id = 0;
};

struct Observer {
  void (*api)(ApiCall* call, bool exit);
  void (*resource)(const Resource& resource);
  void (*activity)(const Activity& activity);
};

struct Driver {
  void (*set_observer)(const Observer* observer);  // nullptr: nobody looks
  void (*enter)(ApiCall* call);                    // fills correlation_id, nested, start_ns
  void (*exit)(ApiCall* call, int result);
  uint64_t (*now_ns)();
  CUcontext (*current_context)();
  uint32_t (*context_uid)(CUcontext context);
  // None: the stream is one of another context. nullptr: any context will do.
  std::optional<uint32_t> (*stream_id)(CUcontext context, CUstream stream);
  uint32_t (*current_correlation_id)();  // of the outermost call of this thread, 0: none
  bool (*initialized)();
  bool (*shut_down)();
  bool (*context_exists)();  // of any device
  uint32_t (*device_count)();
  CUcontext (*primary_context)(int device);  // the handle, whether retained or not
  const char* (*device_name)(uint32_t device);
  const char* (*device_uuid)(uint32_t device);  // 16 bytes
  uint32_t (*graph_id)(CUgraph graph);
  uint32_t (*graph_exec_id)(CUgraphExec exec);
  uint64_t (*graph_node_id)(CUgraphNode node);
  bool (*has_executable_graphs)();  // one was instantiated at some time
  // Returns when a kernel ends the context by a fault: its work that has not ended by then never
  // ends. UINT64_MAX: none does. Context 0 stands for the first of all that fault.
  uint64_t (*fault_ns)(uint32_t context_id);
  CUresult (*fault)();          // that has happened in the thread's context
  uint64_t (*busy_until_ns)();  // when what was launched so far has ended
  // The next call has the first id again.
  void (*restart_correlation_ids)();
  // Kernels that have not finished yet and that were reported to no observer, without their calls'
  // ids.
  void (*report_unfinished)(void (*report)(const Activity& activity));
};

// One API call: enter callback now, exit callback at the end of the scope.
class ApiScope {
 public:
  ApiScope(const Driver& driver, uint32_t domain, uint32_t callback_id, const char* name,
           const void* params = nullptr, const char* symbol = nullptr)
      : driver_(driver), call_{} {
    call_.domain = domain;
    call_.callback_id = callback_id;
    call_.name = name;
    call_.params = params;
    call_.symbol = symbol;
    driver_.enter(&call_);
  }
  ~ApiScope() { driver_.exit(&call_, result_); }
  ApiScope(const ApiScope&) = delete;
  ApiScope& operator=(const ApiScope&) = delete;

  template <typename Result>
  Result Return(Result result) {
    result_ = static_cast<int>(result);
    return result;
  }
  uint32_t correlation_id() const { return call_.correlation_id; }
  uint64_t start_ns() const { return call_.start_ns; }

 private:
  const Driver& driver_;
  ApiCall call_;
  int result_ = 0;
};

}  // namespace xpu::fake_cuda

extern "C" const xpu::fake_cuda::Driver* xpu_fake_driver();
