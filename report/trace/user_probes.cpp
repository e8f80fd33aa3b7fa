#include "report/trace/user_probes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "format/base/path.h"
#include "format/base/saturated.h"
#include "format/base/text.h"
#include "format/probe_names.h"

namespace xpu {
namespace {

// The function that an entry and the return from it have in common.
using Function = std::tuple<StringId, StringId, bool>;  // file, name, in the kernel

Function FunctionOf(const Probe& probe) {
  const bool in_kernel = probe.kind == ProbeKind::kKprobe || probe.kind == ProbeKind::kKretprobe;
  return {probe.path, probe.function, in_kernel};
}

bool IsEntry(const Probe& probe) {
  return (probe.kind == ProbeKind::kUprobe || probe.kind == ProbeKind::kKprobe) &&
         probe.offset == 0;
}

// Entries that wait for their return. Calls of a function nest: the last entry returns first.
class OpenCalls {
 public:
  void Enter(const ProbeHit& hit, const Probe& probe) {
    open_[KeyOf(hit, probe)].push_back(hit.time_ns);
  }
  // Returns whether the entry was seen, and when it was.
  std::pair<bool, uint64_t> Return(const ProbeHit& hit, const Probe& probe) {
    const auto found = open_.find(KeyOf(hit, probe));
    if (found == open_.end() || found->second.empty()) return {false, 0};
    const uint64_t entered_ns = found->second.back();
    found->second.pop_back();
    return {true, entered_ns};
  }

 private:
  using Key = std::tuple<uint32_t, uint32_t, Function>;
  static Key KeyOf(const ProbeHit& hit, const Probe& probe) {
    return {hit.pid, hit.tid, FunctionOf(probe)};
  }
  std::map<Key, std::vector<uint64_t>> open_;
};

void AddCall(uint64_t ns, ProbeTimes& row) {
  row.smallest_ns = row.calls == 0 ? ns : std::min(row.smallest_ns, ns);
  row.largest_ns = std::max(row.largest_ns, ns);
  row.total_ns = AddSaturated(row.total_ns, ns);
  ++row.calls;
}

}  // namespace

bool IsReturn(const Probe& probe) {
  return probe.kind == ProbeKind::kUretprobe || probe.kind == ProbeKind::kKretprobe;
}

UserProbes::UserProbes(const Model& model) : model_(model) {
  for (const Probe& probe : model.events.probes) {
    if (probe.purpose == ProbePurpose::kUser) probes_.try_emplace(probe.probe, &probe);
  }
}

const Probe* UserProbes::Of(const ProbeHit& hit) const {
  const auto found = probes_.find(hit.probe);
  return found == probes_.end() ? nullptr : found->second;
}

std::string UserProbes::NameOf(const Probe& probe) const {
  std::string name(model_.Text(probe.function));
  if (name.empty()) name = "[unnamed]";
  if (probe.offset != 0) AppendFormat(name, "+{:#x}", probe.offset);
  if (IsReturn(probe)) name += "%return";
  return name;
}

std::string UserProbes::PlaceOf(const Probe& probe) const {
  const std::string_view path = model_.Text(probe.path);
  std::string place;
  if (!path.empty()) AppendFormat(place, "{}:", FileNameOf(path));
  place += model_.Text(probe.function);
  if (probe.offset != 0) AppendFormat(place, "+{:#x}", probe.offset);
  return place;
}

std::string UserProbes::TitleOf(const Probe& probe) const {
  return Format("{} {}", ProbeKindName(probe.kind), PlaceOf(probe));
}

std::vector<ProbeTimes> FindProbeTimes(const Model& model, const Selection& shown) {
  const UserProbes probes(model);
  std::map<std::string, ProbeTimes> rows;  // several captures have the same probe
  std::unordered_map<const Probe*, ProbeTimes*> row_of;
  for (const Probe& probe : model.events.probes) {
    if (probe.purpose != ProbePurpose::kUser) continue;
    const std::string title = probes.TitleOf(probe);
    ProbeTimes& row = rows[title];
    row.name = title;
    row_of[&probe] = &row;
  }
  OpenCalls calls;
  for (const ProbeHit& hit : Selected(model.events.probe_hits, shown.events.probe_hits)) {
    const Probe* probe = probes.Of(hit);
    if (probe == nullptr) continue;
    ProbeTimes& row = *row_of.at(probe);
    ++row.hits;
    if (IsEntry(*probe)) calls.Enter(hit, *probe);
    if (!IsReturn(*probe)) continue;
    const auto [is_known, entered_ns] = calls.Return(hit, *probe);
    if (is_known && entered_ns <= hit.time_ns) AddCall(hit.time_ns - entered_ns, row);
  }
  std::vector<ProbeTimes> sorted;
  for (auto& [name, row] : rows) sorted.push_back(std::move(row));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ProbeTimes& a, const ProbeTimes& b) { return a.hits > b.hits; });
  return sorted;
}

}  // namespace xpu
