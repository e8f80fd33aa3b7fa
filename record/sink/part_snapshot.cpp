#include "record/sink/part_snapshot.h"

#include <utility>

namespace xpu {
namespace {

// For a map whose key begins with the instance.
template <typename Map, typename Erased>
void EraseInstance(Map& map, uint64_t instance, Erased&& erased) {
  for (auto at = map.begin(); at != map.end();) {
    if (std::get<0>(at->first) == instance) {
      erased(at->second);
      at = map.erase(at);
    } else {
      ++at;
    }
  }
}

}  // namespace

void PartSnapshot::BeginPart(uint32_t part, uint64_t start_ns, uint64_t start_realtime_ns) {
  for (auto& info : infos_) {
    info.event.part = part;
    info.event.start_ns = start_ns;
    info.event.start_realtime_ns = start_realtime_ns;
  }
}

void PartSnapshot::Forget(InstanceId instance) {
  const auto found = instances_.find(instance.value);
  if (found != instances_.end()) {
    graph_nodes_ -= found->second.graph_nodes.size();
    instances_.erase(found);
  }
  EraseInstance(nvtx_names_, instance.value, [](const auto&) {});
  EraseInstance(pushed_, instance.value,
                [this](const auto& ranges) { open_ranges_ -= ranges.size(); });
  EraseInstance(started_, instance.value, [this](const auto&) { --open_ranges_; });
}

template <typename Event>
bool PartSnapshot::TakeMemory(const KeptEvent<Event>& kept) {
  return Of(kept.event.instance).memory.Take(kept.Cost());
}

template <typename Event>
void PartSnapshot::GiveMemory(const KeptEvent<Event>& kept) {
  Of(kept.event.instance).memory.Give(kept.Cost());
}

template <typename Map, typename Key, typename Event>
void PartSnapshot::Replace(Map& map, const Key& key, KeptEvent<Event> kept) {
  if (const auto known = map.find(key); known != map.end()) {
    GiveMemory(known->second);
    map.erase(known);
  }
  if (TakeMemory(kept)) map.emplace(key, std::move(kept));
}

void PartSnapshot::Keep(const KeptEvent<GpuProcess>& kept) {
  Of(kept.event.instance).process.assign(1, kept);
}

void PartSnapshot::Keep(KeptEvent<ClockPair> kept) {
  auto& pairs = Of(kept.event.instance).clock_pairs;
  if (pairs.size() >= kClockPairs) pairs.pop_front();
  pairs.push_back(std::move(kept));
}

void PartSnapshot::Keep(KeptEvent<CallbackName> kept) {
  const std::pair key(kept.event.domain, kept.event.callback_id);
  Replace(Of(kept.event.instance).callback_names, key, std::move(kept));
}

void PartSnapshot::Keep(KeptEvent<Device> kept) {
  Replace(Of(kept.event.instance).devices, kept.event.device_id, std::move(kept));
}

void PartSnapshot::Keep(const KeptEvent<RankInfo>& kept) {
  Of(kept.event.instance).rank.assign(1, kept);
}

void PartSnapshot::Keep(const KeptEvent<ContainerInfo>& kept) {
  const uint32_t pid = kept.event.pid;
  containers_.erase(pid);
  if (kept.event.id && containers_.size() < kMaxContainers) containers_.try_emplace(pid, kept);
}

void PartSnapshot::Keep(KeptEvent<NvtxSchemaEntry> kept) {
  const NvtxSchemaEntry& entry = kept.event;
  const Instance::SchemaKey key{entry.domain, entry.schema, entry.is_enumeration, entry.entry};
  Replace(Of(entry.instance).schema_entries, key, std::move(kept));
}

void PartSnapshot::Keep(KeptEvent<CubinSlice> kept) {
  if (TakeMemory(kept)) Of(kept.event.instance).cubin_slices.push_back(std::move(kept));
}

void PartSnapshot::Keep(KeptEvent<GraphNode> kept) {
  if (graph_nodes_ >= kMaxGraphNodes || !TakeMemory(kept)) return;
  ++graph_nodes_;
  Of(kept.event.instance).graph_nodes.push_back(std::move(kept));
}

// ---- NVTX --------------------------------------------------------------------------------------

bool PartSnapshot::BeginsOrNames(const NvtxEvent& event) {
  return event.kind != NvtxKind::kMark && event.kind != NvtxKind::kPop &&
         event.kind != NvtxKind::kEnd;
}

void PartSnapshot::Keep(KeptEvent<NvtxEvent> kept) {
  const NvtxEvent event = kept.event;
  const uint64_t instance = event.instance.value;
  if (event.kind == NvtxKind::kPush) {
    if (open_ranges_ >= kMaxOpenRanges || !TakeMemory(kept)) return;
    ++open_ranges_;
    pushed_[{instance, event.tid, event.domain}].push_back(std::move(kept));
  } else if (event.kind == NvtxKind::kStart) {
    const RangeKey key{instance, event.range};
    if (open_ranges_ >= kMaxOpenRanges || started_.contains(key) || !TakeMemory(kept)) return;
    started_.emplace(key, std::move(kept));
    ++open_ranges_;
  } else if (nvtx_names_.size() < kMaxNames) {
    const uint64_t which = event.kind == NvtxKind::kThread ? event.range : event.category;
    Replace(nvtx_names_, NameKey{instance, event.kind, event.domain, which}, std::move(kept));
  }
}

void PartSnapshot::Leave(const NvtxEvent& event) {
  if (event.kind == NvtxKind::kEnd) {
    const auto range = started_.find({event.instance.value, event.range});
    if (range == started_.end()) return;
    GiveMemory(range->second);
    started_.erase(range);
    --open_ranges_;
    return;
  }
  if (event.kind != NvtxKind::kPop) return;
  const auto thread = pushed_.find({event.instance.value, event.tid, event.domain});
  if (thread == pushed_.end()) return;
  --open_ranges_;
  GiveMemory(thread->second.back());
  thread->second.pop_back();
  if (thread->second.empty()) pushed_.erase(thread);
}

}  // namespace xpu
