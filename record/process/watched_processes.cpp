#include "record/process/watched_processes.h"

#include <cerrno>
#include <cstdint>
#include <unordered_set>
#include <utility>
#include <variant>

#include <sys/syscall.h>
#include <unistd.h>
#include <watched.skel.h>

#include "bpf/watched_layout.h"
#include "format/base/handle.h"
#include "format/base/text.h"
#include "record/kernel/bpf_support.h"
#include "record/kernel/probe_links.h"

namespace xpu {

class WatchedProcesses::Impl {
 public:
  Status Open();
  int map_fd() const { return bpf_map__fd(program_->maps.watched); }

  Handle<watched_bpf, watched_bpf::destroy> program_;
  BpfLink fork_link_;
  BpfLink exit_link_;
  std::unordered_set<uint32_t> known_;  // known to be in the map, to save lookups
  uint64_t unmarked_counted_ = 0;
};

Status WatchedProcesses::Impl::Open() {
  XPU_ASSIGN_OR_RETURN(const PidNamespace pid_namespace, OwnPidNamespace());
  program_.reset(watched_bpf::open());
  if (!program_) return BpfError("BPF program watched: open", -errno);
  program_->rodata->pid_namespace_device = pid_namespace.device;
  program_->rodata->pid_namespace_inode = pid_namespace.inode;
  program_->rodata->watch = XPU_WATCH_PROCESSES;
  if (int result = watched_bpf::load(program_.get()); result != 0) {
    return BpfError("BPF program watched: load", result);
  }
  fork_link_.reset(bpf_program__attach(program_->progs.follow_child));
  if (!fork_link_) return BpfError("BPF program follow_child: attach", -errno);
  exit_link_.reset(bpf_program__attach(program_->progs.end_process));
  if (!exit_link_) return BpfError("BPF program end_process: attach", -errno);
  return Ok();
}

WatchedProcesses::WatchedProcesses(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WatchedProcesses::~WatchedProcesses() = default;

Result<std::unique_ptr<WatchedProcesses>> WatchedProcesses::Open(ProcessTable& processes) {
  auto impl = std::make_unique<Impl>();
  XPU_RETURN_IF_ERROR(impl->Open());
  std::unique_ptr<WatchedProcesses> watched(new WatchedProcesses(std::move(impl)));
  processes.AddListener(watched.get());
  return watched;
}

int WatchedProcesses::map_fd() const { return impl_->map_fd(); }

// The BPF programs count in the same memory.
Status WatchedProcesses::Watch(pid_t pid) {
  const auto key = static_cast<uint32_t>(pid);
  const uint32_t runs = XPU_WATCHED_RUNS;
  __atomic_fetch_add(&impl_->program_->bss->running, 1, __ATOMIC_RELAXED);
  if (bpf_map_update_elem(impl_->map_fd(), &key, &runs, BPF_ANY) == 0) return Ok();
  return BpfError(Format("watching process {}", pid), -errno);
}

bool WatchedProcesses::IsWatched(uint32_t pid) {
  if (impl_->known_.contains(pid)) return true;
  uint32_t state = 0;
  if (bpf_map_lookup_elem(impl_->map_fd(), &pid, &state) != 0) return false;
  impl_->known_.insert(pid);
  return true;
}

bool WatchedProcesses::AnyRuns() const {
  return __atomic_load_n(&impl_->program_->bss->running, __ATOMIC_RELAXED) != 0;
}

void WatchedProcesses::OnEnd(uint32_t pid) {
  uint32_t state = XPU_WATCHED_ENDED;
  bpf_map_lookup_elem(impl_->map_fd(), &pid, &state);
  if (state == XPU_WATCHED_RUNS) return;  // the pid was reused
  bpf_map_delete_elem(impl_->map_fd(), &pid);
  impl_->known_.erase(pid);
}

void WatchedProcesses::CountLosses(LossLedger& losses) {
  const uint64_t unmarked = ReadCounters(impl_->program_->maps.counters)[XPU_TASKS_UNMARKED];
  losses.Add(LossKind::kProcessNotFollowed,
             unmarked - std::exchange(impl_->unmarked_counted_, unmarked));
}

uint32_t PidOf(const PerfRecord& record) {
  return std::visit(
      [](const auto& one) -> uint32_t {
        if constexpr (requires { one.pid; }) return one.pid;
        return 0;
      },
      record);
}

Status MarkProgram(int map_fd, pid_t program) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, program, 0)));
  if (!pidfd) return SystemError("pidfd_open", errno);
  const int key = pidfd.get();
  const uint32_t mark = XPU_MARK_BEFORE_EXEC;
  if (bpf_map_update_elem(map_fd, &key, &mark, BPF_ANY) == 0) return Ok();
  return BpfError("marking the recorded program", -errno);
}

}  // namespace xpu
