#include "report/import/import_trace.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <utility>

#include "format/base/saturated.h"
#include "report/import/import_line.h"

namespace xpu {
namespace {

// The ids that lines of many kinds of records have.
inline std::optional<uint32_t> CorrelationIn(const TraceLine& line) {
  for (const std::string_view name : {"correlationId", "correlation id", "correlation"}) {
    if (line.Number({name})) return line.Number32({name});
  }
  return std::nullopt;
}

// Reads a record that has times, one correlation id and perhaps a place.
template <typename Event>
void ReadIds(const TraceLine& line, Event& event) {
  const auto read = [&](uint32_t& value, std::initializer_list<std::string_view> names) {
    if (line.Number(names)) value = line.Number32(names);
  };
  if constexpr (requires { event.correlation_id; }) {
    event.correlation_id = CorrelationIn(line).value_or(event.correlation_id);
  }
  if constexpr (requires { event.device_id; }) read(event.device_id, {"deviceId", "device"});
  if constexpr (requires { event.context_id; }) read(event.context_id, {"contextId", "context"});
  if constexpr (requires { event.stream_id; }) read(event.stream_id, {"streamId", "stream"});
  if constexpr (requires { event.graph_id; }) read(event.graph_id, {"graphId", "graph ID"});
  if constexpr (requires { event.graph_node_id; }) {
    if (const auto id = line.Number({"graphNodeId", "graph node ID"})) event.graph_node_id = *id;
  }
  if constexpr (requires { event.channel_id; }) {
    read(event.channel_id, {"channelId"});
    if (const auto type = line.Word("channelType"); !type.empty()) {
      event.channel_type = IndexIn(kChannelTypes, type);
    }
  }
}

inline bool HasPlace(const TraceLine& line) {
  return line.Number({"deviceId", "device"}).has_value();
}

class Parser {
 public:
  ImportedTrace Parse(std::string_view text);

 private:
  // A kind of record: what reads its first line, and what reads the indented ones after it. They
  // answer whether the line was one.
  struct Kind {
    std::string_view name;
    bool (Parser::*begin)(const TraceLine&);
    bool (Parser::*go_on)(const TraceLine&);
  };
  static const Kind* KindOf(std::string_view name);
  enum class Verdict : uint8_t { kRead, kUnknown, kBroken };

  Verdict Add(const TraceLine& line, bool is_cut);
  Verdict AddFirst(const Kind& kind, const TraceLine& line, bool is_cut);
  Verdict AddFurther(const TraceLine& line, bool is_cut);
  bool AddOther(const TraceLine& line);
  void TakeBack();

  bool BeginCall(const TraceLine& line);
  bool BeginKernel(const TraceLine& line);
  bool BeginMemcpy(const TraceLine& line);
  bool BeginMemset(const TraceLine& line);
  bool BeginMemory(const TraceLine& line);
  bool BeginOverhead(const TraceLine& line);
  bool BeginSynchronization(const TraceLine& line);
  bool BeginGraph(const TraceLine& line);
  bool BeginMarker(const TraceLine& line);
  bool BeginMarkerData(const TraceLine& line);
  bool BeginDevice(const TraceLine& line);
  bool BeginName(const TraceLine& line);
  bool GoOnKernel(const TraceLine& line);
  bool GoOnMemcpy(const TraceLine& line);
  bool GoOnMemset(const TraceLine& line);
  bool GoOnMemory(const TraceLine& line);
  bool GoOnGraph(const TraceLine& line);
  bool GoOnNothing(const TraceLine&) { return false; }

  template <typename Event>
  Event& Append(std::vector<Imported<Event>>& list, const TraceLine& line);

