// What a process forbids itself: system calls, and more of what has a limit.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/system/odd_program.h"

namespace odd {
namespace {

void Filter(const std::vector<int>& calls, bool are_allowed, std::string_view action, int flags) {
  const uint32_t refused = action == "kill" ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto to_end = static_cast<uint8_t>(calls.size() - i);
    program.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(calls[i]), to_end, 0));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, are_allowed ? refused : SECCOMP_RET_ALLOW));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, are_allowed ? SECCOMP_RET_ALLOW : refused));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  Check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  Check(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter) == 0, "seccomp");
}

}  // namespace

void FilterStrictly(std::string_view action, int flags) {
  Filter({SYS_read,          SYS_write,        SYS_writev,
          SYS_close,         SYS_fstat,        SYS_newfstatat,
          SYS_lseek,         SYS_mmap,         SYS_munmap,
          SYS_mprotect,      SYS_mremap,       SYS_madvise,
          SYS_brk,           SYS_futex,        SYS_exit,
          SYS_exit_group,    SYS_rt_sigreturn, SYS_rt_sigprocmask,
          SYS_rt_sigaction,  SYS_gettid,       SYS_getpid,
          SYS_tgkill,        SYS_nanosleep,    SYS_clock_nanosleep,
          SYS_clock_gettime, SYS_sched_yield,  SYS_restart_syscall,
          SYS_getrandom,     SYS_poll},
         true, action, flags);
}

void FilterNetwork(std::string_view action) {
  Filter({SYS_socket, SYS_socketpair, SYS_connect, SYS_sendto, SYS_sendmsg, SYS_recvmsg,
          SYS_recvfrom, SYS_bind},
         false, action, 0);
}

void Limit(const std::string& text) {
  const size_t colon = text.find(':');
  Check(colon != std::string::npos, "limit=NAME:N");
  const std::string name = text.substr(0, colon);
  const int resource = name == "as"        ? RLIMIT_AS
                       : name == "nofile"  ? RLIMIT_NOFILE
                       : name == "memlock" ? RLIMIT_MEMLOCK
                                           : RLIMIT_NPROC;
  const rlim_t value = std::strtoull(text.c_str() + colon + 1, nullptr, 10);
  const struct rlimit limit { value, value };
  Check(setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0, "setrlimit");
}

}  // namespace odd
