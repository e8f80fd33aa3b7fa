// Processes that ran before the recording began, as /proc shows them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "format/base/result.h"
#include "record/process/process_maps.h"
#include "record/sink/event_sink.h"

namespace xpu {

// All that can be seen, of this pid namespace.
std::vector<pid_t> ListProcesses();

// Whether it can be recorded: it is a process, of this user or one that the recorder may look into,
// and has code of its own.
Status CheckProcess(pid_t pid);

class RunningProcesses {
 public:
  // Writes that the process exists, what its threads are called, and what it has mapped as code, at
  // `time_ns`. One that has ended meanwhile is left out.
  void Write(pid_t pid, uint64_t time_ns, EventSink& sink);

 private:
  const std::string& BuildIdOf(uint32_t pid, const ProcessMapping& mapping);

  std::map<std::pair<uint64_t, uint64_t>, std::string> build_ids_;  // by device and inode
};

}  // namespace xpu
