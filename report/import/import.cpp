#include "report/import/import.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "format/base/counted.h"
#include "format/base/file.h"
#include "format/base/output_location.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "format/writer.h"
#include "report/import/import_capture.h"
#include "report/import/import_trace.h"

namespace xpu {
namespace {

constexpr size_t kMaxShownLine = 60;

// "RUNTIME [ 1, ..." of a line that may be long or hold any byte.
std::string Shown(std::string_view line) {
  std::string shown;
  for (const char c : line.substr(0, kMaxShownLine)) {
    shown += c >= ' ' && c <= '~' ? c : (c == '\t' ? ' ' : '?');
  }
  return line.size() > kMaxShownLine ? shown + "..." : shown;
}

std::string WhatWasRead(const ImportedTrace& trace) {
  return Format("{}, {}, {}, {}, {}", Counted(trace.kernels.size(), "kernel", "kernels"),
                Counted(trace.memcpys.size() + trace.memsets.size(), "memcpy or memset",
                        "memcpys and memsets"),
                Counted(trace.calls.size(), "API call", "API calls"),
                Counted(trace.memory_operations.size(), "allocation record", "allocation records"),
                Counted(trace.markers.size(), "marker", "markers"));
}

std::string TextOf(const LeftOutLines& lines, std::string_view what) {
  if (lines.count == 0) return {};
  return Format("{}: {}; the first is line {}: {}\n", what, lines.count, lines.first_number,
                Shown(lines.first));
}

}  // namespace

Result<std::string> ImportCuptiText(const std::string& path, const std::string& output) {
  std::error_code failed;
  if (path != "-" && std::filesystem::is_character_file(path, failed)) {
    return Error{ErrorKind::kInvalid, Format("{}: cannot import from a device", path),
                 "name a file, or - for standard input"};
  }
  XPU_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::Open(path == "-" ? "/dev/stdin" : path));
  const auto bytes = file.bytes();
  ImportedTrace trace = ParseCuptiText({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (trace.is_empty()) {
    return Error{ErrorKind::kInvalid,
                 Format("{}: no activity records found ({} lines)", path,
                        trace.unknown.count + trace.broken.count),
                 "expected the output of CUPTI's sample activity_trace_async"};
  }
  const uint64_t inner_calls = DropInnerCalls(trace.calls);
  XPU_ASSIGN_OR_RETURN(UniqueFd fd, CreateOrReplace(output));
  XPU_ASSIGN_OR_RETURN(CaptureWriter writer, CaptureWriter::Create(std::move(fd), output));
  XPU_RETURN_IF_ERROR(WriteImported(trace, path, writer));
  XPU_RETURN_IF_ERROR(writer.Close());
  std::string notes = Format("{}: {}\n", ForOneLine(output), WhatWasRead(trace));
  if (inner_calls > 0) {
    AppendFormat(notes, "driver calls left out because a runtime call contains them: {}\n",
                 inner_calls);
  }
  return notes + TextOf(trace.unknown, "lines that are not records") +
         TextOf(trace.broken,
                "lines left out because they are truncated or have numbers out of range");
}

}  // namespace xpu
