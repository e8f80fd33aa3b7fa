#include "report/model/process_history.h"

#include "format/base/check.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr uint64_t kAtTheEnd = std::numeric_limits<uint64_t>::max();

// Mappings and spaces that one look-up goes through: a hostile file may pile up any number of them.
constexpr int kMaxSteps = 4096;

uint64_t EndOf(const Mapping& mapping) {
  const uint64_t end = mapping.start_address + mapping.size_bytes;
  return end < mapping.start_address ? std::numeric_limits<uint64_t>::max() : end;
}

template <typename Value>
InTime<Value> LastSince(const std::vector<std::pair<uint64_t, Value>>& since, uint64_t time_ns) {
  return LastSince(
      since, time_ns, [](const auto& entry) { return entry.first; },
      [](const auto& entry) { return entry.second; });
}

}  // namespace

SpaceId AddressSpaces::Create(SpaceId parent, uint64_t time_ns) {
  spaces_.push_back({.parent = parent, .copied_ns = time_ns});
  return SpaceId{static_cast<uint32_t>(spaces_.size())};
}

void AddressSpaces::Map(SpaceId space, uint32_t index) {
  Space& own = spaces_.at(space.value - 1);
  own.by_start.push_back(index);
  own.newest_at[mappings_[index].start_address] = index;
}

bool AddressSpaces::Holds(SpaceId space, uint32_t index) const {
  const Mapping& wanted = mappings_[index];
  const std::map<uint64_t, uint32_t>& newest_at = spaces_.at(space.value - 1).newest_at;
  const auto found = newest_at.find(wanted.start_address);
  if (found == newest_at.end()) return false;
  const Mapping& known = mappings_[found->second];
  return known.size_bytes == wanted.size_bytes && known.file_offset == wanted.file_offset &&
         known.inode == wanted.inode;
}

void AddressSpaces::Finish() {
  for (Space& space : spaces_) {
    space.newest_at.clear();
    std::stable_sort(space.by_start.begin(), space.by_start.end(), [&](uint32_t a, uint32_t b) {
      return mappings_[a].start_address < mappings_[b].start_address;
    });
    space.index.Set(space.by_start.size(),
                    [&](size_t i) { return EndOf(mappings_[space.by_start[i]]); });
  }
}

template <typename Visit>
void AddressSpaces::ForEachOver(const Space& space, uint64_t address, int& steps,
                                Visit&& visit) const {
  const auto after = std::upper_bound(
      space.by_start.begin(), space.by_start.end(), address,
      [&](uint64_t value, uint32_t index) { return value < mappings_[index].start_address; });
  const auto count = static_cast<size_t>(after - space.by_start.begin());
  space.index.ForEachDown(count, address, [&](size_t i) {
    if (steps == 0) return false;
    --steps;
    const Mapping& mapping = mappings_[space.by_start[i]];
    if (EndOf(mapping) > address) visit(mapping);
    return true;
  });
}

AddressSpaces::Found AddressSpaces::Find(SpaceId id, uint64_t address, uint64_t time_ns) const {
  const Mapping* newest = nullptr;    // not after time_ns
  const Mapping* earliest = nullptr;  // after it
  int seen = 0;
  int steps = kMaxSteps;
  const auto count = [&](Found found) {
    steps_ += static_cast<uint64_t>(kMaxSteps - steps);
    return found;
  };
  for (; id && steps > 0; id = spaces_[id.value - 1].parent) {
    --steps;
    const Space& space = spaces_.at(id.value - 1);
    ForEachOver(space, address, steps, [&](const Mapping& mapping) {
      ++seen;
      // If two mappings have one time, the later one in the file counts; it is visited first.
      if (mapping.time_ns <= time_ns) {
        if (newest == nullptr || mapping.time_ns > newest->time_ns) newest = &mapping;
      } else if (earliest == nullptr || mapping.time_ns < earliest->time_ns) {
        earliest = &mapping;
      }
    });
    if (newest != nullptr && seen == 1) return count({newest, !space.parent});
    if (newest != nullptr) return count({newest, false});
    // Mappings that the parent made after the copy are not in the copy.
    time_ns = std::min(time_ns, space.copied_ns);
    if (space.parent && earliest != nullptr) seen = 2;
  }
  return count({earliest, seen <= 1});
}

std::vector<uint64_t> AddressSpaces::ChangesOf(SpaceId space) const {
  std::vector<uint64_t> times;
  for (const uint32_t index : spaces_.at(space.value - 1).by_start) {
    times.push_back(mappings_[index].time_ns);
  }
  return times;
}