  ImportedTrace trace_;
  const Kind* open_ = nullptr;       // of the record that indented lines go on
  std::function<void()> take_back_;  // takes that record out again
  bool is_broken_ = false;           // the record has been taken out; it swallows its further lines
  uint32_t pid_ = 0;
};

const Parser::Kind* Parser::KindOf(std::string_view name) {
  static constexpr std::array<Kind, 16> kKinds{{
      {"RUNTIME", &Parser::BeginCall, &Parser::GoOnNothing},
      {"DRIVER", &Parser::BeginCall, &Parser::GoOnNothing},
      {"CONCURRENT_KERNEL", &Parser::BeginKernel, &Parser::GoOnKernel},
      {"CONC KERNEL", &Parser::BeginKernel, &Parser::GoOnKernel},
      {"KERNEL", &Parser::BeginKernel, &Parser::GoOnKernel},
      {"MEMCPY", &Parser::BeginMemcpy, &Parser::GoOnMemcpy},
      {"MEMCPY2", &Parser::BeginMemcpy, &Parser::GoOnMemcpy},
      {"MEMSET", &Parser::BeginMemset, &Parser::GoOnMemset},
      {"MEMORY2", &Parser::BeginMemory, &Parser::GoOnMemory},
      {"OVERHEAD", &Parser::BeginOverhead, &Parser::GoOnNothing},
      {"SYNCHRONIZATION", &Parser::BeginSynchronization, &Parser::GoOnNothing},
      {"GRAPH_TRACE", &Parser::BeginGraph, &Parser::GoOnGraph},
      {"MARKER", &Parser::BeginMarker, &Parser::GoOnNothing},
      {"MARKER_DATA", &Parser::BeginMarkerData, &Parser::GoOnNothing},
      {"DEVICE", &Parser::BeginDevice, &Parser::GoOnNothing},
      {"NAME", &Parser::BeginName, &Parser::GoOnNothing},
  }};
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                 [&](const Kind& known) { return known.name == name; });
  return kind == kKinds.end() ? nullptr : &*kind;
}

ImportedTrace Parser::Parse(std::string_view text) {
  uint64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const bool is_cut = end == text.size();  // a whole line has its end
    const TraceLine line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.is_empty()) continue;
    const Verdict verdict = Add(line, is_cut);
    if (verdict == Verdict::kUnknown) trace_.unknown.Count(number, line.text());
    if (verdict == Verdict::kBroken) trace_.broken.Count(number, line.text());
  }
  return std::move(trace_);
}

Parser::Verdict Parser::Add(const TraceLine& line, bool is_cut) {
  if (line.goes_on()) return AddFurther(line, is_cut);
  const Kind* kind = KindOf(line.kind());
  // Output of the program may come between the lines of a record.
  if (kind == nullptr && !line.looks_like_record()) {
    return AddOther(line) ? Verdict::kRead : Verdict::kUnknown;
  }
  open_ = nullptr;
  is_broken_ = false;
  return kind == nullptr ? Verdict::kUnknown : AddFirst(*kind, line, is_cut);
}

Parser::Verdict Parser::AddFirst(const Kind& kind, const TraceLine& line, bool is_cut) {
  take_back_ = nullptr;
  const bool is_one = (this->*kind.begin)(line);
  if (is_one && !is_cut && !is_broken_ && !line.is_broken()) {
    open_ = &kind;
    return Verdict::kRead;
  }
  TakeBack();
  // Words of the program may look like the beginning of a record; times look like nothing else.
  const bool has_times = line.text().find('[') != std::string_view::npos;
  return is_one || has_times ? Verdict::kBroken : Verdict::kUnknown;
}

Parser::Verdict Parser::AddFurther(const TraceLine& line, bool is_cut) {
  if (open_ == nullptr) return is_broken_ ? Verdict::kRead : Verdict::kUnknown;
  const bool is_one = (this->*open_->go_on)(line);
  if (!is_cut && !line.is_broken()) return is_one ? Verdict::kRead : Verdict::kUnknown;
  TakeBack();
  return Verdict::kBroken;
}

// A record that is incomplete would say what was not.
void Parser::TakeBack() {
  if (take_back_) take_back_();
  take_back_ = nullptr;
  open_ = nullptr;
  is_broken_ = true;
}

