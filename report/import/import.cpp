#include "report/import/import.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "format/base/counted.h"
#include "format/base/file.h"
#include "format/base/output_location.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "format/losses.h"

namespace xpu {
namespace {

// Two imported captures that are shown as one need different instances, one text gives the same
// each time.
InstanceId InstanceOf(uint32_t pid, uint64_t first_ns) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (const uint64_t value : {uint64_t{pid}, first_ns}) {
    for (int shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ (value >> shift & 0xff)) * 0x100000001b3ull;
    }
  }
  return {hash == 0 ? 1 : hash};
}

// Calls visit(time) for each time of the trace, as a reference.
template <typename Visit>
void VisitTimes(ImportedTrace& trace, Visit&& visit) {
  const auto both = [&](auto& list) {
    for (auto& imported : list) {
      visit(imported.event.start_ns);
      visit(imported.event.end_ns);
    }
  };
  both(trace.calls);
  both(trace.kernels);
  both(trace.memcpys);
  both(trace.memsets);
  both(trace.overheads);
  both(trace.synchronizations);
  both(trace.graph_launches);
  for (auto& memory : trace.memory_operations) visit(memory.event.time_ns);
  for (ImportedMarker& marker : trace.markers) visit(marker.time_ns);
}

struct TimeRangeNs {
  uint64_t first_ns = std::numeric_limits<uint64_t>::max();
  uint64_t last_ns = 0;
};

// 0 is what CUPTI gives for a time that it does not know.
TimeRangeNs FindTimes(ImportedTrace& trace) {
  TimeRangeNs range;
  VisitTimes(trace, [&](uint64_t time_ns) {
    if (time_ns == 0) return;
    range.first_ns = std::min(range.first_ns, time_ns);
    range.last_ns = std::max(range.last_ns, time_ns);
  });
  if (range.last_ns == 0) range.first_ns = 0;
  return range;
}

void MakeTimesPositive(ImportedTrace& trace) {
  int64_t first_ns = 0;
  VisitTimes(trace, [&](uint64_t time_ns) {
    first_ns = std::min(first_ns, static_cast<int64_t>(time_ns));
  });
  if (first_ns == 0) return;
  const uint64_t later_ns = 1 - static_cast<uint64_t>(first_ns);
  VisitTimes(trace, [&](uint64_t& time_ns) { time_ns += later_ns; });
}

class Maker {
 public:
  Maker(ImportedTrace& trace, const std::string& source, CaptureWriter& writer)
      : trace_(trace),
        source_(source),
        writer_(writer),
        processes_(trace),
        times_(FindTimes(trace)) {}

  Status Write();

 private:
  Status WriteRecording();
  Status WriteProcess(uint32_t pid, const ImportProcesses::Process& process);
  Status WriteThreads(uint32_t pid, const ImportProcesses::Process& process);
  Status WriteDevices(const ImportProcesses::Process& process);
  Status WriteCalls();
  template <typename Event>
  Status WriteWork(const std::vector<Imported<Event>>& list);
  Status WriteMarkers();
  Status WriteDomain(InstanceId instance, const std::string& name, uint32_t& number);
  Status WriteEnd();

  InstanceId InstanceOf(uint32_t correlation_id, uint64_t time_ns, uint32_t pid) const {
    return processes_[processes_.PidOf(correlation_id, time_ns, pid)].instance;
  }
  std::string_view ThreadName(uint32_t tid) const;

  ImportedTrace& trace_;
  const std::string& source_;
  CaptureWriter& writer_;
  const ImportProcesses processes_;
  const TimeRangeNs times_;
  std::map<std::pair<InstanceId, std::string>, uint32_t> domains_;
};

