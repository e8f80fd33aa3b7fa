// Writes lists of the code that each recorded process has mapped, with its unwind tables, to BPF
// maps, from the process table.
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

// The minimum time between two lists of mappings for one process. The whole list is copied, so its
// cost for a program that maps code all the time was quadratic; and a freed range of
// `unwind_mappings` rests before it is reused, of which four of the largest lists fill the map. For
// newer mappings a walk searches the process itself.
constexpr uint64_t PublishIntervalNs(size_t mappings) { return mappings * 4000; }

class UnwindPublisher : public ProcessListener {
 public:
  // Listens to `processes`. All arguments outlive this object.
  UnwindPublisher(UnwindMaps& maps, UnwindTables& tables, ProcessTable& processes);

  void OnFork(uint32_t parent_pid, uint32_t pid) override;
  void OnExec(uint32_t pid) override;
  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  void OnEnd(uint32_t pid) override;

  // Publishes the tables that are finished; begins none after `limit_ns`.
  void TakeFinishedTables(uint64_t limit_ns);
  // True if some are left for the next call.
  bool has_finished_tables() const { return !finished_.empty(); }
  // Publishes changed processes. An error says which map is full.
  Status Publish(uint64_t now_ns);

 private:
  UnwindTables::Id TableOf(const CodeMapping& mapping) const;
  xpu_mapping ForMaps(uint64_t start, const CodeMapping& mapping) const;
  Status PublishProcess(uint32_t pid, const ProcessTable::Process& process, uint64_t now_ns);

  UnwindMaps& maps_;
  UnwindTables& tables_;
  const ProcessTable& processes_;
  std::vector<UnwindTables::Id> tables_of_files_;  // by number of the file; 0: none
  std::deque<UnwindTables::Id> finished_;          // not yet in the maps
  std::unordered_map<UnwindTables::Id, UnwindMaps::PageRange> pages_;
  std::unordered_set<UnwindTables::Id> omitted_;  // the maps were full
  std::unordered_set<uint32_t> changed_;
  std::unordered_map<uint32_t, uint64_t> published_ns_;  // by pid
  Status full_ = Ok();
};

}  // namespace xpu
