#include "record/kernel/trace_points.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/base/handle.h"
#include "format/base/nearest_names.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr const char* kEventDirectories[] = {"/sys/kernel/tracing/events",
                                             "/sys/kernel/debug/tracing/events"};

// By number: glibc has functions for these system calls from 2.36 on.
UniqueFd MountForUs() {
  const UniqueFd context(static_cast<int>(::syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC)));
  if (!context) return {};
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return {};
  }
  const UniqueFd mount(static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0)));
  if (!mount) return {};
  return UniqueFd(::openat(mount.get(), "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// On failure the descriptor is empty and errno is set.
UniqueFd OpenEvents() {
  for (const char* directory : kEventDirectories) {
    UniqueFd events(::open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (events) return events;
  }
  return MountForUs();
}

void CloseDirectory(DIR* directory) { ::closedir(directory); }

// The sorted subdirectories of a directory in tracefs.
std::vector<std::string> DirectoriesIn(int events, const std::string& path) {
  std::vector<std::string> names;
  UniqueFd directory(::openat(events, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Handle<DIR, CloseDirectory> entries(directory ? ::fdopendir(directory.get()) : nullptr);
  if (entries) directory.release();
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string FirstOf(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    AppendFormat(text, "{}{}", i == 0 ? "" : ", ", names[i]);
  }
  return names.size() > kMost ? text + ", ..." : text;
}

// Suggests similar tracepoints for one that does not exist.
std::string HintOf(int events, const std::string& category, const std::string& name) {
  const std::vector<std::string> names = DirectoriesIn(events, category);
  if (!names.empty()) {
    const std::string near = NearestNames(names, name);
    return near.empty() ? Format("category {} has {}", category, FirstOf(names))
                        : Format("did you mean {} in category {}?", near, category);
  }
  const std::vector<std::string> categories = DirectoriesIn(events, ".");
  const std::string near = NearestNames(categories, category);
  if (!near.empty()) return Format("did you mean category {}?", near);
  return "/sys/kernel/tracing/available_events lists them; if it is missing: mount -t tracefs none "
         "/sys/kernel/tracing";
}

// Files of tracefs belong to root and to the group that the mount names.
constexpr char kLetRead[] =
    "run as root, or once: sudo mount -t tracefs -o gid=$(id -g),mode=750 none /sys/kernel/tracing";

}  // namespace

Result<uint64_t> FindTracepoint(const std::string& name) {
  const UniqueFd events = OpenEvents();
  if (!events) {
    return SystemError(Format("tracepoint {}: tracefs", name), errno, kLetRead);
  }
  const size_t colon = name.find(':');
  const std::string category = name.substr(0, colon);
  const std::string point = name.substr(colon + 1);
  const std::string path = Format("{}/{}/id", category, point);
  const UniqueFd file(::openat(events.get(), path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == EACCES) {
    return SystemError(Format("tracepoint {}: {}", name, path), errno, kLetRead);
  }
  char text[32];
  const ssize_t bytes = file ? ::read(file.get(), text, sizeof(text)) : -1;
  uint64_t id = 0;
  if (bytes > 0) std::from_chars(text, text + bytes, id);
  if (id == 0) {
    return Error{ErrorKind::kNotFound, Format("tracepoint {}: does not exist in this kernel", name),
                 HintOf(events.get(), category, point)};
  }
  return id;
}

}  // namespace xpu
