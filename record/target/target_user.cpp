#include "record/target/target_user.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cupti_inject/wire.h"
#include "format/base/file.h"
#include "format/base/handle.h"
#include "format/base/number.h"
#include "format/base/text.h"
#include "record/base/environment.h"
#include "record/gpu/inject_library.h"
#include "record/process/file_rights.h"

namespace xpu {
namespace {

std::vector<gid_t> GroupsOf(const char* name, gid_t gid) {
  int count = 64;
  std::vector<gid_t> groups(static_cast<size_t>(count));
  // The first call returns the number of groups.
  while (::getgrouplist(name, gid, groups.data(), &count) < 0) {
    groups.resize(std::max(static_cast<size_t>(count), groups.size() * 2));
    count = static_cast<int>(groups.size());
  }
  groups.resize(static_cast<size_t>(count));
  return groups;
}

const passwd* FindEntry(const std::string& text) {
  if (const passwd* entry = ::getpwnam(text.c_str())) return entry;
  const auto uid = ParseNumber<uid_t>(text);
  return uid ? ::getpwuid(*uid) : nullptr;
}

bool HasNoCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (::syscall(SYS_capget, &header, sets) != 0) return false;
  return std::all_of(sets, sets + 2, [](const auto& set) {
    return set.effective == 0 && set.permitted == 0 && set.inheritable == 0;
  });
}

bool HasIds(const TargetUser& user) {
  uid_t uids[3] = {};
  gid_t gids[3] = {};
  if (::getresuid(&uids[0], &uids[1], &uids[2]) != 0) return false;
  if (::getresgid(&gids[0], &gids[1], &gids[2]) != 0) return false;
  return std::all_of(uids, uids + 3, [&](uid_t uid) { return uid == user.uid; }) &&
         std::all_of(gids, gids + 3, [&](gid_t gid) { return gid == user.gid; });
}

// Returns true if one of these ways is open, which would be a security hole.
bool CanReturnToRoot(const TargetUser& user) {
  const auto works = [](long result) { return result == 0; };
  if (works(::syscall(SYS_setuid, 0)) || works(::syscall(SYS_setresuid, -1, 0, -1)) ||
      works(::syscall(SYS_setresuid, 0, -1, -1))) {
    return true;
  }
  return user.gid != 0 && works(::syscall(SYS_setgid, 0));
}

// Runs in a child. Returns 0 or an errno.
int TryLoading(const std::string& library) {
  const int fd = ::open(library.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  // Maps the file as the loader does, which fails on a file system mounted with noexec.
  void* code = ::mmap(nullptr, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  return code == MAP_FAILED ? errno : 0;
}

int TryConnecting(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof(address.sun_path)) return ENAMETOOLONG;
  name.copy(address.sun_path + 1, name.size());  // an abstract name
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  return ::connect(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 ? 0 : errno;
}

constexpr int kCouldNotBecome = 255;  // greater than any errno

// Returns the result of `attempt` in a child that has become the user.
int TryAs(const TargetUser& user, const std::function<int()>& attempt) {
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) ::_exit(BecomeUser(user).error_number != 0 ? kCouldNotBecome : attempt());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

Status CheckAttempt(const TargetUser& user, const std::string& object, const std::string& hint,
                    const std::function<int()>& attempt) {
  const int error_number = TryAs(user, attempt);
  // The program's own process reports these errors better.
  if (error_number == 0 || error_number == kCouldNotBecome) return Ok();
  return SystemError(Format("{}: not accessible to user {}", object, user.name), error_number,
                     hint);
}

Status CheckLibrary(const TargetUser& user, const std::string& library, std::string hint) {
  const FileRights rights{.user = user.uid, .groups = user.groups};
  if (const auto directory = ClosedDirectory(library, rights)) {
    hint += Format("; user {} may not enter {}", user.name, *directory);
  }
  return CheckAttempt(user, library, hint, [&] { return TryLoading(library); });
}

}  // namespace

Result<TargetUser> FindTargetUser(const std::string& text) {
  errno = 0;
  const passwd* entry = FindEntry(text);
  if (entry == nullptr) {
    return Error{ErrorKind::kUsage, Format("--user {}: no such user", text),
                 "expected a name or number listed by getent passwd"};
  }
  if (entry->pw_uid == 0) {
    return Error{ErrorKind::kUsage, Format("--user {}: is root", text),
                 "without --user the program runs as root"};
  }
  return TargetUser{entry->pw_name, entry->pw_uid,
                    entry->pw_gid,  GroupsOf(entry->pw_name, entry->pw_gid),
                    entry->pw_dir,  entry->pw_shell[0] == '\0' ? "/bin/sh" : entry->pw_shell};
}

void SetUserVariables(const TargetUser& user, std::vector<std::string>& environment) {
  SetVariable(environment, "HOME", user.home);
  SetVariable(environment, "USER", user.name);
  SetVariable(environment, "LOGNAME", user.name);
  SetVariable(environment, "SHELL", user.shell);
}

// The C library's functions would also change other threads, which a forked child does not have
// although its C library believes it does.
UserFailure BecomeUser(const TargetUser& user) {
  static constexpr char kHint[] =
      "this needs CAP_SETUID and CAP_SETGID, which a container may lack";
  const auto failed = [](const char* step) { return UserFailure{errno, step, kHint}; };
  if (::syscall(SYS_setgroups, user.groups.size(), user.groups.data()) != 0) {
    return failed("setgroups");
  }
  if (::syscall(SYS_setresgid, user.gid, user.gid, user.gid) != 0) return failed("setresgid");
  if (::syscall(SYS_setresuid, user.uid, user.uid, user.uid) != 0) return failed("setresuid");
  // The change of user ids does that itself unless securebits are set.
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2]{};
  if (::syscall(SYS_capset, &header, none) != 0) return failed("capset");
  if (!HasIds(user) || !HasNoCapabilities() || CanReturnToRoot(user)) {
    return {EPERM, "privileges could be regained", kHint};
  }
  return {};
}

Status CheckUserReaches(const TargetUser& user, const std::vector<std::string>& environment) {
  constexpr char kLibraryHint[] =
      "install xpu-record where every user can read it, for instance in /opt/xpu, or record with "
      "--cpu-only";
  if (const auto library = FindVariable(environment, kInjectionVariable)) {
    XPU_RETURN_IF_ERROR(CheckLibrary(user, *library, kLibraryHint));
  }
  if (const auto cupti = FindVariable(environment, wire::kCuptiLibVariable)) {
    XPU_RETURN_IF_ERROR(CheckLibrary(user, *cupti, "name a file that this user can read"));
  }
  const auto connection_string = FindVariable(environment, wire::kEnvironmentVariable);
  if (!connection_string) return Ok();
  const std::string name = connection_string->substr(0, connection_string->find(':'));
  return CheckAttempt(user, Format("unix socket @{}", name),
                      "a security module forbids it: record with --cpu-only, or change its policy",
                      [&] { return TryConnecting(name); });
}

}  // namespace xpu
