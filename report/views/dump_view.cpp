#include <iterator>
#include <type_traits>

#include "format/base/text.h"
#include "format/events.h"
#include "report/base/text.h"
#include "report/query/ledger.h"
#include "report/views/view.h"

namespace xpu {
namespace {

// Names of the bits of `stack_flags`, in order.
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

  void operator()(FieldInfo field, StringId value) {
    Begin(field);
    if (sizes_only_ && field.name == std::string_view("bytes")) {
      AppendFormat(line_, "{}", model_.Bytes(value).size());
    } else if (field.meaning == Meaning::kBytes) {
      line_ += ToHex(model_.Bytes(value));
    } else {
      AppendQuoted(line_, model_.Bytes(value));
    }
  }
  // Innermost first; `k:` before kernel addresses, `py:` before Python frames (format/stack.h).
  void operator()(FieldInfo field, StackId value) {
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
  void operator()(FieldInfo field, InstanceId value) {
    Begin(field);
    AppendFormat(line_, "{:016x}", value.value);
  }
  void operator()(FieldInfo field, bool value) {
    Begin(field);
    line_ += value ? '1' : '0';
  }
  template <typename Value>
  requires std::is_enum_v<Value>
  void operator()(FieldInfo field, Value value) {
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
  void operator()(FieldInfo field, Value value) {
    Begin(field);
    if (field.meaning == Meaning::kAddress) {
      AppendFormat(line_, "{:#x}", value);
    } else if (field.meaning == Meaning::kStackFlags) {
      AppendStackFlags(line_, static_cast<unsigned>(value));
    } else {
      AppendFormat(line_, "{}", +value);
    }
  }

 private:
  static constexpr int kMaxFrames = 4096;

  void Begin(FieldInfo field) {
    line_ += ' ';
    line_ += field.name;
    line_ += '=';
  }

  const Model& model_;
  std::string& line_;
  const bool sizes_only_;
};

void WriteProblems(const ReadProblems& problems, Output& output) {
  output.Write(
      ShownText::Of("problems blocks_read={} blocks_damaged={} bytes_skipped={} cut={} "
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
  VisitLists(analysis.model.events, [&](const char*, const auto& list) {
    for (const auto& event : list) {
      using Event = std::decay_t<decltype(event)>;
      if (output.failed()) return;
      line = kEventName<Event>;
      VisitFields(event, FieldWriter(analysis.model, line, std::is_same_v<Event, SymbolSlice>));
      line += '\n';
      output.Write(ShownText::Lines(line));
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
    output.Write(ShownText::Lines(line));
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
