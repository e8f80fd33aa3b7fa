#include "report/query/off_cpu_waits.h"

#include <array>
#include <cstddef>

#include <sys/stat.h>
#include <sys/syscall.h>

#include "format/base/text.h"

namespace xpu {
namespace {

constexpr int kPageFault = -2;  // OffCpuWait::system_call

template <size_t kCount>
constexpr std::array<std::string_view, kCount> Words(std::string_view text) {
  std::array<std::string_view, kCount> words;
  for (std::string_view& word : words) {
    word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return words;
}

// The names of x86-64, of which captures are, in order of their numbers: those from 0 on, and those
// from kFirstNewer on, which all architectures share.
constexpr auto kOlder = Words<335>(
    "read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction "
    "rt_sigprocmask rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select "
    "sched_yield mremap msync mincore madvise shmget shmat shmctl dup dup2 pause nanosleep "
    "getitimer alarm setitimer getpid sendfile socket connect accept sendto recvfrom sendmsg "
    "recvmsg shutdown bind listen getsockname getpeername socketpair setsockopt getsockopt clone "
    "fork vfork execve exit wait4 kill uname semget semop semctl shmdt msgget msgsnd msgrcv "
    "msgctl fcntl flock fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename "
    "mkdir rmdir creat link unlink symlink readlink chmod fchmod chown fchown lchown umask "
    "gettimeofday getrlimit getrusage sysinfo times ptrace getuid syslog getgid setuid setgid "
    "geteuid getegid setpgid getppid getpgrp setsid setreuid setregid getgroups setgroups "
    "setresuid getresuid setresgid getresgid getpgid setfsuid setfsgid getsid capget capset "
    "rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack utime mknod uselib "
    "personality ustat statfs fstatfs sysfs getpriority setpriority sched_setparam "
    "sched_getparam sched_setscheduler sched_getscheduler sched_get_priority_max "
    "sched_get_priority_min sched_rr_get_interval mlock munlock mlockall munlockall vhangup "
    "modify_ldt pivot_root _sysctl prctl arch_prctl adjtimex setrlimit chroot sync acct "
    "settimeofday mount umount2 swapon swapoff reboot sethostname setdomainname iopl ioperm "
    "create_module init_module delete_module get_kernel_syms query_module quotactl nfsservctl "
    "getpmsg putpmsg afs_syscall tuxcall security gettid readahead setxattr lsetxattr fsetxattr "
    "getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr "
    "fremovexattr tkill time futex sched_setaffinity sched_getaffinity set_thread_area io_setup "
    "io_destroy io_getevents io_submit io_cancel get_thread_area lookup_dcookie epoll_create "
    "epoll_ctl_old epoll_wait_old remap_file_pages getdents64 set_tid_address restart_syscall "
    "semtimedop fadvise64 timer_create timer_settime timer_gettime timer_getoverrun timer_delete "
    "clock_settime clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl "
    "tgkill utimes vserver mbind set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend "
    "mq_timedreceive mq_notify mq_getsetattr kexec_load waitid add_key request_key keyctl "
    "ioprio_set ioprio_get inotify_init inotify_add_watch inotify_rm_watch migrate_pages openat "
    "mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat symlinkat readlinkat "
    "fchmodat faccessat pselect6 ppoll unshare set_robust_list get_robust_list splice tee "
    "sync_file_range vmsplice move_pages utimensat epoll_pwait signalfd timerfd_create eventfd "
    "fallocate timerfd_settime timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 "
    "pipe2 inotify_init1 preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init "
    "fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg "
    "setns getcpu process_vm_readv process_vm_writev kcmp finit_module sched_setattr "
    "sched_getattr renameat2 seccomp getrandom memfd_create kexec_file_load bpf execveat "
    "userfaultfd membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc "
    "pkey_free statx io_pgetevents rseq");
constexpr size_t kFirstNewer = 424;
constexpr auto kNewer = Words<44>(
    "pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree move_mount "
    "fsopen fsconfig fsmount fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 "
    "process_madvise epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset "
    "landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv "
    "set_mempolicy_home_node cachestat fchmodat2 map_shadow_stack futex_wake futex_wait "
    "futex_requeue statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules "
    "mseal setxattrat getxattrat listxattrat removexattrat open_tree_attr");
static_assert(kOlder[SYS_rseq] == "rseq" && kOlder[SYS_futex] == "futex" &&
              kNewer[SYS_clone3 - kFirstNewer] == "clone3" && kNewer.back() == "open_tree_attr");

// Names the kinds of descriptors in which threads wait. Those without a file are numbered by the
// recorder.
std::string_view FileTypeName(uint32_t type) {
  constexpr uint32_t kEvent = 1, kTimer = 2, kSignal = 3;
  switch (type) {
    case kEvent:
      return "eventfd";
    case kTimer:
      return "timerfd";
    case kSignal:
      return "signalfd";
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
  if (number == kPageFault) return "page fault";
  const auto older = static_cast<size_t>(number), newer = older - kFirstNewer;
  if (older < kOlder.size()) return std::string(kOlder[older]);
  if (newer < kNewer.size()) return std::string(kNewer[newer]);
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
    case OffCpuState::kStopped:
      return "stopped";
    default:
      return "unknown state";
  }
}

std::string WaitName(const OffCpuWait& wait) {
  const std::string_view state = StateName(wait.state);
  const bool is_in_call = wait.system_call >= 0 || wait.system_call == kPageFault;
  // A system call that a stopped thread was in did not stop it.
  if (!is_in_call || wait.state == OffCpuState::kStopped) return std::string(state);
  std::string name = SystemCallName(wait.system_call);
  const std::string_view file = FileTypeName(wait.file_type);
  if (!file.empty()) name += Format(" {}", file);
  if (wait.state != OffCpuState::kBlocked) name += Format(" ({})", state);
  return name;
}

std::string WakerName(const Analysis& analysis, const OffCpuWait& wait) {
  switch (wait.waker) {
    case OffCpuWaker::kThread:
      return ThreadTitle(analysis.model.Text(wait.waker_name), wait.waker_tid);
    case OffCpuWaker::kInterrupt:
      return "[interrupt]";
    default:
      return wait.is_open ? "[not woken]" : "[unknown]";
  }
}

}  // namespace xpu
