#include "record/kernel/capabilities.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/base/quote.h"
#include "format/base/text.h"

namespace xpu {
namespace {

// If /proc is not mounted, the shell that the user types the command into finds the path.
std::string OwnPath() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return "$(command -v xpu-record)";
  return QuoteForShell(std::string(path, static_cast<size_t>(length)));
}

}  // namespace

uint64_t EffectiveCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  // Uses the system call, because a missing /proc may be what must be reported.
  if (::syscall(SYS_capget, &header, data) != 0) return 0;
  return data[0].effective | uint64_t{data[1].effective} << 32;
}

std::string MissingCapabilities(uint64_t effective) {
  const auto has = [&](int capability) { return (effective >> capability & 1) != 0; };
  if (has(kCapSysAdmin)) return {};  // includes both
  if (has(kCapBpf)) return has(kCapPerfmon) ? "" : "CAP_PERFMON";
  return has(kCapPerfmon) ? "CAP_BPF" : "CAP_BPF and CAP_PERFMON";
}

std::string HowToGetCapabilities(std::string_view more) {
  return Format("run as root, or once: sudo setcap cap_bpf,cap_perfmon{}+ep {}", more, OwnPath());
}

}  // namespace xpu
