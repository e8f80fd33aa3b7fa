// The scope of a recording.
#pragma once

#include <sys/types.h>

#include "bpf/watched_layout.h"

namespace xpu {

struct Scope {
  enum class Kind {
    kProgram,    // one that the recorder starts, and its descendants
    kProcesses,  // processes that run already, and theirs
    kAll,        // all of the system
  };
  Kind kind = Kind::kProgram;
  pid_t program = 0;        // held before its exec; 0: none is started
  int watched_map_fd = -1;  // of kProcesses (bpf/watched.h)
  bool starts_paused = false;

  // Followed by events that its tasks inherit, but for clocks; others by events on each CPU, of
  // which the BPF programs take what is wanted.
  bool is_program() const { return kind == Kind::kProgram; }
  xpu_watch watch() const {
    if (kind == Kind::kProgram) return XPU_WATCH_DESCENDANTS;
    return kind == Kind::kAll ? XPU_WATCH_ALL : XPU_WATCH_PROCESSES;
  }
};

}  // namespace xpu
