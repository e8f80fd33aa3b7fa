#include "record/checks/check.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <unistd.h>

#include "format/base/file.h"
#include "format/base/json_text.h"
#include "format/base/text.h"
#include "record/checks/preflight.h"
#include "record/cpu/cpu_source.h"
#include "record/kernel/bpf_support.h"
#include "record/kernel/capabilities.h"
#include "record/kernel/machine.h"
#include "record/off_cpu/off_cpu_source.h"
#include "record/process/task_records.h"
#include "record/unwind/unwinder.h"

namespace xpu {
namespace {

using State = Ability::State;

constexpr char kLimits[] = "limits";

Ability FromStatus(std::string name, const Status& status, std::string detail) {
  if (status.ok()) return {std::move(name), State::kOk, std::move(detail), {}};
  return {std::move(name), State::kMissing, status.error().message, status.error().hint};
}

Ability FromObstacle(std::string name, State otherwise, const std::optional<Obstacle>& obstacle,
                     std::string detail) {
  if (!obstacle) return {std::move(name), State::kOk, std::move(detail), {}};
  return {std::move(name), otherwise, obstacle->what, obstacle->hint};
}

Ability BpfAbility(Machine machine) {
  machine.btf_error = 0;  // printed on a line of its own
  return FromObstacle("BPF", State::kMissing, ObstacleToBpf(machine), "maps and programs");
}

Ability BtfAbility(const Machine& machine) {
  Machine but_types;
  but_types.btf_error = machine.btf_error;
  return FromObstacle("kernel types (BTF)", State::kMissing, ObstacleToBpf(but_types), kBtfPath);
}

Ability LockdownAbility(const Machine& machine) {
  constexpr char kName[] = "lockdown";
  if (machine.lockdown == "confidentiality") {
    return {kName, State::kAbsent, machine.lockdown,
            "BPF cannot read memory then: boot with lockdown=integrity, or without Secure Boot"};
  }
  return {kName, State::kOk, machine.lockdown.empty() ? "none" : machine.lockdown, {}};
}

Ability PrivilegeAbility() {
  const std::string missing = MissingCapabilities(EffectiveCapabilities());
  if (missing.empty()) return {"privileges", State::kOk, "CAP_BPF and CAP_PERFMON", {}};
  return {"privileges", State::kMissing, "without " + missing, HowToGetCapabilities()};
}

Ability OthersAbility(const Machine& machine) {
  constexpr char kName[] = "processes of other users";
  if ((machine.capabilities >> kCapSysPtrace & 1) != 0) {
    return {kName, State::kOk, "CAP_SYS_PTRACE", {}};
  }
  return {kName, State::kAbsent, "without CAP_SYS_PTRACE",
          "-p and -a need it for these processes: " + HowToGetCapabilities(",cap_sys_ptrace")};
}

// A known obstacle explains more than the error of the system call.
Ability TaskAbility(const Machine& machine) {
  constexpr char kName[] = "perf events", kDetail[] = "processes and mappings";
  auto tasks = TaskRecords::Open({.program = ::getpid()});
  if (tasks.ok()) return {kName, State::kOk, kDetail, {}};
  if (const auto obstacle = ObstacleToPerfEvents(machine)) {
    return FromObstacle(kName, State::kMissing, obstacle, kDetail);
  }
  return FromStatus(kName, tasks.error(), kDetail);
}

// Loads the program and opens the clock on this process, where it stays disabled.
Ability SamplingAbility(const Machine& machine) {
  constexpr char kName[] = "CPU samples";
  for (const auto& obstacle : {ObstacleToBpf(machine), ObstacleToPerfEvents(machine)}) {
    if (obstacle) return FromObstacle(kName, State::kMissing, obstacle, {});
  }
  return FromStatus(kName, CpuSource::Try(), "BPF program on the software CPU clock");
}

Ability OffCpuAbility(const RecordOptions& options, const Machine& machine) {
  constexpr char kName[] = "off-CPU times";
  const State otherwise = options.record_off_cpu ? State::kMissing : State::kAbsent;
  if (const auto obstacle = ObstacleToBpf(machine)) {
    return FromObstacle(kName, otherwise, obstacle, {});
  }
  const Status status = OffCpuSource::Try();
  if (status.ok()) return {kName, State::kOk, "BPF programs at context switches", {}};
  return {kName, otherwise, status.error().message, "--off-cpu needs Linux 5.18 or newer"};
}

Ability EventAbility() {
  constexpr char kName[] = "CPU events";
  CpuEventNames names = FindCpuEvents();
  if (names.here.empty()) {
    return {kName, State::kAbsent, "none: " + names.first_error.message, names.first_error.hint};
  }
  if (!names.missing.empty()) names.here += "; not available: " + names.missing;
  return {kName, State::kOk, std::move(names.here), {}};
}

Ability LimitAbility(const RecordOptions& options) {
  return FromStatus(kLimits, CheckOwnLimits(options, options.record_cpu), OwnLimitsText());
}

Ability UnwindAbility() {
  constexpr char kName[] = "stack unwinding";
  if (CanWalkByTables()) return {kName, State::kOk, "by unwind tables (.eh_frame)", {}};
  return {kName, State::kAbsent, "by frame pointers only",
          "stacks in code without them need Linux 5.17 or newer"};
}

Ability KernelSymbolAbility() {
  constexpr char kName[] = "kernel symbols";
  auto text = ReadFile("/proc/kallsyms");
  // The first line may show address 0 for a per-CPU symbol, so the first text symbol decides
  // whether addresses are hidden.
  const size_t at = text.ok() ? text->find(" T ") : std::string::npos;
  if (at == std::string::npos || at < 16) {
    return {kName, State::kAbsent, "/proc/kallsyms is not readable", "kernel frames have no names"};
  }
  if (text->compare(at - 16, 16, "0000000000000000") == 0) {
    return {kName, State::kAbsent, "/proc/kallsyms shows zeros",
            "run as root or with CAP_SYSLOG; otherwise kernel frames have no names"};
  }
  return {kName, State::kOk, "/proc/kallsyms", {}};
}

std::vector<Ability> AllAbilities(const RecordOptions& options, const Machine& machine) {
  std::vector<Ability> abilities = {{"kernel", State::kOk, machine.release, {}},
                                    LimitAbility(options),
                                    PrivilegeAbility(),
                                    LockdownAbility(machine),
                                    BtfAbility(machine),
                                    BpfAbility(machine),
                                    TaskAbility(machine),
                                    SamplingAbility(machine),
                                    OffCpuAbility(options, machine),
                                    EventAbility(),
                                    UnwindAbility(),
                                    KernelSymbolAbility(),
                                    OthersAbility(machine)};
  if (const auto obstacle = ObstacleToProbes(machine)) {
    abilities.push_back(FromObstacle("probes", State::kAbsent, obstacle, {}));
  }
  // Except for the limits, all of these are needed for BPF only.
  if (NeedsOfBpf(options).empty()) {
    for (Ability& ability : abilities) {
      const bool is_missing = ability.state == State::kMissing && ability.name != kLimits;
      if (is_missing) ability.state = State::kAbsent;
    }
  }
  if (!options.record_gpu) return abilities;
  for (Ability& ability :
       options.inject ? GpuAbilities(options, machine) : ProbeAbilities(options)) {
    abilities.push_back(std::move(ability));
  }
  return abilities;
}

bool NothingIsMissing(const std::vector<Ability>& abilities) {
  return std::none_of(abilities.begin(), abilities.end(),
                      [](const Ability& ability) { return ability.state == State::kMissing; });
}

const char* NameOf(State state) {
  if (state == State::kMissing) return "missing";
  return state == State::kAbsent ? "absent" : "ok";
}

void AppendMember(std::string& json, std::string_view name, std::string_view text) {
  AppendJsonString(json, name);
  json += ": ";
  AppendJsonString(json, text);
}

std::string JsonOf(const std::vector<Ability>& abilities, bool works, bool gpu_only_works) {
  std::string json = Format("{{\n  \"works\": {},\n  \"gpu_only_works\": {},\n  \"abilities\": [",
                            works, gpu_only_works);
  for (const Ability& ability : abilities) {
    json += &ability == &abilities.front() ? "\n    {" : ",\n    {";
    AppendMember(json, "name", ability.name);
    AppendMember(json += ", ", "state", NameOf(ability.state));
    AppendMember(json += ", ", "detail", ability.detail);
    if (!ability.hint.empty()) AppendMember(json += ", ", "hint", ability.hint);
    json += "}";
  }
  return json + "\n  ]\n}\n";
}

}  // namespace

std::string AbilityText(const Ability& ability) {
  std::string text = Format("{:<8} {}: {}", NameOf(ability.state), ability.name, ability.detail);
  if (!ability.hint.empty()) AppendFormat(text, " -- {}", ability.hint);
  return text + "\n";
}

CheckResult Check(const RecordOptions& options) {
  SetBpfMessages(options.verbose);
  const Machine machine = ExamineMachine();
  const std::vector<Ability> abilities = AllAbilities(options, machine);
  const bool works = NothingIsMissing(abilities);
  RecordOptions gpu_only = options;
  gpu_only.record_cpu = false;
  const bool gpu_only_works =
      options.record_gpu &&
      (works || (options.record_cpu && NothingIsMissing(AllAbilities(gpu_only, machine))));
  if (options.check_as_json) return {JsonOf(abilities, works, gpu_only_works), works};
  std::string text;
  for (const Ability& ability : abilities) text += AbilityText(ability);
  if (gpu_only_works && !works) {
    text += "only CPU samples need what is missing: xpu-record --gpu-only works\n";
  }
  return {std::move(text), works};
}

}  // namespace xpu
