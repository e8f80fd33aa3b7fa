#include "records.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include <time.h>
#include <unistd.h>

#include "cupti_inject/record_pointers.h"
#include "settings.h"
#include "subscriber.h"

namespace xpu::fake_cupti {
namespace {

using fake_cuda::Activity;
using fake_cuda::ActivityKind;

uint64_t Read(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Where the two clocks were when the library was loaded.
struct Anchor {
  uint64_t monotonic_ns = Read(CLOCK_MONOTONIC);
  uint64_t realtime_ns = Read(CLOCK_REALTIME);
};
const Anchor g_anchor;

template <typename Layout>
Record Make(const Layout& layout, uint32_t kind) {
  Record record;
  record.kind = kind;
  record.bytes.assign(RecordSize(kind), 0xa5);  // a longer record's tail is not zero
  std::memcpy(record.bytes.data(), &layout, std::min(sizeof(layout), record.bytes.size()));
  return record;
}

template <typename Layout>
Layout Begin(CUpti_ActivityKind kind) {
  Layout layout;
  std::memset(&layout, 0, sizeof(layout));
  layout.kind = kind;
  return layout;
}

// What is neither named by the activity nor 0 is as in the record of transformer_shared.
Record MakeKernel(const Activity& activity) {
  auto layout = Begin<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  layout.registersPerThread = activity.registers;
  layout.partitionedGlobalCacheRequested = 1;
  layout.partitionedGlobalCacheExecuted = 1;
  layout.deviceId = activity.device_id;
  layout.contextId = activity.context_id;
  layout.streamId = activity.stream_id;
  layout.gridX = static_cast<int32_t>(activity.grid[0]);
  layout.gridY = static_cast<int32_t>(activity.grid[1]);
  layout.gridZ = static_cast<int32_t>(activity.grid[2]);
  layout.blockX = static_cast<int32_t>(activity.block[0]);
  layout.blockY = static_cast<int32_t>(activity.block[1]);
  layout.blockZ = static_cast<int32_t>(activity.block[2]);
  layout.dynamicSharedMemory = static_cast<int32_t>(activity.dynamic_shared_bytes);
  layout.localMemoryTotal = 0x09480000;
  layout.correlationId = activity.correlation_id;
  layout.gridId = activity.grid_id;
  layout.sharedMemoryExecuted = 0x8000;
  layout.graphNodeId = activity.graph_node_id;
  layout.graphId = activity.graph_id;
  layout.channelID = activity.channel_id;
  layout.channelType = activity.channel_type;
  layout.clusterSchedulingPolicy = 1;
  layout.localMemoryTotal_v2 = 0x09480000;
  return Make(layout, layout.kind);
}

Record MakeMemcpy(const Activity& activity) {
  auto layout = Begin<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  layout.copyKind = activity.copy_kind;
  layout.srcKind = activity.source_kind;
  layout.dstKind = activity.destination_kind;
  layout.flags = activity.async ? 1 : 0;
  layout.bytes = activity.bytes;
  layout.deviceId = activity.device_id;
  layout.contextId = activity.context_id;
  layout.streamId = activity.stream_id;
  layout.correlationId = activity.correlation_id;
  layout.graphNodeId = activity.graph_node_id;
  layout.graphId = activity.graph_id;
  layout.channelID = activity.channel_id;
  layout.channelType = activity.channel_type;
  layout.copyCount = 1;
  return Make(layout, layout.kind);
}

Record MakePeerCopy(const Activity& activity) {
  auto layout = Begin<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
  layout.copyKind = activity.copy_kind;
  layout.srcKind = activity.source_kind;
  layout.dstKind = activity.destination_kind;
  layout.flags = activity.async ? 1 : 0;
  layout.bytes = activity.bytes;
  layout.deviceId = activity.device_id;
  layout.contextId = activity.context_id;
  layout.streamId = activity.stream_id;
  layout.srcDeviceId = activity.source_device;
  layout.srcContextId = activity.source_device + 1;
  layout.dstDeviceId = activity.destination_device;
  layout.dstContextId = activity.destination_device + 1;
  layout.correlationId = activity.correlation_id;
  layout.graphNodeId = activity.graph_node_id;
  layout.graphId = activity.graph_id;
  layout.channelID = activity.channel_id;
  layout.channelType = activity.channel_type;
  return Make(layout, layout.kind);
}

Record MakeMemset(const Activity& activity) {
  auto layout = Begin<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  layout.value = activity.value;
  layout.bytes = activity.bytes;
  layout.deviceId = activity.device_id;
  layout.contextId = activity.context_id;
  layout.streamId = activity.stream_id;
  layout.correlationId = activity.correlation_id;
  layout.flags = activity.async ? 1 : 0;
  layout.memoryKind = fake_cuda::kDeviceMemory;
  layout.graphNodeId = activity.graph_node_id;
  layout.graphId = activity.graph_id;
  layout.channelID = activity.channel_id;
  layout.channelType = activity.channel_type;
  return Make(layout, layout.kind);
}

Record MakeSync(const Activity& activity) {
  auto layout = Begin<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  layout.type = activity.type;
  layout.correlationId = activity.correlation_id;
  layout.contextId = activity.context_id;
  layout.streamId = activity.stream_id;
  layout.cudaEventId = activity.event_id;
  layout.cudaEventSyncId = UINT32_MAX;
  return Make(layout, layout.kind);
}

Record MakeGraphTrace(const Activity& activity) {
  auto layout = Begin<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  layout.correlationId = activity.correlation_id;
  layout.deviceId = activity.device_id;
  layout.graphId = activity.graph_id;
  layout.contextId = activity.context_id;
  layout.streamId = activity.stream_id;
  layout.endDeviceId = activity.device_id;
  layout.endContextId = activity.context_id;
  return Make(layout, layout.kind);
}

Record MakeOverhead(const Activity& activity, uint32_t thread_id) {
  auto layout = Begin<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD);
  layout.overheadKind = activity.type;
  layout.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  layout.object_id_0 = static_cast<uint32_t>(getpid());
  layout.object_id_1 = thread_id;
  layout.correlationId = activity.correlation_id;
  return Make(layout, layout.kind);
}

Record MakeMemoryOperation(const Activity& activity) {
  auto layout = Begin<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
  layout.memoryOperationType = activity.type;
  layout.memoryKind = activity.source_kind;
  layout.correlationId = activity.correlation_id;
  layout.address = activity.address;
  layout.bytes = activity.bytes;
  layout.processId = static_cast<uint32_t>(getpid());
  layout.deviceId = activity.device_id;
  layout.contextId = activity.context_id;
  layout.streamId = UINT32_MAX;
  return Make(layout, layout.kind);
}

Record MakeJit(const Activity& activity, uint32_t thread_id) {
  auto layout = Begin<CUpti_ActivityJit2>(CUPTI_ACTIVITY_KIND_JIT);
  layout.jitEntryType = CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN;
  layout.jitOperationType = activity.type;
  layout.deviceId = activity.device_id;
  layout.correlationId = activity.correlation_id;
  layout.jitOperationCorrelationId = activity.jit_id;
  layout.cacheSize = activity.bytes;
  layout.processId = static_cast<uint32_t>(getpid());
  layout.threadId = thread_id;
  return Make(layout, layout.kind);
}

Record MakeStream(const Activity& activity) {
  auto layout = Begin<CUpti_ActivityStream>(CUPTI_ACTIVITY_KIND_STREAM);
  layout.contextId = activity.context_id;
  layout.streamId = activity.stream_id;
  layout.priority = activity.priority;
  layout.flag = activity.type;
  layout.correlationId = activity.correlation_id;
  return Make(layout, layout.kind);
}

Record MakeContext(const Activity& activity) {
  auto layout = Begin<CUpti_ActivityContext3>(CUPTI_ACTIVITY_KIND_CONTEXT);
  layout.contextId = activity.context_id;
  layout.deviceId = activity.device_id;
  layout.computeApiKind = 1;  // CUDA
  layout.nullStreamId = 7;
  return Make(layout, layout.kind);
}

Record MakeDevice(const Activity& activity) {
  auto layout = Begin<CUpti_ActivityDevice5>(CUPTI_ACTIVITY_KIND_DEVICE);
  layout.flags = 1;
  layout.globalMemoryBandwidth = 4'800'000'000;
  layout.globalMemorySize = uint64_t{16} << 30;
  layout.constantMemorySize = 64 << 10;
  layout.l2CacheSize = 60 << 20;
  layout.numThreadsPerWarp = 32;
  layout.coreClockRate = 1'980'000;
  layout.numMemcpyEngines = 3;
  layout.numMultiprocessors = 132;
  layout.maxIPC = UINT32_MAX;
  layout.maxWarpsPerMultiprocessor = 64;
  layout.maxBlocksPerMultiprocessor = 32;
  layout.maxSharedMemoryPerMultiprocessor = 228 << 10;
  layout.maxRegistersPerMultiprocessor = 65536;
  layout.maxRegistersPerBlock = 65536;
  layout.maxSharedMemoryPerBlock = 48 << 10;
  layout.maxThreadsPerBlock = 1024;
  layout.maxBlockDimX = 1024;
  layout.maxBlockDimY = 1024;
  layout.maxBlockDimZ = 64;
  layout.maxGridDimX = 0x7fffffff;
  layout.maxGridDimY = 65535;
  layout.maxGridDimZ = 65535;
  layout.computeCapabilityMajor = 9;
  layout.id = activity.device_id;
  layout.eccEnabled = 1;
  std::memcpy(layout.uuid, xpu_fake_driver()->device_uuid(activity.device_id), sizeof(layout.uuid));
  layout.isCudaVisible = 1;
  layout.gpuInstanceId = UINT32_MAX;
  layout.computeInstanceId = UINT32_MAX;
  layout.numaId = UINT32_MAX;
  return Make(layout, layout.kind);
}

Record MakeLayout(const Activity& activity, uint32_t thread_id) {
  switch (activity.kind) {
    case ActivityKind::kKernel:
      return MakeKernel(activity);
    case ActivityKind::kMemcpy:
      return MakeMemcpy(activity);
    case ActivityKind::kMemcpyPeer:
      return MakePeerCopy(activity);
    case ActivityKind::kMemset:
      return MakeMemset(activity);
    case ActivityKind::kSync:
      return MakeSync(activity);
    case ActivityKind::kGraphTrace:
      return MakeGraphTrace(activity);
    case ActivityKind::kOverhead:
      return MakeOverhead(activity, thread_id);
    case ActivityKind::kMemoryOperation:
      return MakeMemoryOperation(activity);
    case ActivityKind::kJit:
      return MakeJit(activity, thread_id);
    case ActivityKind::kStream:
      return MakeStream(activity);
    case ActivityKind::kContext:
      return MakeContext(activity);
    case ActivityKind::kDevice:
      return MakeDevice(activity);
    default:
      return {};
  }
}

// CUDA 13.0 does not take the device buffers of graph nodes back: when they are used up, records
// have no times.
bool TakeDeviceBuffer() {
  static std::atomic<uint64_t> used{0};
  const uint64_t limit = TheSettings().device_buffer_records * TheState().device_buffers;
  return limit == 0 || used.fetch_add(1) < limit;
}

constexpr bool Has(uint32_t since, uint32_t cuda) { return since <= cuda; }

// The newest layout of a record that the version has; 0: it has none of that kind.
#define RECORD(name, type)               \
  uint32_t SizeOf##name(uint32_t cuda) { \
    uint32_t size = 0;
#define VERSION(name, type, bytes, since) \
  if (Has(since, cuda)) size = bytes;
#define END(name, type) \
  return size;          \
  }
#include "cupti_inject/cupti_records.inc"

uint32_t DefaultSize(uint32_t kind) {
  switch (kind) {
#define KIND(kind, number, cupti_kind, name, event) \
  case cupti::kind:                                 \
    return SizeOf##name(TheSettings().cuda);
#define RAW_KIND(kind, number, cupti_kind, name) KIND(kind, number, cupti_kind, name, RawActivity)
#include "cupti_inject/cupti_records.inc"
    case kUnknownKind:
      return kUnknownKindBytes;
    default:
      return 0;
  }
}

bool IsWork(ActivityKind kind) {
  return kind == ActivityKind::kKernel || kind == ActivityKind::kMemcpy ||
         kind == ActivityKind::kMemcpyPeer || kind == ActivityKind::kMemset ||
         kind == ActivityKind::kGraphTrace;
}

// Of its first time; 0: it has none.
template <typename Layout>
constexpr uint32_t TimeOffsetIn() {
  if constexpr (requires { Layout{}.start_ns; }) {
    return offsetof(Layout, start_ns);
  } else if constexpr (requires { Layout{}.time_ns; }) {
    return offsetof(Layout, time_ns);  // the word after it means nothing here
  } else {
    return 0;
  }
}

}  // namespace

