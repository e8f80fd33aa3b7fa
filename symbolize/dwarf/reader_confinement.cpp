#include "symbolize/dwarf/reader_confinement.h"

#include <cerrno>
#include <cstddef>
#include <iterator>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/base/result.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define XPU_READER_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define XPU_READER_IS_SANITIZED 1
#endif
#endif

namespace xpu::dwarf {
namespace {

#ifdef XPU_READER_IS_SANITIZED
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

// Each answer has an alarm (debug_reader.cpp); this is for one that blocks it.
constexpr rlim_t kMostProcessorSeconds = 3600;

std::string Failed(const char* what) { return SystemError(what, errno).message; }

bool Limit(__rlimit_resource what, rlim_t value) {
  const rlimit limit{.rlim_cur = value, .rlim_max = value};
  return ::setrlimit(what, &limit) == 0;
}

bool DropCapabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct none[2] = {};
  return ::syscall(SYS_capset, &header, none) == 0;
}

bool BecomeUser(uid_t user, gid_t group) {
  if (::setgroups(1, &group) == 0 && ::setresgid(group, group, group) == 0 &&
      ::setresuid(user, user, user) == 0) {
    return true;
  }
  return errno == EINVAL || errno == EPERM;
}

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

// Those of glibc's allocator, stdio-less reading, qsort (sysinfo), realpath, and of ending.
constexpr uint32_t kAllowed[] = {
    SYS_read,       SYS_pread64,     SYS_write,          SYS_close,        SYS_fstat,
    SYS_newfstatat, SYS_statx,       SYS_lseek,          SYS_mmap,         SYS_munmap,
    SYS_mremap,     SYS_mprotect,    SYS_madvise,        SYS_brk,          SYS_readlinkat,
    SYS_fcntl,      SYS_futex,       SYS_sysinfo,        SYS_getrandom,    SYS_clock_gettime,
    SYS_gettid,     SYS_getpid,      SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigaction,
    SYS_setitimer,  SYS_sched_yield, SYS_exit,           SYS_exit_group,
#if defined(__x86_64__)
    SYS_stat,       SYS_lstat,       SYS_readlink,       SYS_getcwd,       SYS_alarm,
#endif
};

std::vector<sock_filter> Filter() {
  const auto load = [](size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
  };
  const auto answer = [](uint32_t action) { return sock_filter BPF_STMT(BPF_RET | BPF_K, action); };
  // Skips the next `count` statements unless it is `value`.
  const auto unless = [](uint32_t value, uint8_t count) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count);
  };
  std::vector<sock_filter> filter = {load(offsetof(seccomp_data, arch)), unless(kArchitecture, 2),
                                     load(offsetof(seccomp_data, nr)),
                                     sock_filter BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
                                     answer(SECCOMP_RET_KILL_PROCESS)};
  for (const uint32_t call : kAllowed) {
    filter.push_back(unless(call, 1));
    filter.push_back(answer(SECCOMP_RET_ALLOW));
  }
  // The flags are the third argument of openat; the machine is little-endian. Those of texts make
  // it refuse more.
  filter.push_back(unless(SYS_openat, 4));
  filter.push_back(load(offsetof(seccomp_data, args[2])));
  filter.push_back(sock_filter BPF_STMT(BPF_ALU | BPF_AND | BPF_K,
                                        ~uint32_t{O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY}));
  filter.push_back(unless(O_RDONLY, 1));
  filter.push_back(answer(SECCOMP_RET_ALLOW));
  filter.push_back(answer(SECCOMP_RET_KILL_PROCESS));
  return filter;
}

bool FilterSystemCalls() {
  std::vector<sock_filter> filter = Filter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) return true;
  return errno == EINVAL || errno == ENOSYS;
}

}  // namespace

std::string ConfineReader(const ReaderGreeting& greeting) {
  if (greeting.becomes_user != 0 && !BecomeUser(greeting.user, greeting.group)) {
    return Failed("the file's owner");
  }
  if (!DropCapabilities()) return Failed("capset");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("no_new_privs");
  if (!Limit(RLIMIT_CORE, 0) || !Limit(RLIMIT_CPU, kMostProcessorSeconds)) return Failed("limits");
  if (kIsSanitized) return {};
  if (!Limit(RLIMIT_AS, greeting.memory_bytes)) return Failed("RLIMIT_AS");
  if (!FilterSystemCalls()) return Failed("seccomp");
  return {};
}

}  // namespace xpu::dwarf