// "Dropped 12 activity records"
bool Parser::AddOther(const TraceLine& line) {
  constexpr std::string_view kDropped = "Dropped ";
  if (!line.text().starts_with(kDropped)) return false;
  if (line.text().find("activity record") == std::string_view::npos) return false;
  const auto count = LeadingNumber(line.text().substr(kDropped.size()));
  if (!count) return false;
  trace_.dropped_records = AddSaturated(trace_.dropped_records, *count);
  return true;
}

template <typename Event>
Event& Parser::Append(std::vector<Imported<Event>>& list, const TraceLine& line) {
  Imported<Event>& imported = list.emplace_back();
  take_back_ = [&list] { list.pop_back(); };
  if (line.Number({"processId", "process"})) pid_ = line.Number32({"processId", "process"});
  imported.pid = pid_;
  imported.name = line.quoted();
  if constexpr (requires { imported.event.end_ns; }) {
    imported.event.start_ns = line.times()->start_ns;
    imported.event.end_ns = line.times()->end_ns;
  }
  ReadIds(line, imported.event);
  // Without its call a record means something else. Those of memory have it in a further line.
  constexpr bool kNeedsCall = requires { imported.event.correlation_id; }
  &&!std::is_same_v<Event, Overhead> && !std::is_same_v<Event, MemoryOperation>;
  is_broken_ |= kNeedsCall && !CorrelationIn(line);
  return imported.event;
}

bool Parser::BeginCall(const TraceLine& line) {
  if (!line.times()) return false;
  ApiCall& call = Append(trace_.calls, line);
  call.domain = line.kind() == "RUNTIME" ? ApiDomain::kRuntime : ApiDomain::kDriver;
  call.callback_id = line.Number32({"cbid"});
  call.tid = line.Number32({"threadId", "thread"});
  return true;
}

bool Parser::BeginKernel(const TraceLine& line) {
  if (!line.times() || line.quoted().empty()) return false;
  Kernel& kernel = Append(trace_.kernels, line);
  const uint64_t requested = line.Number64({"cacheConfigRequested"}) & 0xf;
  const uint64_t executed = line.Number64({"cacheConfigExecuted"}) & 0xf;
  kernel.cache_config = static_cast<uint8_t>(requested | executed << 4);
  return true;
}

bool Parser::GoOnKernel(const TraceLine& line) {
  Kernel& kernel = trace_.kernels.back().event;
  const auto grid = line.Triple("grid");
  const auto block = line.Triple("block");
  if (!grid && !block) {
    ReadIds(line, kernel);
    return HasPlace(line);
  }
  const auto set = [](const auto& triple, auto& x, auto& y, auto& z) {
    if (!triple) return;
    using Number = std::remove_reference_t<decltype(x)>;
    x = static_cast<Number>((*triple)[0]);
    y = static_cast<Number>((*triple)[1]);
    z = static_cast<Number>((*triple)[2]);
  };
  set(grid, kernel.grid_x, kernel.grid_y, kernel.grid_z);
  set(block, kernel.block_x, kernel.block_y, kernel.block_z);
  set(line.Triple("cluster"), kernel.cluster_x, kernel.cluster_y, kernel.cluster_z);
  kernel.static_shared_memory_bytes = static_cast<int32_t>(line.Number32({"(static", "static"}));
  kernel.dynamic_shared_memory_bytes = static_cast<int32_t>(line.Number32({"dynamic"}));
  return true;
}

bool Parser::BeginMemcpy(const TraceLine& line) {
  if (!line.times()) return false;
  const std::string_view kind = line.quoted().empty() ? line.word() : line.quoted();
  Memcpy& copy = Append(trace_.memcpys, line);
  trace_.memcpys.back().name.clear();
  copy.peer_to_peer = line.kind() == "MEMCPY2";
  copy.copy_kind = static_cast<uint8_t>(IndexIn(kCopyKindWords, kind));
  copy.size_bytes = line.Number64({"size"});
  copy.copy_count = line.Number64({"copyCount"});
  copy.source_kind = static_cast<uint8_t>(IndexIn(kMemoryKinds, line.Word("srcKind")));
  copy.destination_kind = static_cast<uint8_t>(IndexIn(kMemoryKinds, line.Word("dstKind")));
  return true;
}