uint32_t RecordSize(uint32_t kind) {
  const auto& sizes = TheSettings().record_size;
  const auto chosen = sizes.find(kind);
  return chosen == sizes.end() ? DefaultSize(kind) : chosen->second;
}

// CLOCK_REALTIME, as every clock pair of the captures shows, plus what the environment asks for.
uint64_t CuptiTime(uint64_t monotonic_ns) {
  const auto elapsed = static_cast<int64_t>(monotonic_ns - g_anchor.monotonic_ns);
  const auto drift = static_cast<int64_t>(static_cast<__int128>(elapsed) *
                                          TheSettings().clock_drift_ppm / 1'000'000);
  return g_anchor.realtime_ns +
         static_cast<uint64_t>(elapsed + drift + TheSettings().clock_offset_ns);
}

bool IsKernel(uint32_t kind) { return kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL; }

uint32_t TimeOffset(uint32_t kind) {
  switch (kind) {
#define KIND(kind, number, cupti_kind, name, event) \
  case cupti::kind:                                 \
    return TimeOffsetIn<cupti::name>();
#define RAW_KIND(kind, number, cupti_kind, name) KIND(kind, number, cupti_kind, name, RawActivity)
#include "cupti_inject/cupti_records.inc"
    default:
      return 0;
  }
}