Status Maker::Write() {
  XPU_RETURN_IF_ERROR(WriteRecording());
  for (const auto& [pid, process] : processes_.all()) {
    XPU_RETURN_IF_ERROR(WriteProcess(pid, process));
  }
  XPU_RETURN_IF_ERROR(WriteCalls());
  XPU_RETURN_IF_ERROR(WriteWork(trace_.kernels));
  XPU_RETURN_IF_ERROR(WriteWork(trace_.memcpys));
  XPU_RETURN_IF_ERROR(WriteWork(trace_.memsets));
  XPU_RETURN_IF_ERROR(WriteWork(trace_.synchronizations));
  XPU_RETURN_IF_ERROR(WriteWork(trace_.graph_launches));
  XPU_RETURN_IF_ERROR(WriteWork(trace_.overheads));
  XPU_RETURN_IF_ERROR(WriteWork(trace_.memory_operations));
  XPU_RETURN_IF_ERROR(WriteMarkers());
  return WriteEnd();
}

Status Maker::WriteRecording() {
  RecordingInfo info;
  info.start_ns = info.start_realtime_ns = times_.first_ns;
  info.recorder_version = writer_.InternString(XPU_VERSION);
  info.command_line = writer_.InternString(Format("[imported from {}]", source_));
  info.settings = writer_.InternString(Format("--import cupti-text {}", source_));
  info.launch_stacks = LaunchStackSource::kNone;
  const bool has_nodes = std::any_of(trace_.kernels.begin(), trace_.kernels.end(),
                                     [](const auto& k) { return k.event.graph_node_id != 0; });
  info.graph_trace = has_nodes                       ? GraphTrace::kNode
                     : trace_.graph_launches.empty() ? GraphTrace::kUnknown
                                                     : GraphTrace::kGraph;
  info.symbols = SymbolDetail::kNone;
  return writer_.Write(info);
}

Status Maker::WriteProcess(uint32_t pid, const ImportProcesses::Process& process) {
  XPU_RETURN_IF_ERROR(WriteThreads(pid, process));
  GpuProcess gpu;
  gpu.time_ns = times_.first_ns;
  gpu.instance = process.instance;
  gpu.state = InjectState::kFinished;
  gpu.pid = gpu.namespace_pid = pid;
  gpu.detail = writer_.InternString("imported");
  XPU_RETURN_IF_ERROR(writer_.Write(gpu));
  const ClockPair same{.instance = process.instance,
                       .clock = ClockKind::kCupti,
                       .before_ns = times_.first_ns,
                       .clock_ns = times_.first_ns,
                       .after_ns = times_.first_ns};
  XPU_RETURN_IF_ERROR(writer_.Write(same));
  return WriteDevices(process);
}

std::string_view Maker::ThreadName(uint32_t tid) const {
  for (const ThreadNamed& thread : trace_.thread_names) {
    if (thread.tid == tid) return thread.name;
  }
  return {};
}

Status Maker::WriteThreads(uint32_t pid, const ImportProcesses::Process& process) {
  const auto write = [&](uint32_t tid, std::string_view kind) {
    std::string name(ThreadName(tid));
    if (name.empty()) name = Format("{}-{}", kind, tid);
    return writer_.Write(ProcessEvent{.time_ns = times_.first_ns,
                                      .kind = ProcessEventKind::kExisting,
                                      .pid = pid,
                                      .tid = tid,
                                      .name = writer_.InternString(name)});
  };
  XPU_RETURN_IF_ERROR(write(pid, "process"));
  for (const uint32_t tid : process.tids) {
    if (tid != pid) XPU_RETURN_IF_ERROR(write(tid, "thread"));
  }
  return Ok();
}

// The lines do not say for which process.
Status Maker::WriteDevices(const ImportProcesses::Process& process) {
  for (const Imported<Device>& imported : trace_.devices) {
    Device device = imported.event;
    device.instance = process.instance;
    device.name = writer_.InternString(imported.name);
    XPU_RETURN_IF_ERROR(writer_.Write(device));
  }
  return Ok();
}

