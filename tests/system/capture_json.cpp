// Prints a capture as one JSON object a line, for the system tests: {"list": "cpu_samples", ...}
// with every field by its name, strings resolved (bytes as Latin-1), stacks as ["u5f3a", "kff.."]
// innermost first, and at the end what was found wrong with the file.
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "format/base/text.h"
#include "format/events.h"
#include "format/reader.h"

namespace {

using xpu::AppendFormat;

void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\') {
      AppendFormat(out, "\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendStack(std::string& out, const xpu::CaptureReader& reader, xpu::StackId id) {
  out += '[';
  for (const xpu::Frame& frame : reader.Stack(id)) {
    if (out.back() != '[') out += ',';
    constexpr std::string_view kKinds = "ukp";  // the program's, the kernel's, Python's
    AppendFormat(out, "\"{}{:x}\"", kKinds.at(static_cast<size_t>(frame.kind)), frame.address);
  }
  out += ']';
}

template <typename Field>
void AppendField(std::string& out, const xpu::CaptureReader& reader, const Field& field) {
  if constexpr (std::is_same_v<Field, xpu::StringId>) {
    AppendQuoted(out, reader.String(field));
  } else if constexpr (std::is_same_v<Field, xpu::StackId>) {
    AppendStack(out, reader, field);
  } else if constexpr (std::is_same_v<Field, xpu::InstanceId>) {
    AppendFormat(out, "{}", field.value);
  } else if constexpr (std::is_enum_v<Field>) {
    AppendFormat(out, "{}", +static_cast<std::underlying_type_t<Field>>(field));
  } else if constexpr (std::is_same_v<Field, bool>) {
    out += field ? "true" : "false";
  } else {
    AppendFormat(out, "{}", +field);
  }
}

template <typename Event>
void PrintEvent(const xpu::CaptureReader& reader, std::string_view list, bool repeats,
                const Event& event) {
  std::string line = xpu::Format("{{\"list\":\"{}\"", list);
  if (repeats) line += ",\"repeats\":true";  // what was written before
  xpu::VisitFields(event, [&](std::string_view name, const auto& field) {
    AppendFormat(line, ",\"{}\":", name);
    AppendField(line, reader, field);
  });
  std::puts((line + "}").c_str());
}

void PrintProblems(const xpu::ReadProblems& problems) {
  std::puts(xpu::Format("{{\"list\":\"problems\",\"blocks_read\":{},\"blocks_damaged\":{},"
                        "\"cut\":{},\"references_lost\":{}}}",
                        problems.blocks_read, problems.blocks_damaged, problems.cut,
                        problems.references_lost)
                .c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto reader = xpu::CaptureReader::Open(argv[1]);
  if (!reader.ok()) {
    std::fprintf(stderr, "%s\n", reader.error().ToString().c_str());
    return 1;
  }
  while (auto batch = reader->Next()) {
    xpu::VisitLists(*batch, [&](std::string_view list, const auto& events) {
      for (const auto& event : events) PrintEvent(*reader, list, batch->restated, event);
    });
  }
  PrintProblems(reader->problems());
  return 0;
}
