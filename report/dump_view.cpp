#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

#include "format/base/text.h"
#include "format/fields.h"
#include "report/summary/ledger.h"
#include "report/text.h"
#include "report/view.h"
#include "report/views.h"
#include "symbolize/symbolizer.h"

namespace xpu {
namespace {

// "kernel" of the list "kernels".
std::string_view Singular(std::string_view list) {
  if (list == "losses") return "loss";
  if (list == "recording_switches") return "recording_switch";
  if (list == "raw_activities") return "raw_activity";
  if (list == "graph_launches") return "graph_launch";
  if (list == "gpu_processes") return "gpu_process";
  if (list.ends_with("s")) list.remove_suffix(1);
  return list;
}

// Fields that hold bytes, not text.
bool IsBytes(std::string_view field) {
  return field == "build_id" || field == "uuid" || field == "tail" || field == "bytes";
}

bool IsAddress(std::string_view field) {
  return field == "start_address" || field == "address" || field == "file_offset";
}

// The names of an enum that counts from 0; none: a newer version's value.
template <typename Enum, size_t N>
std::string_view NameIn(const std::string_view (&names)[N], Enum value) {
  const auto number = static_cast<size_t>(value);
  return number < N ? names[number] : std::string_view();
}

std::string_view NameOf(ProcessEventKind kind) {
  return NameIn({"existing", "fork", "exec", "name", "exit"}, kind);
}

std::string_view NameOf(InjectState state) {
  return NameIn({"connected", "active", "dormant", "finished"}, state);
}

// From 1, as CUPTI counts them.
std::string_view NameOf(ApiDomain domain) { return NameIn({"", "driver", "runtime"}, domain); }

std::string_view NameOf(ClockKind kind) { return NameIn({"cupti"}, kind); }

std::string_view NameOf(LaunchStackSource source) {
  return NameIn({"unknown", "none", "marker", "probes", "in_process"}, source);
}

std::string_view NameOf(SymbolDetail detail) {
  return NameIn({"unknown", "none", "names", "lines"}, detail);
}

std::string_view NameOf(CallGraph call_graph) {
  return NameIn({"unknown", "frame_pointers", "tables"}, call_graph);
}

std::string_view NameOf(GraphTrace trace) { return NameIn({"unknown", "graph", "node"}, trace); }

std::string_view NameOf(GraphNodeChange change) {
  return NameIn({"created", "cloned", "updated", "graph_updated"}, change);
}

std::string_view NameOf(ProbePurpose purpose) {
  return NameIn({"user", "runtime_launch", "driver_launch"}, purpose);
}

std::string_view NameOf(ProbeKind kind) {
  return NameIn({"uprobe", "uretprobe", "kprobe", "kretprobe", "tracepoint"}, kind);
}

std::string_view NameOf(NvtxKind kind) {
  return NameIn({"mark", "push", "pop", "start", "end", "domain", "category", "thread"}, kind);
}

std::string_view NameOf(NvtxPayload type) {
  return NameIn({"none", "uint64", "int64", "double", "uint32", "int32", "float"}, type);
}

// Of `stack_flags`, in the order of its bits.
constexpr std::string_view kStackFlagNames[] = {"frame_pointers", "truncated", "user_failed",
                                                "kernel_failed",  "tables",    "complete",
                                                "not_ready",      "in_process"};

void AppendStackFlags(std::string& line, unsigned flags) {
  if (flags == 0) line += "none";
  std::string_view separator;
  for (size_t bit = 0; bit < std::size(kStackFlagNames); ++bit) {
    if ((flags & 1u << bit) == 0) continue;
    line += separator;
    line += kStackFlagNames[bit];
    separator = "+";
  }
}

class FieldWriter {
 public:
  // `sizes_only`: of fields called "bytes"; the parts of slices are up to 512 KiB.
  FieldWriter(const Model& model, std::string& line, bool sizes_only)
      : model_(model), line_(line), sizes_only_(sizes_only) {}

