// What kinds of probes are called, as options and in reports.
#pragma once

#include <string_view>

#include "format/events.h"

namespace xpu {

constexpr std::string_view ProbeKindName(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kUprobe:
      return "uprobe";
    case ProbeKind::kUretprobe:
      return "uretprobe";
    case ProbeKind::kKprobe:
      return "kprobe";
    case ProbeKind::kKretprobe:
      return "kretprobe";
    case ProbeKind::kTracepoint:
      return "tracepoint";
  }
  return "probe";
}

}  // namespace xpu
