#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "format/base/text.h"
#include "report/analysis/gpu_names.h"
#include "report/export/export_tables.h"
#include "report/model/recorded_time.h"

namespace xpu {
namespace {

constexpr ExportColumn Plain(std::string_view name) { return {name, ColumnType::kPlainText}; }

// nsys has the pid in bits 24 to 47 and the thread below it.
uint64_t GlobalId(uint32_t pid, uint32_t tid = 0) {
  return uint64_t{pid & 0xffffff} << 24 | (tid & 0xffffff);
}

struct EnumName {
  uint32_t id;
  std::string_view name;
  std::string_view label;
};
constexpr EnumName kCopies[] = {{0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"},
                                {1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"},
                                {2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"},
                                {3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array"},
                                {4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host"},
                                {5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array"},
                                {6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device"},
                                {7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array"},
                                {8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"},
                                {9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"},
                                {10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"}};
constexpr EnumName kSynchronizations[] = {
    {0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown"},
    {1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event synchronize"},
    {2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait event"},
    {3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream synchronize"},
    {4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context synchronize"}};

// The launches that have a call.
class LaunchesByCall {
 public:
  explicit LaunchesByCall(const LaunchList& launches) : launches_(launches) {
    for (uint32_t i = 0; i < launches.size(); ++i) {
      if (!launches[i].has_call) continue;
      places_.push_back(i);
      if (launches[i].tid != 0) {
        threads_.try_emplace({launches[i].instance, launches[i].program_tid}, launches[i].tid);
      }
    }
    std::sort(places_.begin(), places_.end(),
              [this](uint32_t a, uint32_t b) { return KeyOf(launches_[a]) < KeyOf(launches_[b]); });
  }

  // Returns nullopt for a call that starts no work.
  std::optional<Launch> Find(const ApiCall& call) const {
    const auto found = std::lower_bound(
        places_.begin(), places_.end(), KeyOf(call),
        [this](uint32_t place, const auto& key) { return KeyOf(launches_[place]) < key; });
    if (found == places_.end() || KeyOf(launches_[*found]) != KeyOf(call)) return std::nullopt;
    return launches_[*found];
  }

  // Returns the recorder's number of the thread where it is known.
  uint32_t ThreadOf(const ApiCall& call) const {
    const auto found = threads_.find({call.instance, call.tid});
    return found == threads_.end() ? call.tid : found->second;
  }

 private:
  template <typename Event>
  static std::tuple<uint64_t, uint32_t, uint64_t> KeyOf(const Event& event) {
    return {event.start_ns, event.correlation_id, event.instance.value};
  }

  const LaunchList& launches_;
  std::vector<uint32_t> places_;  // ascending
  std::map<std::pair<InstanceId, uint32_t>, uint32_t> threads_;
};

class NsysTables {
 public:
  NsysTables(Analysis& analysis, CallPaths& paths, TableSink& sink)
      : analysis_(analysis),
        events_(analysis.model.events),
        paths_(paths),
        sink_(sink),
        names_(analysis, KernelNames::kFull),
        short_names_(analysis, KernelNames::kShort),
        start_ns_(StartOf(analysis.model)) {}

  void WriteKernels();
  void WriteCopies();
  void WriteSets();
  void WriteSynchronizations();
  void WriteGraphs();
  void WriteCalls();
  void WriteRanges();
  void WriteGpus();
  void WriteProcesses();
  void WriteThreads();
  void WriteEnum(std::string_view table, std::span<const EnumName> names);

 private:
  void PutTime(uint64_t time_ns) { sink_.Signed(static_cast<int64_t>(time_ns - start_ns_)); }
  // start, end; their distance is the time on the GPU's own clock, of which sums are made.
  void PutTimes(const GpuWork& work) {
    PutTime(work.placed_ns());
    PutTime(work.placed_ns() + work.duration_ns);
  }
  template <typename... Values>
  void Put(Values... values) {
    (sink_.Signed(static_cast<int64_t>(values)), ...);
  }
  // The nodes of graphs alone have one.
  void PutNode(uint64_t node) {
    if (node == 0) {
      sink_.Null();
    } else {
      sink_.Unsigned(node);
    }
  }
  uint64_t ProcessOf(InstanceId instance) const {
    return GlobalId(analysis_.correlation.PidOf(instance));
  }
  template <typename Visit>
  void ForEach(WorkKind kind, Visit&& visit) {
    for (const GpuWork& work : analysis_.correlation.work) {
      if (sink_.failed()) return;
      if (work.kind != kind) continue;
      PutTimes(work);
      visit(work);
      sink_.EndRow();
    }
    sink_.End();
  }

  Analysis& analysis_;
  const LoadedEvents& events_;
  CallPaths& paths_;
  TableSink& sink_;
  const GpuNames names_;
  const GpuNames short_names_;
  const uint64_t start_ns_;
};

void NsysTables::WriteKernels() {
  constexpr ExportColumn kColumns[] = {{"start"},
                                       {"end"},
                                       {"deviceId"},
                                       {"contextId"},
                                       {"streamId"},
                                       {"correlationId"},
                                       {"globalPid"},
                                       TextColumn("demangledName"),
                                       TextColumn("shortName"),
                                       TextColumn("mangledName"),
                                       {"launchType"},
                                       {"cacheConfig"},
                                       {"registersPerThread"},
                                       {"gridX"},
                                       {"gridY"},
                                       {"gridZ"},
                                       {"blockX"},
                                       {"blockY"},
                                       {"blockZ"},
                                       {"staticSharedMemory"},
                                       {"dynamicSharedMemory"},
                                       {"localMemoryPerThread"},
                                       {"localMemoryTotal"},
                                       {"gridId"},
                                       {"sharedMemoryExecuted"},
                                       {"graphNodeId"},
                                       {"sharedMemoryLimitConfig"}};
  sink_.Begin("CUPTI_ACTIVITY_KIND_KERNEL", kColumns);
  ForEach(WorkKind::kKernel, [&](const GpuWork& work) {
    const Kernel kernel = events_.kernels[work.index];
    Put(work.gpu, kernel.context_id, kernel.stream_id, kernel.correlation_id,
        ProcessOf(work.instance));
    sink_.Text(names_.KernelName(kernel.name));
    sink_.Text(short_names_.KernelName(kernel.name));
    sink_.Text(analysis_.model.Text(kernel.name));
    Put(kernel.launch_type, kernel.cache_config, kernel.registers_per_thread, kernel.grid_x,
        kernel.grid_y, kernel.grid_z, kernel.block_x, kernel.block_y, kernel.block_z,
        kernel.static_shared_memory_bytes, kernel.dynamic_shared_memory_bytes,
        kernel.local_memory_per_thread_bytes, kernel.local_memory_total_bytes, kernel.grid_id,
        kernel.shared_memory_executed_bytes);
    PutNode(kernel.graph_node_id);
    Put(kernel.shared_memory_limit_config);
  });
}

void NsysTables::WriteCopies() {
  constexpr ExportColumn kColumns[] = {
      {"start"},        {"end"},           {"deviceId"},     {"contextId"},
      {"streamId"},     {"correlationId"}, {"globalPid"},    {"bytes"},
      {"copyKind"},     {"srcKind"},       {"dstKind"},      {"srcDeviceId"},
      {"srcContextId"}, {"dstDeviceId"},   {"dstContextId"}, {"graphNodeId"}};
  sink_.Begin("CUPTI_ACTIVITY_KIND_MEMCPY", kColumns);
  ForEach(WorkKind::kMemcpy, [&](const GpuWork& work) {
    const Memcpy copy = events_.memcpys[work.index];
    Put(work.gpu, copy.context_id, copy.stream_id, copy.correlation_id, ProcessOf(work.instance),
        copy.size_bytes, copy.copy_kind, copy.source_kind, copy.destination_kind,
        copy.source_device_id, copy.source_context_id, copy.destination_device_id,
        copy.destination_context_id);
    PutNode(copy.graph_node_id);
  });
}

void NsysTables::WriteSets() {
  constexpr ExportColumn kColumns[] = {
      {"start"},     {"end"},   {"deviceId"}, {"contextId"}, {"streamId"},   {"correlationId"},
      {"globalPid"}, {"value"}, {"bytes"},    {"memKind"},   {"graphNodeId"}};
  sink_.Begin("CUPTI_ACTIVITY_KIND_MEMSET", kColumns);
  ForEach(WorkKind::kMemset, [&](const GpuWork& work) {
    const Memset set = events_.memsets[work.index];
    Put(work.gpu, set.context_id, set.stream_id, set.correlation_id, ProcessOf(work.instance),
        set.value, set.size_bytes, set.memory_kind);
    PutNode(set.graph_node_id);
  });
}

void NsysTables::WriteSynchronizations() {
  constexpr ExportColumn kColumns[] = {{"start"},     {"end"},      {"deviceId"},
                                       {"contextId"}, {"streamId"}, {"correlationId"},
                                       {"globalPid"}, {"syncType"}, {"eventId"}};
  sink_.Begin("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", kColumns);
  ForEach(WorkKind::kSynchronization, [&](const GpuWork& work) {
    const Synchronization wait = events_.synchronizations[work.index];
    Put(work.gpu, wait.context_id, wait.stream_id, wait.correlation_id, ProcessOf(work.instance),
        wait.type, wait.event_id);
  });
}

void NsysTables::WriteGraphs() {
  constexpr ExportColumn kColumns[] = {{"start"},         {"end"},       {"deviceId"},
                                       {"graphId"},       {"contextId"}, {"streamId"},
                                       {"correlationId"}, {"globalPid"}};
  sink_.Begin("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", kColumns);
  ForEach(WorkKind::kGraph, [&](const GpuWork& work) {
    const GraphLaunch graph = events_.graph_launches[work.index];
    Put(work.gpu, graph.graph_id, graph.context_id, graph.stream_id, graph.correlation_id,
        ProcessOf(work.instance));
  });
}

// Calls that start work have their thread as the recorder numbers it, and their stack; the others
// have what the library in the program knows.
void NsysTables::WriteCalls() {
  constexpr ExportColumn kColumns[] = {{"start"},       {"end"},           {"eventClass"},
                                       {"globalTid"},   {"correlationId"}, TextColumn("nameId"),
                                       {"returnValue"}, {"callchainId"}};
  sink_.Begin("CUPTI_ACTIVITY_KIND_RUNTIME", kColumns);
  const LaunchesByCall launches(analysis_.correlation.launches);
  for (const ApiCall& call : events_.api_calls) {
    if (sink_.failed()) return;
    const std::optional<Launch> launch = launches.Find(call);
    const uint32_t tid = launches.ThreadOf(call);
    PutTime(call.start_ns);
    PutTime(call.end_ns);
    Put(call.domain == ApiDomain::kRuntime ? 0 : 1,
        GlobalId(analysis_.correlation.PidOf(call.instance), tid), call.correlation_id);
    sink_.Text(analysis_.api_names.Text(
        analysis_.api_names.Of(call.instance, call.domain, call.callback_id)));
    Put(call.return_value);
    if (launch && launch->has_stack) {
      Put(paths_.OfLaunch(*launch).value);
    } else {
      sink_.Null();
    }
    sink_.EndRow();
  }
  sink_.End();
}

void NsysTables::WriteRanges() {
  constexpr ExportColumn kColumns[] = {
      {"start"},    {"end"},         {"eventType"},  {"rangeId"},      {"category"},
      {"color"},    Plain("text"),   {"globalTid"},  {"endGlobalTid"}, TextColumn("textId"),
      {"domainId"}, {"uint64Value"}, {"int64Value"}, {"uint32Value"},  {"int32Value"}};
  sink_.Begin("NVTX_EVENTS", kColumns);
  constexpr uint32_t kCategory = 33, kMark = 34, kPushPop = 59, kStartEnd = 60, kDomain = 75;
  const auto put_number = [this](const NvtxEvent& event, NvtxPayload type, auto value) {
    if (event.payload_type == type) {
      sink_.Signed(static_cast<int64_t>(value));
    } else {
      sink_.Null();
    }
  };
  const auto put = [&](const NvtxEvent& event, uint32_t type, uint64_t start_ns,
                       const uint64_t* end_ns) {
    PutTime(start_ns);
    if (end_ns == nullptr) {
      sink_.Null();
    } else {
      PutTime(*end_ns);
    }
    Put(type, event.range, event.category, event.color);
    sink_.Text(analysis_.model.Text(event.text));
    Put(GlobalId(analysis_.correlation.PidOf(event.instance), event.tid));
    sink_.Null();  // endGlobalTid
    sink_.Null();  // textId: of texts that the program registered
    Put(event.domain);
    put_number(event, NvtxPayload::kUint64, event.payload);
    put_number(event, NvtxPayload::kInt64, event.payload);
    put_number(event, NvtxPayload::kUint32, static_cast<uint32_t>(event.payload));
    put_number(event, NvtxPayload::kInt32, static_cast<int32_t>(event.payload));
    sink_.EndRow();
  };
  for (const NvtxEvent& event : events_.nvtx_events) {
    if (event.kind == NvtxKind::kDomain) put(event, kDomain, event.time_ns, nullptr);
    if (event.kind == NvtxKind::kCategory) put(event, kCategory, event.time_ns, nullptr);
  }
  for (const NvtxRange& range : analysis_.nvtx.all()) {
    if (sink_.failed()) return;
    const bool has_end = range.style != NvtxStyle::kMark && !range.is_open;
    const uint32_t type = range.style == NvtxStyle::kMark      ? kMark
                          : range.style == NvtxStyle::kPushPop ? kPushPop
                                                               : kStartEnd;
    put(*range.event, type, range.start_ns, has_end ? &range.end_ns : nullptr);
  }
  sink_.End();
}

void NsysTables::WriteGpus() {
  constexpr ExportColumn kColumns[] = {{"id"},           Plain("name"),   {"totalMemory"},
                                       {"smCount"},      {"cuDevice"},    Plain("uuid"),
                                       {"computeMajor"}, {"computeMinor"}};
  sink_.Begin("TARGET_INFO_GPU", kColumns);
  for (const GpuDevices::Gpu& gpu : analysis_.gpus.all()) {
    const Device& device = *gpu.device;
    Put(gpu.number);
    sink_.Text(analysis_.model.Text(device.name));
    Put(device.global_memory_bytes, device.multiprocessor_count, device.device_id);
    sink_.Text(ToHex(analysis_.model.Text(device.uuid)));
    Put(device.compute_capability_major, device.compute_capability_minor);
    sink_.EndRow();
  }
  sink_.End();
}

void NsysTables::WriteProcesses() {
  constexpr ExportColumn kColumns[] = {{"globalPid"}, {"pid"}, Plain("name")};
  sink_.Begin("PROCESSES", kColumns);
  for (uint32_t i = 1; i <= analysis_.processes.size() && !sink_.failed(); ++i) {
    const uint32_t pid = analysis_.processes[ProcessId{i}].pid;
    Put(GlobalId(pid), pid);
    sink_.Text(analysis_.processes.Name(ProcessId{i}));
    sink_.EndRow();
  }
  sink_.End();
}

void NsysTables::WriteThreads() {
  constexpr ExportColumn kColumns[] = {TextColumn("nameId"), {"priority"}, {"globalTid"}};
  sink_.Begin("ThreadNames", kColumns);
  for (uint32_t i = 1; i <= analysis_.processes.size() && !sink_.failed(); ++i) {
    const uint32_t pid = analysis_.processes[ProcessId{i}].pid;
    for (const auto& [tid, name] : analysis_.processes.Threads(ProcessId{i})) {
      sink_.Text(name);
      sink_.Null();
      Put(GlobalId(pid, tid));
      sink_.EndRow();
    }
  }
  sink_.End();
}

void NsysTables::WriteEnum(std::string_view table, std::span<const EnumName> names) {
  constexpr ExportColumn kColumns[] = {{"id", ColumnType::kKey}, Plain("name"), Plain("label")};
  sink_.Begin(table, kColumns);
  for (const EnumName& name : names) {
    Put(name.id);
    sink_.Text(name.name);
    sink_.Text(name.label);
    sink_.EndRow();
  }
  sink_.End();
}

}  // namespace

void WriteNsysTables(Analysis& analysis, CallPaths& paths, TableSink& sink) {
  NsysTables tables(analysis, paths, sink);
  tables.WriteKernels();
  tables.WriteCopies();
  tables.WriteSets();
  tables.WriteSynchronizations();
  tables.WriteGraphs();
  tables.WriteCalls();
  tables.WriteRanges();
  tables.WriteGpus();
  tables.WriteProcesses();
  tables.WriteThreads();
  tables.WriteEnum("ENUM_CUDA_MEMCPY_OPER", kCopies);
  tables.WriteEnum("ENUM_CUPTI_SYNC_TYPE", kSynchronizations);
}

}  // namespace xpu
