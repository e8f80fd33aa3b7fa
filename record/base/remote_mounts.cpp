#include "record/base/remote_mounts.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/number.h"
#include "format/base/split.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

constexpr int kPatienceMs = 2000;
constexpr uint64_t kBelievedNs = 1'000'000'000;
constexpr size_t kMaxMountsBytes = size_t{8} << 20;

// Decodes "\040" for a space, and so on.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto code = text[i] == '\\' ? ParseNumber<unsigned>(text.substr(i + 1, 3), 8)
                                      : std::optional<unsigned>();
    plain += code ? static_cast<char>(*code) : text[i];
    if (code) i += 3;
  }
  return plain;
}

bool IsBelow(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

// A path, and the process whose mounts it is resolved in.
struct PathLocation {
  std::string process;  // "/proc/5"
  std::string path;
};

PathLocation LocatePath(const std::string& path) {
  constexpr std::string_view kProc = "/proc/", kRoot = "/root/";
  if (!path.starts_with('/')) {
    std::array<char, PATH_MAX> directory;
    const char* here = ::getcwd(directory.data(), directory.size());
    return {"/proc/self", Format("{}/{}", here == nullptr ? "" : here, path)};
  }
  if (!path.starts_with(kProc)) return {"/proc/self", path};
  const size_t end = std::min(path.find('/', kProc.size()), path.size());
  const std::string process = path.substr(0, end);
  const std::string rest = path.substr(end);
  if (rest.starts_with(kRoot)) return {process, rest.substr(kRoot.size() - 1)};
  if (rest.starts_with("/map_files/")) return {process, LinkText(path)};
  return {"/proc/self", path};
}

// The file to access: an open descriptor or a path.
struct Access {
  int fd = -1;
  const char* path = nullptr;
};

// Runs in the child: only system calls, since other threads of the parent may have held locks.
// Makes a request that the kernel cannot answer without the server.
[[noreturn]] void Make(const Access& access) {
  // The child must not keep pipes open that another process reads, nor file locks.
  int place = 0;
  if (access.fd >= 0) ::dup2(access.fd, place);
  ::syscall(SYS_close_range, access.fd >= 0 ? 1 : 0, ~0U, 0);
  if (access.fd < 0) place = ::open(access.path, O_PATH | O_CLOEXEC);  // the only descriptor: 0
  struct statx info {};
  if (place < 0 ||
      ::statx(place, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_TYPE, &info) != 0 ||
      !S_ISREG(info.stx_mode)) {
    ::_exit(0);
  }
  constexpr char kSame[] = "/proc/self/fd/0";
  constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  int file = ::open(kSame, kFlags | O_DIRECT);
  if (file < 0) file = ::open(kSame, kFlags);
  alignas(4096) static char bytes[4096];
  ::_exit(::pread(file, bytes, sizeof(bytes), 0) < 0 ? 1 : 0);  // an error is an answer too
}

// Also returns true if no child can be created: then nothing is known.
bool IsAnswered(const Access& access) {
  const pid_t child = ::fork();
  if (child < 0) return true;
  if (child == 0) Make(access);
  const UniqueFd ended(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  pollfd poll_fd{ended.get(), POLLIN, 0};
  int ready = -1;
  if (ended) {
    while ((ready = ::poll(&poll_fd, 1, kPatienceMs)) < 0 && errno == EINTR) {
    }
  }
  if (ready != 0) {
    if (ready < 0) ::kill(child, SIGKILL);
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return true;
  }
  // Not waited for: it may not end before its file system does.
  ::kill(child, SIGKILL);
  return false;
}

// One per process: the state of a mount is a property of the machine.
class RemoteMounts {
 public:
  Status Check(const std::string& path);
  Status Check(int fd, const std::string& path);

 private:
  struct Namespace {
    std::vector<Mount> mounts;
    uint64_t time_ns = 0;
  };
  struct Known {
    std::string type;
    bool answers = true;
    uint64_t time_ns = 0;
  };
  const std::vector<Mount>& MountsOf(const std::string& process);
  static Status Ask(Known& known, const Access& access, const std::string& path);

  std::mutex mutex_;
  std::map<std::string, Namespace> namespaces_;
  std::map<std::string, Known> known_;  // by device
};

const std::vector<Mount>& RemoteMounts::MountsOf(const std::string& process) {
  Namespace& one = namespaces_[LinkText(process + "/ns/mnt")];
  if (one.time_ns == 0 || MonotonicNs() - one.time_ns > kBelievedNs) {
    const auto text = ReadFile(process + "/mountinfo", kMaxMountsBytes);
    one.mounts = text.ok() ? ParseMounts(text.value()) : std::vector<Mount>();
    one.time_ns = MonotonicNs();
  }
  return one.mounts;
}

Status RemoteMounts::Ask(Known& known, const Access& access, const std::string& path) {
  if (known.answers && (known.time_ns == 0 || MonotonicNs() - known.time_ns > kBelievedNs)) {
    known.answers = IsAnswered(access);
    known.time_ns = MonotonicNs();
  }
  if (known.answers) return Ok();
  return Error{ErrorKind::kBusy,
               Format("{}: the file system ({}) does not respond", path, known.type),
               "check its server, or unmount it with umount -l"};
}

Status RemoteMounts::Check(const std::string& path) {
  const PathLocation place = LocatePath(path);
  // Held while waiting for the child: other threads would wait for the same mount.
  const std::lock_guard lock(mutex_);
  const Mount* mount = FindMount(MountsOf(place.process), place.path);
  if (mount == nullptr || !IsRemoteType(mount->type)) return Ok();
  Known& known = known_[mount->device];
  known.type = mount->type;
  return Ask(known, {.path = path.c_str()}, path);
}

Status RemoteMounts::Check(int fd, const std::string& path) {
  struct statx info {};
  constexpr int kWithoutServer = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
  if (::statx(fd, "", kWithoutServer, STATX_TYPE, &info) != 0) return Ok();
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(Format("{}:{}", info.stx_dev_major, info.stx_dev_minor));
  return known == known_.end() ? Ok() : Ask(known->second, {.fd = fd}, path);
}

RemoteMounts& TheMounts() {
  static RemoteMounts mounts;
  return mounts;
}

}  // namespace

std::vector<Mount> ParseMounts(std::string_view text) {
  // "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw"
  constexpr size_t kDevice = 2, kMountPoint = 4;
  std::vector<Mount> mounts;
  for (const std::string_view line : Split(text, "\n")) {
    const auto words = Split(line, " ");
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (dash - words.begin() <= static_cast<ptrdiff_t>(kMountPoint) || words.end() - dash < 2)
      continue;
    mounts.push_back(
        {Unescaped(words[kMountPoint]), std::string(words[kDevice]), std::string(dash[1])});
  }
  return mounts;
}

const Mount* FindMount(const std::vector<Mount>& mounts, std::string_view path) {
  // Of two mounts at one directory the later one hides the earlier one.
  const Mount* found = nullptr;
  for (const Mount& mount : mounts) {
    const bool is_closer =
        found == nullptr || mount.mount_point.size() >= found->mount_point.size();
    if (is_closer && IsBelow(path, mount.mount_point)) found = &mount;
  }
  return found;
}

bool IsRemoteType(std::string_view type) {
  constexpr std::string_view kTypes[] = {"9p",     "afs", "beegfs", "ceph", "cifs",    "gpfs",
                                         "lustre", "nfs", "nfs4",   "smb3", "orangefs"};
  return type == "fuse" || type == "fuseblk" || type.starts_with("fuse.") ||
         std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

Status CheckMountAnswers(const std::string& path) {
  constexpr std::string_view kOpen = "/proc/self/fd/";
  const auto fd = path.starts_with(kOpen)
                      ? ParseNumber<int>(std::string_view(path).substr(kOpen.size()))
                      : std::nullopt;
  return fd ? TheMounts().Check(*fd, path) : TheMounts().Check(path);
}

}  // namespace xpu
