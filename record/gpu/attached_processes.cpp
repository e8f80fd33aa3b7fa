#include "record/gpu/attached_processes.h"

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/gpu/injection_reach.h"
#include "record/process/process_maps.h"
#include "record/process/process_tracker.h"

namespace xpu {
namespace {

// Whether the process has its driver from its parent, by a fork: a program of its own would have it
// at another address.
bool IsForked(uint32_t pid, uint64_t driver_start) {
  auto stat = ReadFile(Format("/proc/{}/stat", pid));
  if (!stat.ok()) return false;
  auto mappings = ReadProcessMaps(ParseProcessStat(*stat).parent_pid);
  if (!mappings.ok()) return false;
  const ProcessMapping* mapping = FindMapping(*mappings, driver_start);
  return mapping != nullptr && mapping->start_address == driver_start &&
         IsCudaDriver(mapping->path);
}

}  // namespace

AttachedProcesses::AttachedProcesses(ProcessTable& processes, InjectServer& server,
                                     AttachTarget what, bool takes_forked)
    : processes_(processes), server_(server), what_(std::move(what)), takes_forked_(takes_forked) {
  processes.AddListener(this);
}

void AttachedProcesses::OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) {
  // Number 0 is a process of another pid namespace.
  if (pid == 0 || !IsCudaDriver(processes_.file(mapping.file).path)) return;
  if (!processes_.IsCurrent(pid, mapping) || !done_.insert(pid).second) return;
  if (!takes_forked_ && IsForked(pid, start)) return;
  AttachTarget target = what_;
  target.pid = static_cast<pid_t>(pid);
  thread_.Request(std::move(target));
  ++under_way_;
}

void AttachedProcesses::Update(EventSink& sink) {
  for (AttachThread::Finished& finished : thread_.TakeFinished()) {
    --under_way_;
    const auto pid = static_cast<uint32_t>(finished.pid);
    if (finished.result.ok()) {
      Attached& attached = *finished.result;
      AppendFormat(
          news_, "process {}: library loaded; thread {} stood still for {:.3f} ms, attempt {}\n",
          pid, attached.tid, static_cast<double>(attached.held_ns) / 1e6, attached.attempts);
      server_.Adopt(std::move(attached.connection), finished.pid, MonotonicNs());
      continue;
    }
    const Error& error = finished.result.error();
    sink.losses().Add(LossKind::kProcessNotReached, 1, pid, {},
                      Format("process {}: {}", pid, error.message));
    AppendFormat(failures_, "xpu-record: process {}: GPU activity is not recorded: {}\n", pid,
                 error.message);
    if (!error.hint.empty()) AppendFormat(failures_, "hint: {}\n", error.hint);
  }
}

}  // namespace xpu
