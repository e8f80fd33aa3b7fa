#include "record/target/confinement.h"

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include <dirent.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/base/handle.h"
#include "format/base/number.h"

namespace xpu {
namespace {

constexpr unsigned kFirstClosed = STDERR_FILENO + 1;

constexpr char kSeccompHint[] =
    "this needs a kernel with seccomp filters (CONFIG_SECCOMP_FILTER) and, with --allow-new-privs, "
    "CAP_SYS_ADMIN";
constexpr char kKeyringHint[] = "otherwise the program would have the keys of root's session";
constexpr char kDescriptorsHint[] =
    "before Linux 5.11 this needs /proc; with --keep-fds the program inherits all descriptors";

// ---- Terminals ---------------------------------------------------------------------------------

// All system call numbers of ioctl: x32 calls have the same architecture and this bit, and number
// 514, which some kernels accepted without the bit.
constexpr uint32_t kX32Bit = 0x40000000;
constexpr uint32_t kIoctl = 16;
constexpr uint32_t kX32Ioctl = 514;
constexpr uint32_t kI386Ioctl = 54;
// The kernel uses only the lower half; the machine is little-endian.
constexpr uint32_t kRequest = offsetof(seccomp_data, args[1]);
constexpr uint32_t kTioclinux = 0x541C;

constexpr sock_filter Load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
constexpr sock_filter Clear(uint32_t bits) { return BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~bits); }
constexpr sock_filter Return(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
// Skips `equal` statements if the value matches, otherwise `otherwise` statements.
constexpr sock_filter SkipIf(uint32_t value, uint8_t equal, uint8_t otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, equal, otherwise);
}

constexpr sock_filter kNoInput[] = {
    Load(offsetof(seccomp_data, arch)),
    SkipIf(AUDIT_ARCH_I386, 0, 2),
    Load(offsetof(seccomp_data, nr)),
    SkipIf(kI386Ioctl, 5, 8),
    SkipIf(AUDIT_ARCH_X86_64, 0, 7),
    Load(offsetof(seccomp_data, nr)),
    Clear(kX32Bit),
    SkipIf(kIoctl, 1, 0),
    SkipIf(kX32Ioctl, 0, 3),
    Load(kRequest),
    SkipIf(TIOCSTI, 2, 0),
    SkipIf(kTioclinux, 1, 0),
    Return(SECCOMP_RET_ALLOW),
    Return(SECCOMP_RET_ERRNO | EPERM),
};

// Without the flag older kernels would disable speculation for the program, which slows it down.
bool ForbidTerminalInput() {
  sock_fprog program{std::size(kNoInput), const_cast<sock_filter*>(kNoInput)};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                   &program) == 0;
}

// ---- Keys --------------------------------------------------------------------------------------

// Where keyrings are not available at all, the program cannot use root's either.
bool LeaveSessionKeyring() {
  if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) >= 0) return true;
  const int error_number = errno;
  const bool is_reached =
      ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0) >= 0;
  errno = error_number;
  return !is_reached;
}

// ---- Descriptors -------------------------------------------------------------------------------

struct DirectoryEntry {  // of getdents64; readdir would allocate memory
  uint64_t inode;
  int64_t next;
  uint16_t bytes;
  uint8_t type;
  char name[];
};

bool CloseListedAtExec() {
  const UniqueFd list(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!list) return false;
  alignas(DirectoryEntry) char entries[4096];
  long bytes = 0;
  while ((bytes = ::syscall(SYS_getdents64, list.get(), entries, sizeof(entries))) > 0) {
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      at += entry->bytes;
      const auto fd = ParseNumber<int>(entry->name);
      if (!fd || *fd < static_cast<int>(kFirstClosed)) continue;
      if (::fcntl(*fd, F_SETFD, FD_CLOEXEC) != 0) return false;
    }
  }
  return bytes == 0;
}

// The exec closes them, not this function: one of them reports to the recorder whether the exec
// worked.
bool CloseDescriptorsAtExec() {
  return ::syscall(SYS_close_range, kFirstClosed, UINT_MAX, CLOSE_RANGE_CLOEXEC) == 0 ||
         CloseListedAtExec();
}

}  // namespace

std::span<const sock_filter> TerminalInputFilter() { return kNoInput; }

UserFailure BecomeConfinedUser(const TargetUser& user, const Confinement& confinement) {
  if (!confinement.allows_new_privileges && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return {errno, "no_new_privs", ""};
  }
  // Without no_new_privs only root may install a filter.
  if (!ForbidTerminalInput()) return {errno, "seccomp", kSeccompHint};
  const UserFailure failure = BecomeUser(user);
  if (failure.error_number != 0) return failure;
  if (!LeaveSessionKeyring()) return {errno, "a session keyring of its own", kKeyringHint};
  if (!confinement.keeps_descriptors && !CloseDescriptorsAtExec()) {
    return {errno, "closing descriptors", kDescriptorsHint};
  }
  return {};
}

}  // namespace xpu
