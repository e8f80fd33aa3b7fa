#include "record/target/gained_privileges.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <endian.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "format/base/handle.h"
#include "format/base/text.h"

namespace xpu {
namespace {

// The kernel ignores the bits of scripts. Some systems forbid everybody to read such programs.
bool IsProgram(const std::string& file) {
  constexpr std::string_view kElf(
      "\x7f"
      "ELF",
      4);
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd) return errno == EACCES;
  char magic[kElf.size()] = {};
  return ::pread(fd.get(), magic, sizeof(magic), 0) == sizeof(magic) &&
         std::string_view(magic, sizeof(magic)) == kElf;
}

bool BitsAreIgnored(const std::string& file) {
  struct statvfs system {};
  return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
         (::statvfs(file.c_str(), &system) == 0 && (system.f_flag & ST_NOSUID) != 0);
}

// Without the capabilities that this process and its descendants can never get.
uint64_t FileCapabilities(const std::string& file) {
  char value[64];
  const ssize_t bytes = ::getxattr(file.c_str(), "security.capability", value, sizeof(value));
  if (bytes <= 0) return 0;
  uint64_t permitted = PermittedOfFile(value, static_cast<size_t>(bytes));
  for (int capability = 0; capability < 64; ++capability) {
    if (::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) != 1)
      permitted &= ~(uint64_t{1} << capability);
  }
  return permitted;
}

std::string UserName(uid_t uid) {
  const passwd* entry = ::getpwuid(uid);
  return entry == nullptr ? std::to_string(uid) : entry->pw_name;
}

std::string GroupName(gid_t gid) {
  const group* entry = ::getgrgid(gid);
  return entry == nullptr ? std::to_string(gid) : entry->gr_name;
}

}  // namespace

Starter OwnStarter() {
  Starter starter{::geteuid(), ::getegid(), 0};
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};
  if (::syscall(SYS_capget, &header, sets) == 0) {
    starter.capabilities = sets[0].permitted | uint64_t{sets[1].permitted} << 32;
  }
  return starter;
}

uint64_t PermittedOfFile(const void* value, size_t bytes) {
  vfs_cap_data data{};
  std::memcpy(&data, value, std::min(bytes, sizeof(data)));
  if (bytes < sizeof(uint32_t)) return 0;
  const uint32_t revision = le32toh(data.magic_etc) & VFS_CAP_REVISION_MASK;
  uint64_t permitted = le32toh(data.data[0].permitted);
  if (revision != VFS_CAP_REVISION_1) permitted |= uint64_t{le32toh(data.data[1].permitted)} << 32;
  return permitted;
}

std::string GainedPrivileges(const std::string& file, const Starter& starter) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  if (!IsProgram(file) || BitsAreIgnored(file)) return {};
  if ((info.st_mode & S_ISUID) != 0 && info.st_uid != starter.uid) {
    return Format("user {} (setuid)", UserName(info.st_uid));
  }
  // Without the group's execute bit it means something else (mandatory locks).
  constexpr mode_t kSetGroup = S_ISGID | S_IXGRP;
  if ((info.st_mode & kSetGroup) == kSetGroup && info.st_gid != starter.gid) {
    return Format("group {} (setgid)", GroupName(info.st_gid));
  }
  if ((FileCapabilities(file) & ~starter.capabilities) != 0) return "capabilities (setcap)";
  return {};
}

Status CheckGainsNothing(const std::string& file, const Starter& starter) {
  const std::string gained = GainedPrivileges(file, starter);
  if (gained.empty()) return Ok();
  return Error{ErrorKind::kPermission,
               Format("{}: gains the privileges of {} when it starts, and the kernel does not let "
                      "such a program be recorded",
                      file, gained),
               "record what it starts, with 'sudo xpu-record PROGRAM' instead of 'xpu-record sudo "
               "PROGRAM', or record all processes as root with -a"};
}

}  // namespace xpu
