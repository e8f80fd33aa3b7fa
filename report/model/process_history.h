// Processes over time. A pid is not an identity: exec keeps it, the kernel reuses it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/ids.h"
#include "format/events.h"
#include "report/base/flat_map.h"
#include "report/base/intervals.h"
#include "report/model/model.h"
#include "report/model/owner.h"

namespace xpu {

// An address space lives from an exec (or fork, or the start of the recording) to the next.
using SpaceId = Id<struct SpaceTag, uint32_t>;

// Finds what was mapped where and when: (address space, address, time) to a mapping.
class AddressSpaces {
 public:
  // `mappings` in order of time; must outlive this.
  explicit AddressSpaces(const std::vector<Mapping>& mappings) : mappings_(mappings) {}

  // `parent`: the space this one is a copy of, made at `time_ns`; none after an exec.
  SpaceId Create(SpaceId parent, uint64_t time_ns);
  // mappings[index] goes into `space`. In order of time.
  void Map(SpaceId space, uint32_t index);
  // Whether the newest mapping at this start address in `space` says the same as mappings[index].
  bool Holds(SpaceId space, uint32_t index) const;
  // After the last Map, before the first Find.
  void Finish();

  size_t size() const { return spaces_.size(); }
  // The space that this one is a copy of, and when it was made; none: of none.
  SpaceId ParentOf(SpaceId space) const { return spaces_[space.value - 1].parent; }
  uint64_t CopiedNs(SpaceId space) const { return spaces_[space.value - 1].copied_ns; }

  struct Found {
    const Mapping* mapping = nullptr;  // nullptr: nothing is known at this address
    bool at_any_time = false;          // the answer is the same for every time
  };
  // The newest mapping over `address` at `time_ns`. Munmap is not recorded, so a mapping lasts
  // until another covers it; processes that were there first had their mappings read a little
  // after their first samples, so when all mappings are later than `time_ns` the earliest counts.
  Found Find(SpaceId space, uint64_t address, uint64_t time_ns) const;
  // Mappings and spaces that Find has looked at so far.
  uint64_t steps() const { return steps_; }
  // When something was mapped into the space itself, in no order.
  std::vector<uint64_t> ChangesOf(SpaceId space) const;

 private:
  struct Space {
    SpaceId parent;
    uint64_t copied_ns = 0;
    std::vector<uint32_t> by_start{};  // indexes, sorted by start address, then time
    IntervalIndex index{};             // of by_start
    // Until Finish(): the newest mapping at each start address.
    std::map<uint64_t, uint32_t> newest_at{};
  };

  // Calls visit(mapping) for each mapping over `address`, in no order, until `steps` are used up.
  template <typename Visit>
  void ForEachOver(const Space& space, uint64_t address, int& steps, Visit&& visit) const;

  const std::vector<Mapping>& mappings_;
  std::vector<Space> spaces_;  // by id - 1
  mutable uint64_t steps_ = 0;
};

// An answer that depends on the time, and from when until when it is the same.
template <typename Value>
struct InTime {
  Value value = {};
  uint64_t from_ns = 0;
  uint64_t until_ns = std::numeric_limits<uint64_t>::max();  // excluded

  bool Holds(uint64_t time_ns) const { return from_ns <= time_ns && time_ns < until_ns; }
};

// ValueOf the last one of `all` whose start, StartOf(one), is not after `time_ns`, else of the
// first. None when there are none.
template <typename One, typename StartOf, typename ValueOf>
auto LastSince(const std::vector<One>& all, uint64_t time_ns, StartOf start_of, ValueOf value_of) {
  InTime<decltype(value_of(all.front()))> answer;
  if (all.empty()) return answer;
  const auto after =
      std::upper_bound(all.begin(), all.end(), time_ns,
                       [&](uint64_t time, const One& one) { return time < start_of(one); });
  // Before its start the first one holds too.
  const auto found = after == all.begin() ? after : std::prev(after);
  if (found != all.begin()) answer.from_ns = start_of(*found);
  if (const auto next = std::next(found); next != all.end()) answer.until_ns = start_of(*next);
  answer.value = value_of(*found);
  return answer;
}

// "python/1234"; a thread without a name is "[unknown]/1234".
std::string ThreadTitle(std::string_view name, uint32_t tid);

// Not for several threads at once: it keeps the last address space, since events of one thread come
// one after the other.
class ProcessHistory {
 public:
  struct Process {
    uint32_t pid = 0;
    ProcessId parent;
    uint64_t start_ns = 0;  // 0: it was there before the recording
    uint64_t end_ns = 0;    // 0: no exit was seen
    uint32_t exec_count = 0;
    std::vector<std::pair<uint64_t, SpaceId>> spaces;  // since when, ascending
    std::vector<uint32_t> named_tids = {};
  };

