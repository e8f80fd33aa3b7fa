#include "record/gpu/cuda_opens.h"

#include <array>
#include <string>

#include <fcntl.h>
#include <sys/fanotify.h>
#include <unistd.h>

#include "format/base/text.h"
#include "record/base/process_status.h"
#include "record/process/target_file.h"

namespace xpu {
namespace {

constexpr size_t kMostNamespaces = 4096;
constexpr int kMostReads = 64;  // at once, of some 70 events each

}  // namespace

// Events name files by identifiers, because the kernel would otherwise open the device for us.
// Marks without limit need the same privilege as the processes' numbers.
CudaOpens::CudaOpens()
    : events_(::fanotify_init(
          FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_FID | FAN_UNLIMITED_MARKS,
          O_RDONLY)) {}

bool CudaOpens::WatchDeviceOf(uint32_t pid) {
  if (!events_ || mount_namespaces_.size() >= kMostNamespaces) return false;
  const std::string process = Format("/proc/{}", LivingThread(pid));
  // In a user namespace of its own anybody can mount a file system that does not answer.
  if (!IsOwnUserNamespace(process + "/ns/user")) return false;
  const auto [known, is_new] = mount_namespaces_.try_emplace(LinkText(process + "/ns/mnt"), false);
  auto& [mounts, is_watched] = *known;
  if (!is_new) return is_watched;
  auto device = OpenInRoot(process + "/root", "/dev/nvidia-uvm");
  is_watched =
      device.ok() && ::fanotify_mark(events_.get(), FAN_MARK_ADD, FAN_OPEN, AT_FDCWD,
                                     Format("/proc/self/fd/{}", device->get()).c_str()) == 0;
  return is_watched;
}

std::vector<uint32_t> CudaOpens::Take() {
  std::vector<uint32_t> pids;
  alignas(fanotify_event_metadata) std::array<char, 4096> buffer;
  for (int reads = 0; events_ && reads < kMostReads; ++reads) {
    ssize_t bytes = ::read(events_.get(), buffer.data(), buffer.size());
    if (bytes <= 0) break;
    const auto* event = reinterpret_cast<const fanotify_event_metadata*>(buffer.data());
    for (; FAN_EVENT_OK(event, bytes); event = FAN_EVENT_NEXT(event, bytes)) {
      if (event->pid > 0) pids.push_back(static_cast<uint32_t>(event->pid));
    }
  }
  return pids;
}

}  // namespace xpu
