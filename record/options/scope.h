// The scope of a recording.
#pragma once

#include <sys/types.h>

#include "bpf/watched_layout.h"

namespace xpu {

struct Scope {
  enum class Kind {
    kProgram,    // one that the recorder starts, and its descendants
    kProcesses,  // running processes and their descendants
    kAll,        // the whole system
  };
  Kind kind = Kind::kProgram;
  pid_t program = 0;        // held before its exec; 0: none is started
  int watched_map_fd = -1;  // for kProcesses (bpf/watched.h)
  bool starts_paused = false;

  // Only a program is followed by events that its tasks inherit (except clocks). Other scopes use
  // events on each CPU, of which the BPF programs keep what belongs to the scope.
  bool is_program() const { return kind == Kind::kProgram; }
  xpu_watch watch() const {
    if (kind == Kind::kProgram) return XPU_WATCH_DESCENDANTS;
    return kind == Kind::kAll ? XPU_WATCH_ALL : XPU_WATCH_PROCESSES;
  }
};

}  // namespace xpu