  // `model` in order of time; must outlive this.
  explicit ProcessHistory(const Model& model);

  // The process with this pid at `time_ns`. Right after an exit still the one that exited (its
  // last samples come later than its exit record), before the first record the first one. None
  // only for a pid that no record names.
  ProcessId At(uint32_t pid, uint64_t time_ns) const { return FindProcess(pid, time_ns).value; }
  InTime<ProcessId> FindProcess(uint32_t pid, uint64_t time_ns) const;
  SpaceId SpaceAt(ProcessId process, uint64_t time_ns) const {
    if (last_.process != process || !last_.space.Holds(time_ns)) {
      last_ = {process, FindSpace(process, time_ns)};
    }
    return last_.space.value;
  }
  SpaceId SpaceAt(const Owner& owner) const { return SpaceAt(owner.process, owner.time_ns); }
  // The name (comm) of a thread; of its process when the thread has none; "" when none is known.
  std::string_view ThreadName(ProcessId process, uint32_t tid, uint64_t time_ns) const;
  // The text's id, none when no name is known.
  InTime<StringId> FindName(ProcessId process, uint32_t tid, uint64_t time_ns) const;
  // The title of a thread by its last name, so that one thread has one title.
  std::string ThreadTitle(ProcessId process, uint32_t tid) const;
  // The name of its main thread at the end.
  std::string_view Name(ProcessId process) const;
  // The names that its threads ever had, the last one of each, by tid.
  std::vector<std::pair<uint32_t, std::string_view>> Threads(ProcessId process) const;

  const Process& operator[](ProcessId id) const { return processes_.at(id.value - 1); }
  size_t size() const { return processes_.size(); }
  const AddressSpaces& spaces() const { return spaces_; }

 private:
  using Lives = std::vector<ProcessId>;  // in order of start
  using LivesId = Id<struct LivesTag, uint32_t>;
  using Names = std::vector<std::pair<uint64_t, StringId>>;  // since when, ascending
  using NamesId = Id<struct NamesTag, uint32_t>;
  static uint64_t KeyOf(ProcessId process, uint32_t tid) {
    return uint64_t{process.value} << 32 | tid;
  }

  struct LastSpace {
    ProcessId process;  // none at first: it has no space
    InTime<SpaceId> space;
  };
  InTime<SpaceId> FindSpace(ProcessId process, uint64_t time_ns) const;

  void Apply(const ProcessEvent& event);
  void ApplyFork(const ProcessEvent& event);
  void ApplyExec(const ProcessEvent& event);
  void ApplyMapping(uint32_t index);
  ProcessId Start(uint32_t pid, uint64_t time_ns, ProcessId parent);
  // The process that has the pid now, made when no record named it yet.
  ProcessId Current(uint32_t pid, uint64_t time_ns);
  void SetName(ProcessId process, uint32_t tid, uint64_t time_ns, StringId name);

  const Model& model_;
  AddressSpaces spaces_;
  std::vector<Process> processes_;  // by id - 1
  std::vector<Lives> lives_;        // by id - 1
  FlatMap<LivesId> by_pid_;
  std::vector<Names> names_;  // by id - 1
  FlatMap<NamesId> thread_names_;
  mutable LastSpace last_;
};

}  // namespace xpu
