// Tells the BPF programs which code every recorded process has mapped where, with its unwind
// tables: from the table of processes to lists in BPF maps.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "record/process/process_table.h"
#include "record/unwind/unwind_maps.h"
#include "record/unwind/unwind_tables.h"

namespace xpu {

// How long the BPF programs keep a list of mappings before the next one of the same process. All of
// it is copied, so its cost in a program that maps code all the time was quadratic; and a range of
// `unwind_mappings` rests before it is used again, and four of the largest lists fill them all.
// What is newer a walk finds in the process itself.
constexpr uint64_t PublishIntervalNs(size_t mappings) { return mappings * 4000; }

class UnwindPublisher : public ProcessListener {
 public:
  // Listens to `processes`. All outlive this.
  UnwindPublisher(UnwindMaps& maps, UnwindTables& tables, ProcessTable& processes);

  void OnFork(uint32_t parent_pid, uint32_t pid) override;
  void OnExec(uint32_t pid) override;
  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  void OnEnd(uint32_t pid) override;

  // Gives the BPF programs the tables that are there by now; begins none after `limit_ns`.
  void TakeFinishedTables(uint64_t limit_ns);
  // Some are left for the next time.
  bool has_finished_tables() const { return !finished_.empty(); }
  // Tells the BPF programs what is new. Errors are of the maps: what had no room.
  Status Publish(uint64_t now_ns);

 private:
  UnwindTables::Id TableOf(const CodeMapping& mapping) const;
  xpu_mapping ForMaps(uint64_t start, const CodeMapping& mapping) const;
  Status PublishProcess(uint32_t pid, const ProcessTable::Process& process, uint64_t now_ns);

  UnwindMaps& maps_;
  UnwindTables& tables_;
  const ProcessTable& processes_;
  std::vector<UnwindTables::Id> tables_of_files_;  // by the number of the file; 0: none
  std::deque<UnwindTables::Id> finished_;          // not in the maps yet
  std::unordered_map<UnwindTables::Id, UnwindMaps::Place> places_;
  std::unordered_set<UnwindTables::Id> unplaced_;  // the maps had no room
  std::unordered_set<uint32_t> changed_;
  std::unordered_map<uint32_t, uint64_t> published_ns_;  // by pid
  Status full_ = Ok();
};

}  // namespace xpu