const char* Intern(const char* text) {
  if (text == nullptr) return nullptr;
  static auto* const mutex = new std::mutex;
  static auto* const names = new std::set<std::string>;
  const std::lock_guard lock(*mutex);
  return names->insert(text).first->c_str();
}

Record MakeRecord(const Activity& activity, uint32_t thread_id) {
  Record record = MakeLayout(activity, thread_id);
  record.name = activity.kind == ActivityKind::kDevice
                    ? xpu_fake_driver()->device_name(activity.device_id)
                    : Intern(activity.name);
  if (TimeOffset(record.kind) == 0) return record;
  record.finish_ns = activity.end_ns;
  if (IsWork(activity.kind)) record.context_id = activity.context_id;
  record.start = CuptiTime(activity.start_ns);
  record.end = CuptiTime(activity.end_ns);
  if (activity.graph_node_id != 0 && !TakeDeviceBuffer()) record.start = record.end = 0;
  return record;
}

Record MakeApiRecord(const fake_cuda::ApiCall& call, uint32_t thread_id) {
  auto layout = Begin<CUpti_ActivityAPI>(call.domain == fake_cuda::kDriverDomain
                                             ? CUPTI_ACTIVITY_KIND_DRIVER
                                             : CUPTI_ACTIVITY_KIND_RUNTIME);
  layout.cbid = call.callback_id;
  layout.processId = static_cast<uint32_t>(getpid());
  layout.threadId = thread_id;
  layout.correlationId = call.correlation_id;
  layout.returnValue = static_cast<uint32_t>(call.result);
  Record record = Make(layout, layout.kind);
  record.start = CuptiTime(call.start_ns);
  record.end = CuptiTime(call.end_ns);
  return record;
}

Record MakeUnknownRecord() {
  Record record;
  record.kind = kUnknownKind;
  record.bytes.resize(kUnknownKindBytes);
  std::memcpy(record.bytes.data(), &record.kind, sizeof(record.kind));
  for (uint32_t i = 4; i < kUnknownKindBytes; ++i) record.bytes[i] = static_cast<uint8_t>(i);
  return record;
}

void Finish(const Record& record, uint64_t start, uint64_t end, const char* name, uint8_t* bytes) {
  if (const uint32_t offset = TimeOffset(record.kind)) {
    std::memcpy(bytes + offset, &start, sizeof(start));
    std::memcpy(bytes + offset + 8, &end, sizeof(end));
    if (IsKernel(record.kind)) std::memcpy(bytes + offset + 16, &end, sizeof(end));  // completed
  }
  if (record.name == nullptr) return;
  std::memcpy(bytes + inject::NameOffset(record.kind), &name, sizeof(name));
}

}  // namespace xpu::fake_cupti
