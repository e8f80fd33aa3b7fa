#include "report/process_table.h"

#include <algorithm>
#include <limits>

namespace xpu {
namespace {

// The last element of `since` whose time is not after `time_ns`, else the first; null when empty.
template <typename Value>
const Value* LastSince(const std::vector<std::pair<uint64_t, Value>>& since, uint64_t time_ns) {
  if (since.empty()) return nullptr;
  const auto after =
      std::upper_bound(since.begin(), since.end(), time_ns,
                       [](uint64_t time, const auto& entry) { return time < entry.first; });
  return after == since.begin() ? &since.front().second : &std::prev(after)->second;
}

}  // namespace

ProcessTable::ProcessTable(const Model& model) : model_(model), spaces_(model.events.mappings) {
  const std::vector<ProcessEvent>& events = model.events.process_events;
  const std::vector<Mapping>& mappings = model.events.mappings;
  size_t next_event = 0;
  for (uint32_t i = 0; i < mappings.size(); ++i) {
    while (next_event < events.size() && events[next_event].time_ns <= mappings[i].time_ns) {
      Apply(events[next_event++]);
    }
    ApplyMapping(i);
  }
  while (next_event < events.size()) Apply(events[next_event++]);
  spaces_.Finish();
}

ProcessId ProcessTable::Start(uint32_t pid, uint64_t time_ns, ProcessId parent) {
  SpaceId space = parent ? (*this)[parent].spaces.back().second : SpaceId{};
  space = spaces_.Create(space, time_ns);
  processes_.push_back({.pid = pid,
                        .parent = parent,
                        .start_ns = time_ns,
                        .end_ns = 0,
                        .exec_count = 0,
                        .spaces = {{time_ns, space}}});
  const ProcessId id{static_cast<uint32_t>(processes_.size())};
  by_pid_[pid].push_back(id);
  return id;
}

ProcessId ProcessTable::Current(uint32_t pid, uint64_t time_ns) {
  const auto found = by_pid_.find(pid);
  if (found != by_pid_.end()) return found->second.back();
  return Start(pid, time_ns, ProcessId{});
}

void ProcessTable::SetName(ProcessId process, uint32_t tid, uint64_t time_ns, StringId name) {
  if (!name) return;
  Names& names = thread_names_[{process, tid}];
  if (!names.empty() && model_.Text(names.back().second) == model_.Text(name)) return;
  names.emplace_back(time_ns, name);
}

void ProcessTable::Apply(const ProcessEvent& event) {
  switch (event.kind) {
    case ProcessEventKind::kExisting: {
      const bool is_new = !by_pid_.contains(event.pid);
      const ProcessId process = Current(event.pid, event.time_ns);
      // It was there before its record, unless the record only repeats one that is damaged.
      if (is_new && !event.restated) processes_[process.value - 1].start_ns = 0;
      SetName(process, event.tid, event.time_ns, event.name);
      return;
    }
    case ProcessEventKind::kFork:
      return ApplyFork(event);
    case ProcessEventKind::kExec:
      return ApplyExec(event);
    case ProcessEventKind::kName:
      return SetName(Current(event.pid, event.time_ns), event.tid, event.time_ns, event.name);
    case ProcessEventKind::kExit:
      if (event.tid != event.pid) return;
      processes_[Current(event.pid, event.time_ns).value - 1].end_ns = event.time_ns;
      return;
  }
}

void ProcessTable::ApplyFork(const ProcessEvent& event) {
  const ProcessId parent = Current(event.parent_pid, event.time_ns);
  const StringId name = NameAt(parent, event.parent_tid, event.time_ns);
  if (event.pid == event.parent_pid) {
    // A kernel reuses tids too: the new thread's name replaces the old one's.
    return SetName(parent, event.tid, event.time_ns, name);
  }
  if (event.restated && by_pid_.contains(event.pid)) return;
  const ProcessId child = Start(event.pid, event.time_ns, parent);
  SetName(child, event.tid, event.time_ns, name);
}

void ProcessTable::ApplyExec(const ProcessEvent& event) {
  const ProcessId process = Current(event.pid, event.time_ns);
  SetName(process, event.pid, event.time_ns, event.name);
  Process& entry = processes_[process.value - 1];
  entry.spaces.emplace_back(event.time_ns, spaces_.Create(SpaceId{}, event.time_ns));
  ++entry.exec_count;
}

void ProcessTable::ApplyMapping(uint32_t index) {
  const Mapping& mapping = model_.events.mappings[index];
  const ProcessId process = Current(mapping.pid, mapping.time_ns);
  const SpaceId space = (*this)[process].spaces.back().second;
  if (mapping.restated && spaces_.Holds(space, index)) return;
  spaces_.Map(space, index);
}

ProcessId ProcessTable::At(uint32_t pid, uint64_t time_ns) const {
  const auto found = by_pid_.find(pid);
  if (found == by_pid_.end()) return ProcessId{};
  const std::vector<ProcessId>& lives = found->second;
  const auto after =
      std::upper_bound(lives.begin(), lives.end(), time_ns,
                       [&](uint64_t time, ProcessId id) { return time < (*this)[id].start_ns; });
  return after == lives.begin() ? lives.front() : *std::prev(after);
}

SpaceId ProcessTable::SpaceAt(ProcessId process, uint64_t time_ns) const {
  return process ? *LastSince((*this)[process].spaces, time_ns) : SpaceId{};
}

StringId ProcessTable::NameAt(ProcessId process, uint32_t tid, uint64_t time_ns) const {
  if (!process) return StringId{};
  auto found = thread_names_.find({process, tid});
  if (found == thread_names_.end()) found = thread_names_.find({process, (*this)[process].pid});
  if (found == thread_names_.end()) return StringId{};
  return *LastSince(found->second, time_ns);
}

std::string_view ProcessTable::ThreadName(ProcessId process, uint32_t tid, uint64_t time_ns) const {
  return model_.Text(NameAt(process, tid, time_ns));
}

std::string_view ProcessTable::Name(ProcessId process) const {
  constexpr uint64_t kAtTheEnd = std::numeric_limits<uint64_t>::max();
  return process ? ThreadName(process, (*this)[process].pid, kAtTheEnd) : std::string_view();
}

std::vector<std::pair<uint32_t, std::string_view>> ProcessTable::Threads(ProcessId process) const {
  std::vector<std::pair<uint32_t, std::string_view>> threads;
  for (auto i = thread_names_.lower_bound({process, 0});
       i != thread_names_.end() && i->first.first == process; ++i) {
    threads.emplace_back(i->first.second, model_.Text(i->second.back().second));
  }
  return threads;
}

}  // namespace xpu
