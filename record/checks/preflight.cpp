#include "record/checks/preflight.h"

#include <utility>
#include <vector>

#include <unistd.h>

#include "format/base/text.h"
#include "record/checks/limits_check.h"
#include "record/kernel/capabilities.h"
#include "record/kernel/machine.h"
#include "record/process/running_processes.h"
#include "record/source/source_context.h"

namespace xpu {
namespace {

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " and ") + word;
  return text;
}

}  // namespace

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

namespace {

// Whether --gpu-only records a part of what was asked for.
bool HasGpuPart(const RecordOptions& options) {
  return options.record_cpu && options.record_gpu && options.inject && options.probes.empty() &&
         options.cpu_events.front().is_clock && options.cpu_events.size() == 1 &&
         (options.launch_stacks == LaunchStacks::kNone || WantsInlineStacks(options));
}

Error Unsupported(const std::string& needs, const Obstacle& obstacle) {
  return Error{ErrorKind::kUnsupported, Format("{}: {}", needs, obstacle.what), obstacle.cure};
}

Status CheckKernelAndUser(const RecordOptions& options) {
  const std::string needs = NeedsOfBpf(options);
  if (needs.empty()) return Ok();
  const std::string missing = MissingCapabilities(EffectiveCapabilities());
  if (!missing.empty()) {
    std::string hint = HowToGetCapabilities();
    if (HasGpuPart(options)) hint += "; --gpu-only works for any user";
    return Error{ErrorKind::kPermission,
                 Format("{} need {}, which this process lacks", needs, missing), std::move(hint)};
  }
  const Machine machine = LookAtMachine();
  if (const auto obstacle = ObstacleToBpf(machine)) return Unsupported(needs, *obstacle);
  if (options.record_cpu) {
    if (const auto obstacle = ObstacleToPerfEvents(machine)) return Unsupported(needs, *obstacle);
  }
  if (!WantsProbes(options)) return Ok();
  if (const auto obstacle = ObstacleToProbes(machine)) return Unsupported("probes", *obstacle);
  return Ok();
}

}  // namespace

Status Preflight(const RecordOptions& options) {
  if (!options.user.empty() && ::geteuid() != 0) {
    return Error{ErrorKind::kUsage, "--user: only root can run a program as another user",
                 Format("sudo xpu-record --user {} ...", options.user)};
  }
  XPU_RETURN_IF_ERROR(CheckOwnLimits(options, !NeedsOfBpf(options).empty()));
  XPU_RETURN_IF_ERROR(CheckKernelAndUser(options));
  for (const pid_t pid : options.pids) XPU_RETURN_IF_ERROR(CheckProcess(pid));
  return Ok();
}

}  // namespace xpu
