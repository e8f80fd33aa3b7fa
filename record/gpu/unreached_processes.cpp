#include "record/gpu/unreached_processes.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "format/base/text.h"
#include "record/gpu/inject_library.h"

namespace xpu {
namespace {

constexpr char kNoWay[] =
    " cannot connect to xpu-record: another xpu-record inside this one, a seccomp filter, another "
    "network namespace, no free descriptor or a cleared environment";

uint32_t CountOf(const std::map<uint32_t, uint32_t>& counts, uint32_t pid) {
  const auto found = counts.find(pid);
  return found == counts.end() ? 0 : found->second;
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
    if (!expected_) return;
    if (IsCudaDriver(mapping->path)) SeeDriver(*mapping, process);
    if (IsInjectLibrary(mapping->path)) SeeLibrary(*mapping, process);
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

// At once: the process may not be there for long. A library that is closed and loaded again is of
// the same image.
void UnreachedProcesses::SeeDriver(const PerfMapping& mapping, const Process& process) {
  Drivers& drivers = drivers_[mapping.pid];
  if (drivers.images > 0 && drivers.exec_ns == process.exec_ns) return;
  drivers.name = process.name;
  drivers.exec_ns = process.exec_ns;
  ++drivers.images;
  const std::optional<std::string> obstacle =
      expected_->look_at_driver(mapping, expected_->library);
  AppendFormat(news_, "process {}: {} is mapped, the injected library {}\n", mapping.pid,
               mapping.path,
               !obstacle           ? "may be missing: the process could not be examined"
               : obstacle->empty() ? "can be loaded"
                                   : "will be missing: " + *obstacle);
  if (!obstacle) {
    ++drivers.unknown;
  } else if (!obstacle->empty()) {
    ++drivers.unreachable;
    drivers.obstacle = *obstacle;
  }
}

void UnreachedProcesses::SeeLibrary(const PerfMapping& mapping, const Process& process) {
  if (IsRecorder(mapping.pid)) return;
  Loader& loader = loaders_[mapping.pid];
  ++loader.loads;
  loader.name = process.name;
  const auto obstacle = expected_->look_at_library(mapping, expected_->invitation);
  if (obstacle && !obstacle->empty()) loader.obstacle = *obstacle;
}

void UnreachedProcesses::CountSilentLibraries(EventSink& sink, const InjectionReports& reports) {
  for (const auto& [pid, loader] : loaders_) {
    const uint32_t connected = CountOf(reports.connected, pid);
    if (loader.loads <= connected) continue;
    sink.losses().Add(LossKind::kProcessNotReached, loader.loads - connected, pid, {},
                      Format("process {} ({}){}", pid, loader.name,
                             loader.obstacle.empty() ? kNoWay : ": " + loader.obstacle));
  }
}

// Images in which the library is nevertheless, because the program saw to it, are none of them.
void UnreachedProcesses::CountUnreachable(EventSink& sink, const InjectionReports& reports) {
  for (const auto& [pid, drivers] : drivers_) {
    const auto loader = loaders_.find(pid);
    const uint32_t loads = loader == loaders_.end() ? 0 : loader->second.loads;
    const uint32_t connected = CountOf(reports.connected, pid);
    const uint32_t told_of = CountOf(reports.started_cuda, pid) + CountOf(reports.refused, pid) +
                             (loads > connected ? loads - connected : 0);
    uint32_t left = drivers.images - std::min(drivers.images, told_of);
    const uint32_t unreachable = std::min(left, drivers.unreachable);
    left -= unreachable;
    sink.losses().Add(LossKind::kProcessNotReached, unreachable, pid, {},
                      Format("process {} ({}): {}", pid, drivers.name, drivers.obstacle));
    sink.losses().Add(LossKind::kInjectionUnknown, std::min(left, drivers.unknown), pid, {},
                      Format("process {} ({})", pid, drivers.name));
  }
}

void UnreachedProcesses::Finish(EventSink& sink, const InjectionReports& reports) {
  EndRound(sink);
  EndRound(sink);
  CountSilentLibraries(sink, reports);
  CountUnreachable(sink, reports);
}

}  // namespace xpu
