// The earlier events that a reader needs. They are written again where a capture continues in
// another part, and where definitions may have been lost. Processes, threads and mappings are
// repeated by the process table (LiveState).
//
// Bounded: events of a process are dropped when it ends. Of what a program can create without end
// (NVTX ranges that never end, graph nodes, names) only a limited number is kept, and a limited
// number of bytes for all processes together; the others are in the capture once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "format/events.h"
#include "record/base/fair_budget.h"

namespace xpu {

// An event whose strings remain valid longer than a block.
template <typename Event>
struct KeptEvent {
  Event event;
  std::vector<std::string> texts;  // for its StringIds, in the order of the fields

  // `text_of`: returns the string of a StringId.
  template <typename TextOf>
  KeptEvent(const Event& kept, TextOf&& text_of) : event(kept) {
    VisitFields(event, [&](const char*, auto& field) {
      if constexpr (std::is_same_v<std::decay_t<decltype(field)>, StringId>) {
        texts.emplace_back(text_of(field));
      }
    });
  }
  // Estimated memory, including the entry in a map.
  uint64_t Cost() const {
    uint64_t bytes = sizeof(*this) + 96;
    for (const std::string& text : texts) bytes += sizeof(text) + text.size();
    return bytes;
  }
  // `intern`: returns a StringId that is valid until the event is written.
  template <typename Intern>
  Event Again(Intern&& intern) const {
    Event again = event;
    size_t next = 0;
    VisitFields(again, [&](const char*, auto& field) {
      if constexpr (std::is_same_v<std::decay_t<decltype(field)>, StringId>) {
        field = intern(std::string_view(texts[next++]));
      }
    });
    return again;
  }
};

class PartSnapshot {
 public:
  static constexpr size_t kMaxOpenRanges = 65536;
  static constexpr size_t kMaxNames = 65536;  // of NVTX
  static constexpr size_t kMaxGraphNodes = 65536;
  static constexpr size_t kMaxContainers = 65536;  // processes in one
  static constexpr uint64_t kMaxBytes = uint64_t{256} << 20;
  static constexpr uint64_t kBytesOfEach = uint64_t{64} << 10;  // in addition, for each process
  // The latest clock pairs show the rate of a clock before the first new pair.
  static constexpr size_t kClockPairs = 4;

  template <typename Event>
  static constexpr bool Keeps() {
    return std::is_same_v<Event, RecordingInfo> || std::is_same_v<Event, SampleSource> ||
           std::is_same_v<Event, Probe> || std::is_same_v<Event, GpuProcess> ||
           std::is_same_v<Event, ClockPair> || std::is_same_v<Event, CallbackName> ||
           std::is_same_v<Event, Device> || std::is_same_v<Event, GraphNode> ||
           std::is_same_v<Event, NvtxEvent> || std::is_same_v<Event, RecordingSwitch> ||
           std::is_same_v<Event, RankInfo> || std::is_same_v<Event, NvtxSchemaEntry> ||
           std::is_same_v<Event, ContainerInfo> || std::is_same_v<Event, GpuDevice> ||
           std::is_same_v<Event, GpuMetric> || std::is_same_v<Event, CubinSlice>;
  }

  template <typename Event, typename TextOf>
  void Note(const Event& event, TextOf&& text_of) {
    if constexpr (std::is_same_v<Event, NvtxEvent>) {
      if (!BeginsOrNames(event)) return Leave(event);
    }
    Keep(KeptEvent<Event>(event, text_of));
  }
  // The process has ended and all its events are written.
  void Forget(InstanceId instance);
  // Likewise what is kept by its number.
  void ForgetContainer(uint32_t pid) { containers_.erase(pid); }

  // The recording continues in part `part`, which begins at these times.
  void BeginPart(uint32_t part, uint64_t start_ns, uint64_t start_realtime_ns);

  // Calls write(event) for each event, with strings interned by intern(text).
  template <typename Intern, typename Write>
  void Restate(Intern&& intern, Write&& write) const;

 private:
  // All keys begin with the instance.
  using RangeKey = std::tuple<uint64_t, uint64_t>;                     // range
  using ThreadKey = std::tuple<uint64_t, uint32_t, uint32_t>;          // tid, domain
  using NameKey = std::tuple<uint64_t, NvtxKind, uint32_t, uint64_t>;  // kind, domain, which

