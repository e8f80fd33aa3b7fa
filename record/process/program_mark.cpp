#include "record/process/program_mark.h"

#include <cerrno>
#include <cstdint>

#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/watched_layout.h"
#include "format/base/handle.h"
#include "record/kernel/bpf_support.h"

namespace xpu {

Status MarkProgram(int map_fd, pid_t program) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, program, 0)));
  if (!pidfd) return SystemError("pidfd_open", errno);
  const int key = pidfd.get();
  const uint32_t mark = XPU_MARK_BEFORE_EXEC;
  if (bpf_map_update_elem(map_fd, &key, &mark, BPF_ANY) == 0) return Ok();
  return BpfError("marking the recorded program", -errno);
}

}  // namespace xpu
