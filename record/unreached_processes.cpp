#include "record/unreached_processes.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "format/base/text.h"
#include "record/inject_library.h"

namespace xpu {
namespace {

bool IsInjectLibrary(std::string_view path) {
  return path.substr(path.rfind('/') + 1) == kInjectLibraryFile;
}

}  // namespace

void UnreachedProcesses::See(const PerfRecord& record) {
  if (const auto* comm = std::get_if<PerfComm>(&record); comm != nullptr && comm->is_exec) {
    Process& process = processes_[comm->pid];
    process.name = comm->name;
    process.exec_ns = comm->origin.time_ns;
  } else if (const auto* mapping = std::get_if<PerfMapping>(&record)) {
    Process& process = processes_[mapping->pid];
    process.mapping_ns = std::max(process.mapping_ns, mapping->origin.time_ns);
    if (!IsInjectLibrary(mapping->path)) return;
    Loader& loader = loaders_[mapping->pid];
    ++loader.loads;
    loader.name = process.name;
  } else if (const auto* task = std::get_if<PerfTask>(&record)) {
    if (!task->is_exit || task->pid != task->tid) return;
    processes_[task->pid].exit_ns = task->time_ns;
    ended_.push_back(task->pid);
  }
}

void UnreachedProcesses::Judge(uint32_t pid, EventSink& sink) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  const Process process = std::move(found->second);
  processes_.erase(found);
  const bool was_taken_out = process.exec_ns != 0 && process.exec_ns > process.mapping_ns &&
                             process.exec_ns <= process.exit_ns;
  // A mapping that the kernel could not tell of is no sign.
  if (!was_taken_out || sink.losses().total(LossKind::kPerfRecordsLost) > 0) return;
  sink.losses().Add(LossKind::kPrivilegesGained, 1, pid, {},
                    Format("process {} ({})", pid, process.name));
}

void UnreachedProcesses::EndRound(EventSink& sink) {
  for (const uint32_t pid : ended_before_) Judge(pid, sink);
  ended_before_ = std::exchange(ended_, {});
}

void UnreachedProcesses::Finish(EventSink& sink, const std::map<uint32_t, uint32_t>& reports) {
  EndRound(sink);
  EndRound(sink);
  for (const auto& [pid, loader] : loaders_) {
    const auto found = reports.find(pid);
    const uint32_t reported = found == reports.end() ? 0 : found->second;
    if (loader.loads <= reported) continue;
    sink.losses().Add(LossKind::kProcessNotReached, loader.loads - reported, pid, {},
                      Format("process {} ({}) has no way to xpu-record: a seccomp filter, another "
                             "network namespace, no free descriptor or cleared variables",
                             pid, loader.name));
  }
}

}  // namespace xpu
