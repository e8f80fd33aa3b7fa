// Probes that the user requests, as named on the command line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "format/base/result.h"
#include "format/events.h"

namespace xpu {

struct UserProbe {
  ProbeKind kind = ProbeKind::kUprobe;
  std::string library;   // of uprobes: a path, or the name that the loader searches for
  std::string function;  // for a tracepoint "sched:sched_switch"
  uint64_t offset = 0;   // from the start of the function

  bool is_in_program() const { return kind == ProbeKind::kUprobe || kind == ProbeKind::kUretprobe; }
  bool is_return() const { return kind == ProbeKind::kUretprobe || kind == ProbeKind::kKretprobe; }
  // True if the kernel's trampoline replaces return addresses on the program's stack.
  bool replaces_returns() const { return is_in_program() && is_return(); }
  // "uprobe libc.so.6:malloc+0x4"
  std::string Text() const;
};

// True if any of the probes does.
bool ReplacesReturns(std::span<const UserProbe> probes);

// Returns ErrorKind::kUsage if a probe occurs twice.
Status CheckNoneTwice(std::span<const UserProbe> probes);

// "libc.so.6:malloc", "./app:ns::step+0x10", "do_sys_openat2", "sched:sched_switch". Errors are of
// ErrorKind::kUsage.
Result<UserProbe> ParseUserProbe(ProbeKind kind, std::string_view text);

}  // namespace xpu
