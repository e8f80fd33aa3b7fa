#include "record/options/user_probes.h"

#include <algorithm>
#include <optional>

#include "format/base/number.h"
#include "format/base/text.h"
#include "format/probe_names.h"

namespace xpu {
namespace {

std::string_view FormOf(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::kUprobe:
      return "LIBRARY:FUNCTION or LIBRARY:FUNCTION+OFFSET";
    case ProbeKind::kUretprobe:
      return "LIBRARY:FUNCTION";
    case ProbeKind::kKprobe:
      return "FUNCTION or FUNCTION+OFFSET";
    case ProbeKind::kKretprobe:
      return "FUNCTION";
    case ProbeKind::kTracepoint:
      return "CATEGORY:NAME";
  }
  return {};
}

Error UsageError(ProbeKind kind, std::string_view text) {
  return Error{ErrorKind::kUsage,
               Format("--{} {}: expected {}", ProbeKindName(kind), text, FormOf(kind)),
               "xpu-record(1) has examples"};
}

std::optional<uint64_t> ParseOffset(std::string_view text) {
  return text.starts_with("0x") ? ParseNumber<uint64_t>(text.substr(2), 16)
                                : ParseNumber<uint64_t>(text);
}

// Text after a '+' that is not a number belongs to the name: "operator+".
void ParseOffset(UserProbe& probe) {
  const size_t plus = probe.function.rfind('+');
  if (plus == std::string::npos) return;
  const auto offset = ParseOffset(std::string_view(probe.function).substr(plus + 1));
  if (!offset) return;
  probe.offset = *offset;
  probe.function.resize(plus);
}

}  // namespace

std::string UserProbe::Text() const {
  std::string text = Format("{} ", ProbeKindName(kind));
  if (!library.empty()) AppendFormat(text, "{}:", library);
  text += function;
  if (offset != 0) AppendFormat(text, "+{:#x}", offset);
  return text;
}

bool ReplacesReturns(std::span<const UserProbe> probes) {
  return std::any_of(probes.begin(), probes.end(),
                     [](const UserProbe& probe) { return probe.replaces_returns(); });
}

Status CheckNoneTwice(std::span<const UserProbe> probes) {
  for (auto probe = probes.begin(); probe != probes.end(); ++probe) {
    const std::string text = probe->Text();
    if (std::none_of(probes.begin(), probe,
                     [&](const UserProbe& earlier) { return earlier.Text() == text; })) {
      continue;
    }
    return Error{ErrorKind::kUsage, Format("--{}: given twice", text), "remove one of them"};
  }
  return Ok();
}

Result<UserProbe> ParseUserProbe(ProbeKind kind, std::string_view text) {
  UserProbe probe;
  probe.kind = kind;
  probe.function = text;
  const size_t colon = text.find(':');
  if (probe.is_in_program() || kind == ProbeKind::kTracepoint) {
    if (colon == 0 || colon == std::string_view::npos) return UsageError(kind, text);
  }
  if (probe.is_in_program()) {
    probe.library = text.substr(0, colon);
    probe.function.erase(0, colon + 1);
  }
  if (kind != ProbeKind::kTracepoint) ParseOffset(probe);
  if (probe.function.empty() || probe.function.ends_with(':')) return UsageError(kind, text);
  if (probe.is_return() && probe.offset != 0) return UsageError(kind, text);
  return probe;
}

}  // namespace xpu
