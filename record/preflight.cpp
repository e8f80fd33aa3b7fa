#include "record/preflight.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <sys/utsname.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/gpu_source.h"
#include "record/probe_source.h"
#include "record/running_processes.h"

namespace xpu {
namespace {

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " and ") + word;
  return text;
}

// What of the recording needs BPF; empty: nothing does.
std::string NeedsOfBpf(const RecordOptions& options) {
  std::vector<std::string> needs;
  if (options.record_cpu) needs.emplace_back("CPU samples");
  if (options.record_gpu && options.launch_stacks != LaunchStacks::kNone &&
      !WantsInlineStacks(options)) {
    needs.emplace_back(options.inject ? "launch stacks" : "launch probes");
  }
  if (!options.probes.empty()) needs.emplace_back("probes");
  return Join(needs);
}

bool IsAtLeast(const std::string& release, long wanted_major, long wanted_minor) {
  char* end = nullptr;
  const long major = std::strtol(release.c_str(), &end, 10);
  const long minor = *end == '.' ? std::strtol(end + 1, nullptr, 10) : 0;
  return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
}

}  // namespace

uint64_t EffectiveCapabilities() {
  auto status = ReadFile("/proc/self/status");
  if (!status.ok()) return 0;
  const size_t at = status->find("\nCapEff:");
  return at == std::string::npos ? 0 : std::strtoull(status->c_str() + at + 8, nullptr, 16);
}

std::vector<std::string> MissingCapabilities(uint64_t effective) {
  const auto has = [&](int capability) { return (effective >> capability & 1) != 0; };
  std::vector<std::string> missing;
  if (has(kCapSysAdmin)) return missing;  // stands for both
  if (!has(kCapBpf)) missing.emplace_back("CAP_BPF");
  if (!has(kCapPerfmon)) missing.emplace_back("CAP_PERFMON");
  return missing;
}

bool IsKernelSupported(const std::string& release) { return IsAtLeast(release, 5, 12); }

bool HasProbeCookies(const std::string& release) { return IsAtLeast(release, 5, 15); }

namespace {

Status CheckKernelAndUser(const RecordOptions& options) {
  const std::string needs = NeedsOfBpf(options);
  if (needs.empty()) return Ok();
  utsname system{};
  ::uname(&system);
  if (!IsKernelSupported(system.release)) {
    return Error{ErrorKind::kUnsupported,
                 Format("{} need Linux 5.12 or newer, this is {}", needs, system.release),
                 "--gpu-only records the GPU side alone"};
  }
  if (ProbeSource::IsWanted(options) && !HasProbeCookies(system.release)) {
    return Error{ErrorKind::kUnsupported,
                 Format("probes need Linux 5.15 or newer, this is {}", system.release),
                 "record without --no-inject, or with --cpu-only"};
  }
  if (const auto missing = MissingCapabilities(EffectiveCapabilities()); !missing.empty()) {
    return Error{ErrorKind::kPermission,
                 Format("{} need {}, which this process lacks", needs, Join(missing)),
                 "run as root, or once: sudo setcap cap_bpf,cap_perfmon+ep <path of xpu-record>; "
                 "--gpu-only works for any user"};
  }
  if (::access(kBtfPath, R_OK) != 0) {
    return Error{ErrorKind::kUnsupported,
                 Format("{} need the kernel's type information: {}: {}", needs, kBtfPath,
                        std::strerror(errno)),
                 "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y"};
  }
  return Ok();
}

}  // namespace

Status Preflight(const RecordOptions& options) {
  if (!options.user.empty() && ::geteuid() != 0) {
    return Error{ErrorKind::kUsage, "--user: only root can run a program as another user",
                 Format("sudo xpu-record --user {} ...", options.user)};
  }
  XPU_RETURN_IF_ERROR(CheckKernelAndUser(options));
  for (const pid_t pid : options.pids) XPU_RETURN_IF_ERROR(CheckProcess(pid));
  return Ok();
}

}  // namespace xpu
