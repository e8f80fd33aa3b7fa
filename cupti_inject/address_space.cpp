#include "cupti_inject/address_space.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cupti_inject/wire.h"

namespace xpu::inject {

uint64_t FreeAddressBytes() {
  constexpr uint64_t kNobodyTells = 1;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return kNobodyTells;
  char text[64];
  const ssize_t n = read(fd, text, sizeof(text));
  close(fd);
  uint64_t pages = 0;
  for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; ++i) {
    pages = pages * 10 + static_cast<uint64_t>(text[i] - '0');
  }
  const uint64_t used = pages * wire::kPageBytes;
  return used == 0 || used >= limit.rlim_cur ? kNobodyTells : limit.rlim_cur - used;
}

}  // namespace xpu::inject