  void operator()(std::string_view field, StringId value) {
    Begin(field);
    if (field == "bytes" && sizes_only_) {
      AppendFormat(line_, "{}", model_.Bytes(value).size());
    } else if (IsBytes(field)) {
      line_ += ToHex(model_.Bytes(value));
    } else {
      AppendQuoted(line_, model_.Bytes(value));
    }
  }
  // Innermost first; `k:` before kernel addresses, `py:` before frames of Python (format/stack.h).
  void operator()(std::string_view field, StackId value) {
    Begin(field);
    line_ += '[';
    for (int frames = 0; value && frames < kMaxFrames; ++frames) {
      if (frames > 0) line_ += ',';
      if (model_.tables->IsLost(value)) {
        line_ += "lost";
        break;
      }
      const StackNode node = model_.tables->Node(value);
      if (node.frame.kind == FrameKind::kKernel) line_ += "k:";
      if (node.frame.kind == FrameKind::kPython) line_ += "py:";
      AppendFormat(line_, "{:#x}", node.frame.address);
      value = node.caller;
    }
    line_ += ']';
  }
  void operator()(std::string_view field, InstanceId value) {
    Begin(field);
    AppendFormat(line_, "{:016x}", value.value);
  }
  void operator()(std::string_view field, bool value) {
    Begin(field);
    line_ += value ? '1' : '0';
  }
  template <typename Value>
  requires std::is_enum_v<Value>
  void operator()(std::string_view field, Value value) {
    Begin(field);
    const std::string_view name = NameOf(value);
    if (name.empty()) {
      AppendFormat(line_, "{}", static_cast<unsigned>(value));
    } else {
      line_ += name;
    }
  }
  template <typename Value>
  requires std::is_integral_v<Value>
  void operator()(std::string_view field, Value value) {
    Begin(field);
    if (IsAddress(field)) {
      AppendFormat(line_, "{:#x}", value);
    } else if (field == "stack_flags") {
      AppendStackFlags(line_, static_cast<unsigned>(value));
    } else {
      AppendFormat(line_, "{}", +value);
    }
  }

 private:
  static constexpr int kMaxFrames = 4096;

  void Begin(std::string_view field) {
    line_ += ' ';
    line_ += field;
    line_ += '=';
  }

  const Model& model_;
  std::string& line_;
  const bool sizes_only_;
};

void WriteProblems(const ReadProblems& problems, Output& output) {
  output.Write(
      Format("problems blocks_read={} blocks_damaged={} bytes_skipped={} cut={} "
             "unknown_events={} references_lost={}\n",
             problems.blocks_read, problems.blocks_damaged, problems.bytes_skipped,
             problems.cut ? 1 : 0, problems.unknown_events, problems.references_lost));
}

}  // namespace

void WriteDump(const Analysis& analysis, Output& output) {
  std::string line;
  uint64_t all = 0;
  uint64_t done = 0;
  VisitLists(analysis.model.events,
             [&](std::string_view, const auto& list) { all += list.size(); });
  VisitLists(analysis.model.events, [&](std::string_view name, const auto& list) {
    for (const auto& event : list) {
      if (output.failed()) return;
      line = Singular(name);
      VisitFields(event, FieldWriter(analysis.model, line, name == "symbol_slices"));
      line += '\n';
      output.Write(line);
      output.SetShare(++done, all);
    }
  });
  WriteProblems(analysis.model.problems, output);
  for (const LedgerEntry& entry : BuildLedger(analysis)) {
    line = "ledger name=";
    AppendQuoted(line, entry.name);
    AppendFormat(line, " severity={} count={} what=", SeverityName(entry.severity), entry.count);
    AppendQuoted(line, entry.what);
    line += " advice=";
    AppendQuoted(line, entry.advice);
    std::string details;
    for (const std::string& detail : entry.details) {
      if (!details.empty()) details += '\n';
      details += detail;
    }
    line += " details=";
    AppendQuoted(line, details);
    line += '\n';
    output.Write(line);
  }
}

View DumpView() {
  return {
      .option = "--dump",
      .help = "every record of the capture as text",
      .takes_filters = false,
      .has_ledger = true,
      .events = View::Events::kAll,
      .write = [](const ViewInput& input) { WriteDump(input.analysis, input.output); },
  };
}

}  // namespace xpu
