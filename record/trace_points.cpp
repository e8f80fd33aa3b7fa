#include "record/trace_points.h"

#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/base/handle.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr const char* kPlaces[] = {"/sys/kernel/tracing/events",
                                   "/sys/kernel/debug/tracing/events"};

// By their numbers: glibc has functions for them from 2.36 on.
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

// An empty descriptor leaves the reason in errno.
UniqueFd OpenEvents() {
  for (const char* place : kPlaces) {
    UniqueFd events(::open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (events) return events;
  }
  return MountForUs();
}

}  // namespace

Result<uint64_t> FindTracepoint(const std::string& name) {
  const UniqueFd events = OpenEvents();
  if (!events) {
    Error error = SystemError(Format("tracepoint {}: tracefs", name), errno);
    error.hint = "run as root, or: mount -t tracefs none /sys/kernel/tracing";
    return error;
  }
  const size_t colon = name.find(':');
  const std::string path = Format("{}/{}/id", name.substr(0, colon), name.substr(colon + 1));
  const UniqueFd file(::openat(events.get(), path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[32];
  const ssize_t bytes = file ? ::read(file.get(), text, sizeof(text)) : -1;
  uint64_t id = 0;
  if (bytes > 0) std::from_chars(text, text + bytes, id);
  if (id == 0) {
    return Error{ErrorKind::kNotFound,
                 Format("tracepoint {}: this kernel has none of this name", name),
                 "ls /sys/kernel/tracing/events lists them"};
  }
  return id;
}

}  // namespace xpu