Status Maker::WriteCalls() {
  std::map<std::tuple<InstanceId, ApiDomain, std::string_view>, uint32_t> made_ids;
  std::set<std::tuple<InstanceId, ApiDomain, uint32_t>> named;
  for (const Imported<ApiCall>& imported : trace_.calls) {
    ApiCall call = imported.event;
    const uint32_t pid = processes_.KnownPid(imported.pid);
    call.instance = processes_[pid].instance;
    if (call.callback_id == 0 && !imported.name.empty()) {
      // Some programs print the name alone. No id of CUPTI's is as large.
      constexpr uint32_t kFirstMadeId = 1 << 24;
      const auto next = kFirstMadeId + static_cast<uint32_t>(made_ids.size());
      call.callback_id =
          made_ids.try_emplace({call.instance, call.domain, imported.name}, next).first->second;
    }
    if (!imported.name.empty() &&
        named.insert({call.instance, call.domain, call.callback_id}).second) {
      XPU_RETURN_IF_ERROR(writer_.Write(CallbackName{.instance = call.instance,
                                                     .domain = call.domain,
                                                     .callback_id = call.callback_id,
                                                     .name = writer_.InternString(imported.name)}));
    }
    XPU_RETURN_IF_ERROR(writer_.Write(call));
  }
  return Ok();
}

template <typename Event>
Status Maker::WriteWork(const std::vector<Imported<Event>>& list) {
  for (const Imported<Event>& imported : list) {
    Event event = imported.event;
    uint64_t time_ns = 0;
    if constexpr (requires { event.start_ns; }) {
      time_ns = event.start_ns;
    } else {
      time_ns = event.time_ns;
    }
    event.instance = InstanceOf(event.correlation_id, time_ns, imported.pid);
    if constexpr (requires { event.name; }) event.name = writer_.InternString(imported.name);
    XPU_RETURN_IF_ERROR(writer_.Write(event));
  }
  return Ok();
}

Status Maker::WriteDomain(InstanceId instance, const std::string& name, uint32_t& number) {
  number = 0;
  if (name.empty()) return Ok();
  const auto next = static_cast<uint32_t>(domains_.size() + 1);
  const auto [known, is_new] = domains_.try_emplace({instance, name}, next);
  number = known->second;
  if (!is_new) return Ok();
  return writer_.Write(NvtxEvent{.instance = instance,
                                 .time_ns = times_.first_ns,
                                 .kind = NvtxKind::kDomain,
                                 .domain = number,
                                 .text = writer_.InternString(name),
                                 .payload_data = {}});
}

// The first mark of an id begins a range and the second ends it; one alone is a moment. One alone
// without a name is the end of a range that began before the trace.
Status Maker::WriteMarkers() {
  std::vector<ImportedMarker>& markers = trace_.markers;
  std::stable_sort(markers.begin(), markers.end(), [](const auto& a, const auto& b) {
    return std::tie(a.pid, a.id, a.time_ns) < std::tie(b.pid, b.id, b.time_ns);
  });
  bool is_open = false;
  for (size_t i = 0; i < markers.size(); ++i) {
    const ImportedMarker& marker = markers[i];
    const bool goes_on = i + 1 < markers.size() && markers[i + 1].pid == marker.pid &&
                         markers[i + 1].id == marker.id;
    const ImportProcesses::Process& process = processes_[processes_.KnownPid(marker.pid)];
    uint32_t domain = 0;
    XPU_RETURN_IF_ERROR(WriteDomain(process.instance, marker.domain, domain));
    NvtxEvent event;
    event.instance = process.instance;
    event.time_ns = marker.time_ns;
    event.tid = process.main_tid;
    event.domain = domain;
    if (is_open || marker.name.empty()) {
      event.kind = NvtxKind::kEnd;
    } else {
      event.kind = goes_on ? NvtxKind::kStart : NvtxKind::kMark;
    }
    is_open = goes_on && event.kind == NvtxKind::kStart;
    if (event.kind != NvtxKind::kMark) event.range = marker.id;
    if (event.kind != NvtxKind::kEnd) {
      event.text = writer_.InternString(marker.name);
      if (const auto data = trace_.marker_data.find(marker.id); data != trace_.marker_data.end()) {
        event.color = data->second.color;
        event.category = data->second.category;
        event.payload_type = data->second.payload_type;
        event.payload = data->second.payload;
      }
    }
    XPU_RETURN_IF_ERROR(writer_.Write(event));
  }
  return Ok();
}

