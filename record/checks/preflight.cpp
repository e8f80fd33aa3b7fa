#include "record/checks/preflight.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "format/base/text.h"
#include "record/base/size_text.h"
#include "record/kernel/capabilities.h"
#include "record/kernel/machine.h"
#include "record/kernel/own_limits.h"
#include "record/kernel/perf_event.h"
#include "record/process/process_maps.h"
#include "record/process/running_processes.h"
#include "record/source/source_context.h"

namespace xpu {
namespace {

// Measured: open at once in recordings of all kinds, without those for each CPU.
constexpr uint64_t kDescriptors = 24;
constexpr uint64_t kDescriptorsOfBpf = 56;
constexpr uint64_t kDescriptorsOfProbes = 80;
constexpr uint64_t kDescriptorsOfRings = 16;  // for one CUDA process
// For BPF maps and rings, unwind tables and threads. A recording of a small program mapped half of
// it.
constexpr uint64_t kLeastAddressBytes = uint64_t{512} << 20;
// A recording of a small program used 60 MiB of private memory; larger programs need more.
constexpr uint64_t kLeastDataBytes = uint64_t{128} << 20;
// The smallest ring of a CUDA process, with its header.
constexpr uint64_t kLeastFileBytes = uint64_t{2} << 20;

uint64_t NeededDescriptors(const RecordOptions& options, bool uses_bpf) {
  const bool has_probes = !options.probes.empty() || (options.record_gpu && !options.inject);
  const uint64_t events = options.record_cpu ? std::max<size_t>(options.cpu_events.size(), 1) : 0;
  const uint64_t others = has_probes ? kDescriptorsOfProbes
                          : uses_bpf ? kDescriptorsOfBpf
                                     : kDescriptors;
  const uint64_t rings = options.record_gpu && options.inject ? kDescriptorsOfRings : 0;
  return others + rings + (1 + 2 * events) * OnlineCpus().size();
}

Error TooLittle(std::string_view limit, std::string_view of_what, uint64_t left, uint64_t needed,
                std::string_view option) {
  return Error{ErrorKind::kSystem,
               Format("{}: {} of {} is left, but a recording needs {}", limit, SizeText(left),
                      of_what, SizeText(needed)),
               Format("ulimit {0} unlimited; to limit only the program: xpu-record sh -c 'ulimit "
                      "{0} N; exec PROGRAM'",
                      option)};
}

}  // namespace

Status CheckOwnLimits(const RecordOptions& options, bool uses_bpf) {
  const uint64_t descriptors = AllowedDescriptors();
  const uint64_t needed = NeededDescriptors(options, uses_bpf);
  if (descriptors < needed) {
    return Error{
        ErrorKind::kSystem,
        Format("RLIMIT_NOFILE: {} descriptors are allowed, but this recording needs about {}",
               descriptors, needed),
        "ulimit -n 1024; to limit only the program: xpu-record sh -c "
        "'ulimit -n N; exec PROGRAM'"};
  }
  if (const uint64_t left = FreeAddressBytes(); left < kLeastAddressBytes) {
    return TooLittle("RLIMIT_AS", "address space", left, kLeastAddressBytes, "-v");
  }
  if (const uint64_t left = FreeDataBytes(); left < kLeastDataBytes) {
    return TooLittle("RLIMIT_DATA", "memory", left, kLeastDataBytes, "-d");
  }
  if (options.record_gpu && options.inject && LargestFileBytes() < kLeastFileBytes) {
    return Error{ErrorKind::kSystem,
                 Format("RLIMIT_FSIZE: files of {} are allowed, but the memory shared with a CUDA "
                        "program takes {}",
                        SizeText(LargestFileBytes()), SizeText(kLeastFileBytes)),
                 "ulimit -f unlimited, or --cpu-only; to limit only the program: xpu-record sh -c "
                 "'ulimit -f N; exec PROGRAM'"};
  }
  return Ok();
}

std::string OwnLimitsText() {
  const auto some = [](uint64_t bytes) {
    return bytes == UINT64_MAX ? "any" : SizeText(bytes) + " of";
  };
  const uint64_t descriptors = AllowedDescriptors();
  const uint64_t file_bytes = LargestFileBytes();
  return Format("{} descriptors, {} address space, {} memory, files of {}",
                descriptors == UINT64_MAX ? "any number of" : Format("{}", descriptors),
                some(FreeAddressBytes()), some(FreeDataBytes()),
                file_bytes == UINT64_MAX ? "any size" : "up to " + SizeText(file_bytes));
}

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
      !UsesInlineStacks(options)) {
    needs.emplace_back(options.inject ? "launch stacks" : "launch probes");
  }
  if (!options.probes.empty()) needs.emplace_back("probes");
  return Join(needs);
}

namespace {

// True if --gpu-only could record a part of what was requested.
bool HasGpuPart(const RecordOptions& options) {
  return options.record_cpu && options.record_gpu && options.inject && options.probes.empty() &&
         options.cpu_events.front().is_clock && options.cpu_events.size() == 1 &&
         (options.launch_stacks == LaunchStacks::kNone || UsesInlineStacks(options));
}

Error Unsupported(const std::string& needs, const Obstacle& obstacle) {
  return Error{ErrorKind::kUnsupported, Format("{}: {}", needs, obstacle.what), obstacle.hint};
}

Status CheckKernelAndUser(const RecordOptions& options) {
  const std::string needs = NeedsOfBpf(options);
  if (needs.empty()) return Ok();
  const std::string missing = MissingCapabilities(EffectiveCapabilities());
  if (!missing.empty()) {
    // Without CAP_SYS_PTRACE the next attempt would fail in CheckProcess.
    const bool needs_ptrace = std::any_of(options.pids.begin(), options.pids.end(), [](pid_t pid) {
      return !ReadProcessMaps(static_cast<uint32_t>(pid)).ok();
    });
    std::string hint = HowToGetCapabilities(needs_ptrace ? ",cap_sys_ptrace" : "");
    if (HasGpuPart(options)) hint += "; --gpu-only works for any user";
    return Error{ErrorKind::kPermission,
                 Format("{} need {}, which this process lacks", needs, missing), std::move(hint)};
  }
  const Machine machine = ExamineMachine();
  if (const auto obstacle = ObstacleToBpf(machine)) return Unsupported(needs, *obstacle);
  if (options.record_cpu) {
    if (const auto obstacle = ObstacleToPerfEvents(machine)) return Unsupported(needs, *obstacle);
  }
  if (!UsesProbes(options)) return Ok();
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