  void Keep(const KeptEvent<RecordingInfo>& kept) { infos_.assign(1, kept); }
  void Keep(const KeptEvent<RecordingSwitch>& kept) { switches_.assign(1, kept); }
  void Keep(KeptEvent<SampleSource> kept) { sources_.push_back(std::move(kept)); }
  void Keep(KeptEvent<Probe> kept) { probes_.push_back(std::move(kept)); }
  void Keep(KeptEvent<GpuDevice> kept) { gpu_devices_.push_back(std::move(kept)); }
  void Keep(KeptEvent<GpuMetric> kept) { gpu_metrics_.push_back(std::move(kept)); }
  void Keep(const KeptEvent<GpuProcess>& kept);
  void Keep(KeptEvent<ClockPair> kept);
  void Keep(KeptEvent<CallbackName> kept);
  void Keep(KeptEvent<Device> kept);
  void Keep(KeptEvent<GraphNode> kept);
  void Keep(KeptEvent<NvtxEvent> kept);
  void Keep(const KeptEvent<RankInfo>& kept);
  void Keep(KeptEvent<NvtxSchemaEntry> kept);
  void Keep(const KeptEvent<ContainerInfo>& kept);
  void Keep(KeptEvent<CubinSlice> kept);
  static bool BeginsOrNames(const NvtxEvent& event);
  void Leave(const NvtxEvent& event);

  std::vector<KeptEvent<RecordingInfo>> infos_;
  std::vector<KeptEvent<RecordingSwitch>> switches_;
  std::vector<KeptEvent<SampleSource>> sources_;
  std::vector<KeptEvent<Probe>> probes_;
  std::map<uint32_t, KeptEvent<ContainerInfo>> containers_;  // by pid, of live processes
  std::vector<KeptEvent<GpuDevice>> gpu_devices_;
  std::vector<KeptEvent<GpuMetric>> gpu_metrics_;

  struct Instance {
    FairBudget::Account memory;  // charged for what a program can create without end

    explicit Instance(const FairBudget& budget) : memory(budget) {}
    std::vector<KeptEvent<GpuProcess>> process;  // only the last one
    std::deque<KeptEvent<ClockPair>> clock_pairs;
    std::map<std::pair<ApiDomain, uint32_t>, KeptEvent<CallbackName>> callback_names;
    std::map<uint32_t, KeptEvent<Device>> devices;
    std::vector<KeptEvent<GraphNode>> graph_nodes;
    std::vector<KeptEvent<RankInfo>> rank;                             // only the last one
    using SchemaKey = std::tuple<uint32_t, uint64_t, bool, uint32_t>;  // domain, schema, entry
    std::map<SchemaKey, KeptEvent<NvtxSchemaEntry>> schema_entries;
    std::vector<KeptEvent<CubinSlice>> cubin_slices;
  };
  Instance& Of(InstanceId instance) {
    return instances_.try_emplace(instance.value, budget_).first->second;
  }
  // Returns false if the event is not kept.
  template <typename Event>
  bool TakeMemory(const KeptEvent<Event>& kept);
  template <typename Event>
  void GiveMemory(const KeptEvent<Event>& kept);
  // Replaces the previous event.
  template <typename Map, typename Key, typename Event>
  void Replace(Map& map, const Key& key, KeptEvent<Event> kept);

  FairBudget budget_{kMaxBytes, kBytesOfEach};
  std::map<uint64_t, Instance> instances_;
  size_t graph_nodes_ = 0;
  std::map<NameKey, KeptEvent<NvtxEvent>> nvtx_names_;
  std::map<ThreadKey, std::vector<KeptEvent<NvtxEvent>>> pushed_;  // outermost first
  std::map<RangeKey, KeptEvent<NvtxEvent>> started_;
  size_t open_ranges_ = 0;
};

template <typename Intern, typename Write>
void PartSnapshot::Restate(Intern&& intern, Write&& write) const {
  const auto one = [&](const auto& kept) { write(kept.Again(intern)); };
  for (const auto& info : infos_) one(info);
  for (const auto& change : switches_) one(change);
  for (const auto& source : sources_) one(source);
  for (const auto& probe : probes_) one(probe);
  for (const auto& [pid, container] : containers_) one(container);
  for (const auto& device : gpu_devices_) one(device);
  for (const auto& metric : gpu_metrics_) one(metric);
  for (const auto& [id, instance] : instances_) {
    for (const auto& process : instance.process) one(process);
    for (const auto& pair : instance.clock_pairs) one(pair);
    for (const auto& [key, name] : instance.callback_names) one(name);
    for (const auto& [key, device] : instance.devices) one(device);
    for (const auto& node : instance.graph_nodes) one(node);
    for (const auto& rank : instance.rank) one(rank);
    for (const auto& [key, entry] : instance.schema_entries) one(entry);
    for (const auto& slice : instance.cubin_slices) one(slice);
  }
  for (const auto& [key, name] : nvtx_names_) one(name);
  for (const auto& [key, ranges] : pushed_) {
    for (const auto& range : ranges) one(range);
  }
  for (const auto& [key, range] : started_) one(range);
}

}  // namespace xpu