Status Maker::WriteEnd() {
  if (trace_.dropped_records > 0) {
    Loss loss;
    loss.time_ns = times_.last_ns;
    loss.name = writer_.InternString(InfoOf(LossKind::kCuptiDropped).name);
    loss.count = trace_.dropped_records;
    XPU_RETURN_IF_ERROR(writer_.Write(loss));
  }
  return writer_.Write(RecordingEnd{.time_ns = times_.last_ns});
}

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

uint64_t DropInnerCalls(std::vector<Imported<ApiCall>>& calls) {
  std::map<std::pair<uint32_t, uint32_t>, std::pair<uint64_t, uint64_t>> runtime;  // by pid and id
  for (const Imported<ApiCall>& call : calls) {
    if (call.event.domain != ApiDomain::kRuntime) continue;
    runtime[{call.pid, call.event.correlation_id}] = {call.event.start_ns, call.event.end_ns};
  }
  return std::erase_if(calls, [&](const Imported<ApiCall>& call) {
    if (call.event.domain != ApiDomain::kDriver) return false;
    const auto outer = runtime.find({call.pid, call.event.correlation_id});
    return outer != runtime.end() && outer->second.first <= call.event.start_ns &&
           call.event.end_ns <= outer->second.second;
  });
}

ImportProcesses::ImportProcesses(const ImportedTrace& trace) {
  std::map<uint32_t, uint64_t> first_ns;
  for (const Imported<ApiCall>& call : trace.calls) {
    const ApiCall& event = call.event;
    calls_[event.correlation_id].push_back({event.start_ns, call.pid});
    Process& process = processes_[call.pid];
    process.tids.insert(event.tid);
    const auto [first, is_new] = first_ns.try_emplace(call.pid, event.start_ns);
    if (is_new || event.start_ns < first->second) {
      first->second = event.start_ns;
      process.main_tid = event.tid;
    }
  }
  for (const auto& memory : trace.memory_operations) Add(memory.pid);
  // Lines before the first that says a process are of the first that any says.
  if (processes_.size() > 1) processes_.erase(0);
  if (processes_.empty()) Add(0);
  first_pid_ = processes_.begin()->first;
  for (const auto& call : trace.calls) {
    if (call.pid == 0) continue;
    first_pid_ = call.pid;
    break;
  }
  for (auto& [id, calls] : calls_) {
    std::sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) {
      return std::tie(a.start_ns, a.pid) < std::tie(b.start_ns, b.pid);
    });
  }
  for (auto& [pid, process] : processes_) {
    process.instance = InstanceOf(pid, first_ns[pid]);
    if (process.tids.contains(pid)) process.main_tid = pid;
  }
}

uint32_t ImportProcesses::PidOf(uint32_t correlation_id, uint64_t time_ns,
                                uint32_t reported_pid) const {
  const auto found = calls_.find(correlation_id);
  if (found == calls_.end()) return KnownPid(reported_pid);
  const auto later =
      std::partition_point(found->second.begin(), found->second.end(),
                           [&](const Call& call) { return call.start_ns <= time_ns; });
  const Call& call = later == found->second.begin() ? *later : *(later - 1);
  return KnownPid(call.pid);
}

Status WriteImported(ImportedTrace& trace, const std::string& source, CaptureWriter& writer) {
  MakeTimesPositive(trace);
  return Maker(trace, source, writer).Write();
}

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
