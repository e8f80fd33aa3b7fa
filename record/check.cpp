#include "record/check.h"

#include <cerrno>
#include <cstdio>
#include <vector>

#include <sys/utsname.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/bpf_support.h"
#include "record/cpu_source.h"
#include "record/preflight.h"
#include "record/task_source.h"
#include "record/unwinder.h"

namespace xpu {
namespace {

using State = Ability::State;

Ability FromStatus(std::string name, const Status& status, std::string detail) {
  if (status.ok()) return {std::move(name), State::kOk, std::move(detail), {}};
  return {std::move(name), State::kMissing, status.error().message, status.error().hint};
}

Ability KernelAbility() {
  utsname system{};
  ::uname(&system);
  if (IsKernelSupported(system.release)) return {"kernel", State::kOk, system.release, {}};
  return {"kernel", State::kMissing, system.release, "Linux 5.12 or newer"};
}

Ability BtfAbility() {
  if (::access(kBtfPath, R_OK) == 0) return {"kernel types (BTF)", State::kOk, kBtfPath, {}};
  return {"kernel types (BTF)", State::kMissing, SystemError(kBtfPath, errno).message,
          "a kernel with CONFIG_DEBUG_INFO_BTF=y"};
}

Ability PrivilegeAbility() {
  std::string missing;
  for (const std::string& name : MissingCapabilities(EffectiveCapabilities())) {
    missing += (missing.empty() ? "" : ", ") + name;
  }
  if (missing.empty()) return {"privileges", State::kOk, "CAP_BPF, CAP_PERFMON", {}};
  return {"privileges", State::kMissing, "without " + missing,
          "run as root, or: sudo setcap cap_bpf,cap_perfmon+ep <path of xpu-record>"};
}

Ability TaskAbility() {
  auto tasks = TaskSource::Open({.program = ::getpid()});
  return FromStatus("perf events", tasks.ok() ? Ok() : Status(tasks.error()),
                    "processes and mappings");
}

// Loads the program and opens the clock on this process, where it stays disabled.
Ability SamplingAbility() {
  const CpuEvent clock;
  auto cpu = CpuSource::Open({.program = ::getpid()}, {&clock, 1}, 99, nullptr);
  return FromStatus("CPU samples", cpu.ok() ? Ok() : Status(cpu.error()),
                    "BPF program on the software CPU clock");
}

Ability EventAbility() {
  CpuEventNames names = FindCpuEvents();
  if (!names.missing.empty()) names.here += "; not here: " + names.missing;
  return {"CPU events", State::kOk, std::move(names.here), {}};
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
  // The first line is of an address that is 0 only when all are hidden... except for per-CPU
  // symbols, so the first text symbol decides.
  const size_t at = text.ok() ? text->find(" T ") : std::string::npos;
  if (at == std::string::npos || at < 16) {
    return {kName, State::kAbsent, "/proc/kallsyms is not readable", "kernel frames stay numbers"};
  }
  if (text->compare(at - 16, 16, "0000000000000000") == 0) {
    return {kName, State::kAbsent, "/proc/kallsyms shows zeros",
            "run as root or with CAP_SYSLOG; else kernel frames stay numbers"};
  }
  return {kName, State::kOk, "/proc/kallsyms", {}};
}

std::vector<Ability> AllAbilities(const RecordOptions& options) {
  std::vector<Ability> abilities = {KernelAbility(), BtfAbility(),         PrivilegeAbility(),
                                    TaskAbility(),   SamplingAbility(),    EventAbility(),
                                    UnwindAbility(), KernelSymbolAbility()};
  for (Ability& ability : options.inject ? GpuAbilities(options) : ProbeAbilities(options)) {
    abilities.push_back(std::move(ability));
  }
  return abilities;
}

}  // namespace

std::string AbilityText(const Ability& ability) {
  const char* state = "ok";
  if (ability.state == State::kMissing) state = "missing";
  if (ability.state == State::kAbsent) state = "absent";
  std::string text = Format("{:<8} {}: {}", state, ability.name, ability.detail);
  if (!ability.cure.empty()) AppendFormat(text, " -- {}", ability.cure);
  return text + "\n";
}

int PrintCheck(const RecordOptions& options) {
  SetBpfMessages(options.verbose);
  bool works = true;
  for (const Ability& ability : AllAbilities(options)) {
    std::fputs(AbilityText(ability).c_str(), stdout);
    works = works && ability.state != State::kMissing;
  }
  return works ? 0 : 1;
}

}  // namespace xpu