ProcessHistory::ProcessHistory(const Model& model)
    : model_(model), spaces_(model.events.mappings.rows()) {
  const auto& events = model.events.process_events;
  const auto& mappings = model.events.mappings;
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

ProcessId ProcessHistory::Start(uint32_t pid, uint64_t time_ns, ProcessId parent) {
  SpaceId space = parent ? (*this)[parent].spaces.back().second : SpaceId{};
  space = spaces_.Create(space, time_ns);
  processes_.push_back({.pid = pid,
                        .parent = parent,
                        .start_ns = time_ns,
                        .end_ns = 0,
                        .exec_count = 0,
                        .spaces = {{time_ns, space}}});
  const ProcessId id{static_cast<uint32_t>(processes_.size())};
  LivesId& lives = by_pid_[pid];
  if (!lives) {
    lives_.emplace_back();
    lives = LivesId{static_cast<uint32_t>(lives_.size())};
  }
  lives_[lives.value - 1].push_back(id);
  return id;
}

ProcessId ProcessHistory::Current(uint32_t pid, uint64_t time_ns) {
  if (const LivesId lives = by_pid_.Get(pid)) return lives_[lives.value - 1].back();
  return Start(pid, time_ns, ProcessId{});
}

void ProcessHistory::SetName(ProcessId process, uint32_t tid, uint64_t time_ns, StringId name) {
  if (!name) return;
  NamesId& known = thread_names_[KeyOf(process, tid)];
  if (!known) {
    processes_[process.value - 1].named_tids.push_back(tid);
    names_.emplace_back();
    known = NamesId{static_cast<uint32_t>(names_.size())};
  }
  Names& names = names_[known.value - 1];
  if (!names.empty() &&
      (names.back().second == name || model_.Text(names.back().second) == model_.Text(name))) {
    return;
  }
  names.emplace_back(time_ns, name);
}

void ProcessHistory::Apply(const ProcessEvent& event) {
  switch (event.kind) {
    case ProcessEventKind::kExisting: {
      const bool is_new = !by_pid_.Get(event.pid);
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

void ProcessHistory::ApplyFork(const ProcessEvent& event) {
  const ProcessId parent = Current(event.parent_pid, event.time_ns);
  const StringId name = FindName(parent, event.parent_tid, event.time_ns).value;
  if (event.pid == event.parent_pid) {
    // A kernel reuses tids too: the new thread's name replaces the old one's.
    return SetName(parent, event.tid, event.time_ns, name);
  }
  if (event.restated && by_pid_.Get(event.pid)) return;
  const ProcessId child = Start(event.pid, event.time_ns, parent);
  SetName(child, event.tid, event.time_ns, name);
}

void ProcessHistory::ApplyExec(const ProcessEvent& event) {
  const ProcessId process = Current(event.pid, event.time_ns);
  SetName(process, event.pid, event.time_ns, event.name);
  Process& entry = processes_[process.value - 1];
  entry.spaces.emplace_back(event.time_ns, spaces_.Create(SpaceId{}, event.time_ns));
  ++entry.exec_count;
}

void ProcessHistory::ApplyMapping(uint32_t index) {
  const Mapping& mapping = model_.events.mappings[index];
  const ProcessId process = Current(mapping.pid, mapping.time_ns);
  const SpaceId space = (*this)[process].spaces.back().second;
  if (mapping.restated && spaces_.Holds(space, index)) return;
  spaces_.Map(space, index);
}

InTime<ProcessId> ProcessHistory::FindProcess(uint32_t pid, uint64_t time_ns) const {
  const LivesId id = by_pid_.Get(pid);
  if (!id) return {};
  return LastSince(
      lives_[id.value - 1], time_ns, [this](ProcessId life) { return (*this)[life].start_ns; },
      [](ProcessId life) { return life; });
}

InTime<SpaceId> ProcessHistory::FindSpace(ProcessId process, uint64_t time_ns) const {
  if (!process) return {};
  return LastSince((*this)[process].spaces, time_ns);
}

InTime<StringId> ProcessHistory::FindName(ProcessId process, uint32_t tid, uint64_t time_ns) const {
  if (!process) return {};
  NamesId id = thread_names_.Get(KeyOf(process, tid));
  if (!id) id = thread_names_.Get(KeyOf(process, (*this)[process].pid));
  if (!id) return {};
  return LastSince(names_[id.value - 1], time_ns);
}

std::string_view ProcessHistory::ThreadName(ProcessId process, uint32_t tid,
                                            uint64_t time_ns) const {
  return model_.Text(FindName(process, tid, time_ns).value);
}

std::string ThreadTitle(std::string_view name, uint32_t tid) {
  return Format("{}/{}", name.empty() ? "[unknown]" : name, tid);
}

std::string ProcessHistory::ThreadTitle(ProcessId process, uint32_t tid) const {
  return xpu::ThreadTitle(ThreadName(process, tid, kAtTheEnd), tid);
}

std::string_view ProcessHistory::Name(ProcessId process) const {
  return process ? ThreadName(process, (*this)[process].pid, kAtTheEnd) : std::string_view();
}

std::vector<std::pair<uint32_t, std::string_view>> ProcessHistory::Threads(
    ProcessId process) const {
  std::vector<std::pair<uint32_t, std::string_view>> threads;
  for (const uint32_t tid : (*this)[process].named_tids) {
    const Names& names = names_[thread_names_.Get(KeyOf(process, tid)).value - 1];
    threads.emplace_back(tid, model_.Text(names.back().second));
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

}  // namespace xpu