bool Parser::GoOnMemcpy(const TraceLine& line) {
  Memcpy& copy = trace_.memcpys.back().event;
  if (line.Number({"srcDeviceId"})) {
    copy.source_device_id = line.Number32({"srcDeviceId"});
    copy.source_context_id = line.Number32({"srcContextId"});
    copy.destination_device_id = line.Number32({"dstDeviceId"});
    copy.destination_context_id = line.Number32({"dstContextId"});
    return true;
  }
  ReadIds(line, copy);
  return HasPlace(line);
}

bool Parser::BeginMemset(const TraceLine& line) {
  if (!line.times()) return false;
  Memset& set = Append(trace_.memsets, line);
  set.value = line.Number32({"value"});
  set.size_bytes = line.Number64({"size"});
  return true;
}

bool Parser::GoOnMemset(const TraceLine& line) {
  ReadIds(line, trace_.memsets.back().event);
  return HasPlace(line);
}

bool Parser::BeginMemory(const TraceLine& line) {
  if (!line.times()) return false;
  MemoryOperation& memory = Append(trace_.memory_operations, line);
  memory.time_ns = line.times()->start_ns;
  memory.operation = IndexIn(kMemoryOperations, line.Word("memoryOperationType"));
  memory.memory_kind = IndexIn(kMemoryKinds, line.Word("memoryKind"));
  memory.size_bytes = line.Number64({"size"});
  memory.address = line.Number64({"address"});
  return true;
}

bool Parser::GoOnMemory(const TraceLine& line) {
  Imported<MemoryOperation>& imported = trace_.memory_operations.back();
  MemoryOperation& memory = imported.event;
  if (HasPlace(line)) {
    ReadIds(line, memory);
    if (line.Number({"processId"})) pid_ = imported.pid = line.Number32({"processId"});
    memory.is_async = line.Number64({"isAsync"}) != 0;
    return true;
  }
  if (const std::string_view pool = line.Word("memoryPool"); !pool.empty()) {
    memory.pool_type = IndexIn(kPoolTypes, pool);
    memory.pool_address = line.Number64({"memoryPoolAddress"});
    return true;
  }
  if (const auto size = line.Number({"memoryPoolSize"})) {
    memory.pool_size_bytes = *size;
    memory.pool_utilized_bytes = line.Number64({"memoryPoolUtilizedSize"});
    return true;
  }
  return line.Number({"memoryPoolProcessId"}).has_value() || !line.Word("source").empty();
}

// "OVERHEAD CUPTI_RESOURCE [ 1, 2 ] duration 1, THREAD, id 7, correlation id 0"
bool Parser::BeginOverhead(const TraceLine& line) {
  if (!line.times()) return false;
  Overhead& overhead = Append(trace_.overheads, line);
  overhead.overhead_kind = OverheadKindOf(line.word());
  overhead.object_kind = ObjectKindIn(line.fields());
  // The ids of a process and its thread, or of a device, its context and its stream, share their
  // words.
  static constexpr std::array<uint32_t Overhead::*, 6> kWords = {
      &Overhead::object_id_0, &Overhead::object_id_0, &Overhead::object_id_1,
      &Overhead::object_id_0, &Overhead::object_id_1, &Overhead::object_id_2};
  if (overhead.object_kind != 0) overhead.*kWords[overhead.object_kind] = line.Number32({"id"});
  return true;
}

bool Parser::BeginSynchronization(const TraceLine& line) {
  if (!line.times()) return false;
  Synchronization& wait = Append(trace_.synchronizations, line);
  wait.type = IndexIn(kSynchronizationTypes, line.Word("type"));
  wait.event_id = line.Number32({"eventId"});
  wait.event_sync_id = line.Number64({"cudaEventSyncId"});
  return true;
}

