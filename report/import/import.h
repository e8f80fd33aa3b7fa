// --import: captures made of the text that other tools print.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/base/result.h"
#include "format/writer.h"
#include "report/import/import_trace.h"

namespace xpu {

// An imported trace as a capture that every view can show.
//
// Times are on CUPTI's clock in the text, and stay so: the capture's CLOCK_MONOTONIC is that clock.
// Samples older than CUDA 11.8 print times since their own start, so that what came before it is
// negative: then all times are later by as much as makes the first one 1.

// Driver calls that runtime calls make share their id and are part of them: a capture has the
// outermost call of an id. Returns how many there were.
uint64_t DropInnerCalls(std::vector<Imported<ApiCall>>& calls);

// Which process each record of an imported trace is of. Lines of API calls and of memory say it,
// those of GPU work have only the correlation id of their call.
class ImportProcesses {
 public:
  struct Process {
    InstanceId instance;
    uint32_t main_tid = 0;  // of which nothing else is known: the one with the process's number,
                            // or of the first call
    std::set<uint32_t> tids;
  };

  explicit ImportProcesses(const ImportedTrace& trace);

  // Returns the process of the call with this id: of several, the last one that began before.
  // Otherwise what the record itself or the lines before it say.
  uint32_t PidOf(uint32_t correlation_id, uint64_t time_ns, uint32_t reported_pid) const;
  // Returns the process that a line names, or the first one when it names none.
  uint32_t KnownPid(uint32_t reported_pid) const {
    return processes_.contains(reported_pid) ? reported_pid : first_pid_;
  }
  const Process& operator[](uint32_t pid) const { return processes_.at(pid); }
  const std::map<uint32_t, Process>& all() const { return processes_; }

 private:
  struct Call {
    uint64_t start_ns;
    uint32_t pid;
  };
  void Add(uint32_t pid) { processes_[pid]; }

  std::unordered_map<uint32_t, std::vector<Call>> calls_;  // by correlation id, by time
  std::map<uint32_t, Process> processes_;                  // by pid; at least one
  uint32_t first_pid_ = 0;
};

// `source`: what the text is called.
Status WriteImported(ImportedTrace& trace, const std::string& source, CaptureWriter& writer);

// Reads `path` ("-": standard input), the text that the printer of CUPTI's samples makes
// (import_trace.h), and writes the capture `output`. Returns what to say about it, in lines.
// kInvalid: there is no record in the text.
Result<std::string> ImportCuptiText(const std::string& path, const std::string& output);

}  // namespace xpu
