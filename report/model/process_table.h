// Pass 3: who a pid was at a time. A pid is not an identity: exec keeps it, the kernel reuses it.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/ids.h"
#include "report/model/address_space.h"
#include "report/model/flat_map.h"
#include "report/model/model.h"

namespace xpu {

// One life of a process: from its fork (or the start of the recording) to its exit.
using ProcessId = Id<struct ProcessTag, uint32_t>;

class ProcessTable {
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
  explicit ProcessTable(const Model& model);

  // The process with this pid at `time_ns`. Right after an exit still the one that exited (its
  // last samples come later than its exit record), before the first record the first one. None
  // only for a pid that no record names.
  ProcessId At(uint32_t pid, uint64_t time_ns) const;
  SpaceId SpaceAt(ProcessId process, uint64_t time_ns) const;
  // The name (comm) of a thread; of its process when the thread has none; "" when none is known.
  std::string_view ThreadName(ProcessId process, uint32_t tid, uint64_t time_ns) const;
  // The text's id, none when no name is known.
  StringId NameAt(ProcessId process, uint32_t tid, uint64_t time_ns) const;
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
};

}  // namespace xpu
