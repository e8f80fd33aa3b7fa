#include "report/query/off_cpu_names.h"

#include <algorithm>
#include <iterator>

#include <sys/stat.h>
#include <sys/syscall.h>

#include "format/base/text.h"

namespace xpu {
namespace {

struct SystemCall {
  int number;
  std::string_view name;
};

// Those in which threads usually wait. Captures are of x86-64, as is this program.
constexpr SystemCall kSystemCalls[] = {
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_poll, "poll"},
    {SYS_select, "select"},
    {SYS_pselect6, "pselect6"},
    {SYS_ppoll, "ppoll"},
    {SYS_futex, "futex"},
    {SYS_futex_waitv, "futex_waitv"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_epoll_wait, "epoll_wait"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_epoll_pwait2, "epoll_pwait2"},
    {SYS_ioctl, "ioctl"},
    {SYS_wait4, "wait4"},
    {SYS_waitid, "waitid"},
    {SYS_pause, "pause"},
    {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    {SYS_rt_sigsuspend, "rt_sigsuspend"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_connect, "connect"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_recvmmsg, "recvmmsg"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_sendmmsg, "sendmmsg"},
    {SYS_readv, "readv"},
    {SYS_writev, "writev"},
    {SYS_pread64, "pread64"},
    {SYS_pwrite64, "pwrite64"},
    {SYS_preadv, "preadv"},
    {SYS_pwritev, "pwritev"},
    {SYS_preadv2, "preadv2"},
    {SYS_pwritev2, "pwritev2"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_sync, "sync"},
    {SYS_syncfs, "syncfs"},
    {SYS_msync, "msync"},
    {SYS_flock, "flock"},
    {SYS_fcntl, "fcntl"},
    {SYS_open, "open"},
    {SYS_openat, "openat"},
    {SYS_openat2, "openat2"},
    {SYS_close, "close"},
    {SYS_rename, "rename"},
    {SYS_unlink, "unlink"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_mmap, "mmap"},
    {SYS_munmap, "munmap"},
    {SYS_mprotect, "mprotect"},
    {SYS_madvise, "madvise"},
    {SYS_fallocate, "fallocate"},
    {SYS_splice, "splice"},
    {SYS_sendfile, "sendfile"},
    {SYS_copy_file_range, "copy_file_range"},
    {SYS_msgrcv, "msgrcv"},
    {SYS_msgsnd, "msgsnd"},
    {SYS_semop, "semop"},
    {SYS_semtimedop, "semtimedop"},
    {SYS_mq_timedreceive, "mq_timedreceive"},
    {SYS_mq_timedsend, "mq_timedsend"},
    {SYS_io_getevents, "io_getevents"},
    {SYS_io_uring_enter, "io_uring_enter"},
    {SYS_sched_yield, "sched_yield"},
    {SYS_clone, "clone"},
    {SYS_clone3, "clone3"},
    {SYS_vfork, "vfork"},
    {SYS_execve, "execve"},
    {SYS_restart_syscall, "restart_syscall"},
    {SYS_exit, "exit"},
    {SYS_exit_group, "exit_group"},
};

// Of the kinds that descriptors in which threads wait have. Without one: an event descriptor or
// another one without a file.
std::string_view FileTypeName(uint32_t type) {
  switch (type) {
    case S_IFIFO:
      return "pipe";
    case S_IFSOCK:
      return "socket";
    case S_IFREG:
      return "file";
    case S_IFCHR:
    case S_IFBLK:
      return "device";
    default:
      return {};
  }
}

std::string SystemCallName(int number) {
  const auto* const found = std::ranges::find(kSystemCalls, number, &SystemCall::number);
  if (found != std::end(kSystemCalls)) return std::string(found->name);
  return Format("system call {}", number);
}

}  // namespace

std::string_view StateName(OffCpuState state) {
  switch (state) {
    case OffCpuState::kBlocked:
      return "blocked";
    case OffCpuState::kUninterruptible:
      return "uninterruptible";
    case OffCpuState::kPreempted:
      return "preempted";
    case OffCpuState::kCreated:
      return "created";
    case OffCpuState::kRunning:
      return "running";
    default:
      return "unknown state";
  }
}

std::string WaitName(const OffCpuWait& wait) {
  const std::string_view state = StateName(wait.state);
  if (wait.system_call < 0) return std::string(state);
  std::string name = SystemCallName(wait.system_call);
  const std::string_view file = FileTypeName(wait.file_type);
  if (!file.empty()) name += Format(" {}", file);
  if (wait.state != OffCpuState::kBlocked) name += Format(" ({})", state);
  return name;
}

std::string WakerName(const Analysis& analysis, const OffCpuWait& wait) {
  switch (wait.waker) {
    case OffCpuWaker::kThread: {
      const std::string_view name = analysis.model.Text(wait.waker_name);
      return Format("{}/{}", name.empty() ? "[unknown]" : name, wait.waker_tid);
    }
    case OffCpuWaker::kInterrupt:
      return "[interrupt]";
    default:
      return wait.is_open ? "[not woken]" : "[unknown]";
  }
}

}  // namespace xpu
