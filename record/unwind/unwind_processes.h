// Which code every recorded process has mapped where, for the BPF programs: from perf's records of
// mappings, forks, execs and exits to lists of mappings with their tables.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "record/kernel/perf_records.h"
#include "record/python/python_stacks.h"
#include "record/unwind/unwind_maps.h"
#include "record/unwind/unwind_tables.h"

namespace xpu {

// The executable mappings of one address space, by start. A new one replaces what it covers.
class CodeMappings {
 public:
  struct Entry {
    uint64_t end = 0;
    uint64_t file_offset = 0;
    UnwindTables::Id table = 0;  // 0: none, code generated at run time
  };

  // False: there are 65536, and this one is left out.
  bool Add(uint64_t start, const Entry& entry);
  const std::map<uint64_t, Entry>& entries() const { return entries_; }

 private:
  std::map<uint64_t, Entry> entries_;
};

// How long the BPF programs keep a list of mappings before the next one of the same process. All of
// it is copied, so its cost in a program that maps code all the time was quadratic; and a range of
// `unwind_mappings` rests before it is used again, and four of the largest lists fill them all.
// What is newer a walk finds in the process itself.
constexpr uint64_t PublishIntervalNs(size_t mappings) { return mappings * 4000; }

class UnwindProcesses {
 public:
  // `python`, where there is one, is told of the same.
  UnwindProcesses(UnwindMaps& maps, UnwindTables& tables, PythonStacks* python = nullptr)
      : maps_(maps), tables_(tables), python_(python) {}

  // Gives the BPF programs the tables that are there by now; begins none after `limit_ns`.
  void TakeFinishedTables(uint64_t limit_ns);
  // Some are left for the next time.
  bool has_finished_tables() const { return !finished_.empty(); }
  // Takes note of a record, false: it says nothing about mappings. The rings of several CPUs come
  // one after the other.
  bool See(const PerfRecord& record);
  // Brings the noted records into order, asks for tables, and tells the BPF programs what is new.
  // Errors are of the maps: what had no room.
  Status Apply(uint64_t now_ns);

 private:
  struct Note {
    enum class Kind : uint8_t { kMapping, kExec, kFork, kExit };
    uint64_t time_ns = 0;
    Kind kind = Kind::kMapping;
    uint32_t pid = 0;
    uint32_t parent_pid = 0;
    uint64_t address = 0;
    uint64_t size_bytes = 0;
    uint64_t file_offset = 0;
    UnwindTables::File file;
  };
  struct Process {
    CodeMappings code;
    uint64_t exec_ns = 0;
    uint64_t published_ns = 0;  // 0: never
  };

  void Take(const Note& note, uint64_t now_ns);
  void TakeMapping(const Note& note);
  size_t CountMappings() const;
  xpu_mapping ForMaps(uint64_t start, const CodeMappings::Entry& entry) const;
  Status Publish(uint32_t pid, Process& process, uint64_t now_ns);
  void PublishDue(uint64_t now_ns);
  void ForgetTheDead(uint64_t now_ns);

  UnwindMaps& maps_;
  UnwindTables& tables_;
  PythonStacks* python_;
  std::vector<Note> notes_;
  std::unordered_map<uint32_t, Process> processes_;
  size_t all_mappings_ = 0;  // theirs, at the begin of a round, and what forks added in it
  std::deque<UnwindTables::Id> finished_;  // not in the maps yet
  std::unordered_map<UnwindTables::Id, UnwindMaps::Place> places_;
  std::unordered_set<UnwindTables::Id> unplaced_;  // the maps had no room
  std::unordered_set<uint32_t> changed_;
  struct Exit {
    uint32_t pid;
    uint64_t since_ns;
  };
  std::vector<Exit> exits_;
  Status full_ = Ok();
};

}  // namespace xpu
