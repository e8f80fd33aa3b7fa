#include "record/gpu/cuda_file.h"

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/base/number.h"
#include "format/base/text.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

// Also true if the other process has ended or the kernel refuses: then the child is left alone.
bool IsSameFile(uint32_t pid, uint32_t other_pid, int fd) {
  const long order =
      ::syscall(SYS_kcmp, static_cast<long>(pid), static_cast<long>(other_pid),
                static_cast<long>(KCMP_FILE), static_cast<long>(fd), static_cast<long>(fd));
  return order == 0 || (order < 0 && errno != EBADF);
}

}  // namespace

CudaFile CudaFileOf(uint32_t pid, uint32_t parent_pid) {
  constexpr int kMost = 4096;  // looked at: some 10 ms
  int looked_at = 0;
  std::error_code failed;
  std::filesystem::directory_iterator at(Format("/proc/{}/fd", LivingThread(pid)), failed);
  for (; !failed && at != std::filesystem::directory_iterator() && looked_at < kMost;
       at.increment(failed), ++looked_at) {
    std::error_code closed;
    const std::string file = std::filesystem::read_symlink(at->path(), closed).string();
    // Also below another root.
    if (file.find("/dev/nvidia-uvm") == std::string::npos) continue;
    const auto fd = ParseNumber<int>(at->path().filename().string());
    const bool is_inherited = parent_pid != 0 && fd && IsSameFile(pid, parent_pid, *fd);
    return is_inherited ? CudaFile::kOfParent : CudaFile::kOwn;
  }
  return CudaFile::kNone;
}

}  // namespace xpu