bool Parser::BeginGraph(const TraceLine& line) {
  if (!line.times()) return false;
  Append(trace_.graph_launches, line);
  return true;
}

bool Parser::GoOnGraph(const TraceLine& line) {
  ReadIds(line, trace_.graph_launches.back().event);
  return HasPlace(line);
}

bool Parser::BeginMarker(const TraceLine& line) {
  // "MARKER [ 5 ] id 1, domain ..., name ...", before CUDA 11.8 "MARKER id 1 [ 5 ], name ..."
  std::string_view numbers = Trimmed(line.word().empty() ? line.fields() : line.word());
  if (!line.times() || !numbers.starts_with("id ")) return false;
  const auto id = LeadingNumber(numbers.substr(3));
  if (!id) return false;
  ImportedMarker& marker = trace_.markers.emplace_back();
  take_back_ = [this] { trace_.markers.pop_back(); };
  marker.time_ns = line.times()->start_ns;
  marker.id = static_cast<uint32_t>(*id);
  marker.pid = pid_;
  const MarkerTexts texts = MarkerTextsOf(line.fields());
  marker.name = texts.name;
  marker.domain = texts.domain;
  return true;
}

bool Parser::BeginMarkerData(const TraceLine& line) {
  const auto id = line.Number({"id"});
  if (!id) return false;
  MarkerData& data = trace_.marker_data[static_cast<uint32_t>(*id)];
  take_back_ = [this, id] { trace_.marker_data.erase(static_cast<uint32_t>(*id)); };
  data.color = line.Number32({"color"});
  data.category = line.Number32({"category"});
  data.payload = line.Number64({"payload"});
  data.payload_type = PayloadTypeOf(data.payload, line.Word("payload"));
  return true;
}

// "DEVICE NVIDIA H100 [ 0 ]", before CUDA 11.8 "DEVICE Tesla V100 (0), capability 7.0, ..."
bool Parser::BeginDevice(const TraceLine& line) {
  const std::string_view text = line.text().substr(line.kind().size());
  const size_t open = text.find_last_of("[(", std::min(text.find("), capability"), text.size()));
  if (open == std::string_view::npos) return false;
  const auto id = LeadingNumber(text.substr(open + 1));
  if (!id) return false;
  Imported<Device>& imported = trace_.devices.emplace_back();
  take_back_ = [this] { trace_.devices.pop_back(); };
  imported.event.device_id = static_cast<uint32_t>(*id);
  imported.name = Trimmed(text.substr(0, open));
  imported.pid = pid_;
  const std::string_view capability = line.Word("capability");
  const size_t dot = capability.find('.');
  if (dot != std::string_view::npos) {
    imported.event.compute_capability_major =
        static_cast<uint32_t>(LeadingNumber(capability).value_or(0));
    imported.event.compute_capability_minor =
        static_cast<uint32_t>(LeadingNumber(capability.substr(dot + 1)).value_or(0));
  }
  imported.event.multiprocessor_count = line.Number32({"multiprocessors"});
  imported.event.global_memory_bytes = (line.Number64({"size"}) & 0xffff'ffff) << 20;  // MB
  return true;
}

// "NAME THREAD id 7, name worker"
bool Parser::BeginName(const TraceLine& line) {
  const std::string_view fields = Trimmed(line.fields());
  constexpr std::string_view kName = ", name ";
  const size_t name = fields.find(kName);
  const auto id = line.Number({"id"});
  if (!fields.starts_with("THREAD ") || name == std::string_view::npos || !id) return false;
  trace_.thread_names.push_back(
      {static_cast<uint32_t>(*id), std::string(Trimmed(fields.substr(name + kName.size())))});
  take_back_ = [this] { trace_.thread_names.pop_back(); };
  return true;
}

}  // namespace

ImportedTrace ParseCuptiText(std::string_view text) { return Parser().Parse(text); }

}  // namespace xpu
