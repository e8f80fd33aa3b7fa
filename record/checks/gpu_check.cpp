// The GPU part of --check.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cupti_inject/cupti_places.h"
#include "cupti_inject/cupti_versions.h"
#include "format/base/file.h"
#include "format/base/text.h"
#include "record/checks/check.h"
#include "record/gpu/cupti_support.h"
#include "record/gpu/inject_library.h"
#include "record/gpu/launch_source.h"
#include "record/kernel/capabilities.h"
#include "record/source/source_context.h"

namespace xpu {
namespace {

using State = Ability::State;

struct FoundLibrary {
  std::string path;
  uint32_t version = 0;  // 0: unknown
};

// Loads the library and calls `function(version*)`, which returns 0, for its version.
std::optional<FoundLibrary> LoadLibrary(const std::string& name, const char* function) {
  void* handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return std::nullopt;
  FoundLibrary found{name};
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) found.path = map->l_name;
  auto get_version = reinterpret_cast<int (*)(uint32_t*)>(::dlsym(handle, function));
  uint32_t version = 0;
  if (get_version != nullptr && get_version(&version) == 0) found.version = version;
  return found;
}

std::string VersionText(uint32_t cuda) {
  return cuda == 0 ? "unknown version" : "CUDA " + CudaVersionText(cuda);
}

Ability DriverAbility(const std::optional<FoundLibrary>& driver) {
  constexpr char kName[] = "NVIDIA driver";
  if (driver) {
    return {kName, State::kOk, Format("{}, {}", driver->path, VersionText(driver->version)), {}};
  }
  return {kName, State::kAbsent, "no libcuda.so.1",
          "install the driver; without it there is no GPU to record"};
}

// In the order of the injected library, which takes none that is newer than the driver.
std::vector<std::string> CuptiCandidates(const std::string& chosen, uint32_t driver) {
  if (!chosen.empty()) return {chosen};
  std::vector<std::string> candidates;
  for (const cupti::LibraryVersion& version : cupti::kLibraryVersions) {
    if (cupti::IsAllowed(version.cuda_major, driver)) candidates.emplace_back(version.file);
  }
  for (const cupti::LibraryVersion& version : cupti::kLibraryVersions) {
    if (!cupti::IsAllowed(version.cuda_major, driver)) continue;
    for (const char* directory : cupti::kLibraryDirectories) {
      char path[256];
      std::snprintf(path, sizeof(path), directory, version.cuda_major);
      candidates.push_back(Format("{}/{}", path, version.file));
    }
  }
  return candidates;
}

// A line has no room for all of `candidates`.
std::string NotFound(const RecordOptions& options, const std::vector<std::string>& candidates) {
  if (!options.cupti_library.empty()) return Format("{} cannot be loaded", candidates.front());
  std::string names;
  for (const cupti::LibraryVersion& version : cupti::kLibraryVersions) {
    AppendFormat(names, "{}{}", names.empty() ? "" : ", ", version.file);
  }
  if (!options.verbose) {
    return Format("not found in the loader's search path or below /usr/local/cuda: {}", names);
  }
  std::string text = "not found; searched for";
  for (const std::string& candidate : candidates) text += " " + candidate;
  return text;
}

// Which CUPTI and driver there are, whether that combination was tested, and what it lacks.
// What the options want and that version does not have; empty: nothing.
std::string WantedAndMissing(const RecordOptions& options, uint32_t cuda) {
  if (options.gpu_samples.is_on && cuda < cupti::kFirstWithPcSampling) {
    return "--gpu-samples needs CUPTI of " + VersionText(cupti::kFirstWithPcSampling) + " or newer";
  }
  if (options.gpu_metrics.counters && cuda < cupti::kFirstWithPmSampling) {
    return "--gpu-metrics needs CUPTI of " + VersionText(cupti::kFirstWithPmSampling) + " or newer";
  }
  return {};
}

Ability CombinationAbility(const RecordOptions& options, const FoundLibrary& cupti,
                           uint32_t driver) {
  constexpr char kName[] = "libcupti";
  const uint32_t cuda = cupti::CudaVersionOfCupti(cupti.version);
  if (cuda == 0) {
    return {kName, State::kOk, Format("{}, unknown version {}", cupti.path, cupti.version), {}};
  }
  std::string text = Format("{}, {}", cupti.path, VersionText(cuda));
  if (!cupti::IsAllowed(cuda / 1000, driver)) {
    return {kName, State::kMissing, text + ", is newer than the driver",
            "update the driver, or name a libcupti of the driver's version with --cupti-lib"};
  }
  if (driver != 0) AppendFormat(text, " with a driver of {}", VersionText(driver));
  AppendFormat(text, ": {}", TestedText(cuda, driver));
  if (const std::string lacks = LacksText(cuda); !lacks.empty()) AppendFormat(text, "; {}", lacks);
  if (cupti::SupportOf(cuda) == cupti::Support::kNotSupported) {
    return {kName, State::kAbsent, text, "name a newer libcupti with --cupti-lib"};
  }
  if (const std::string missing = WantedAndMissing(options, cuda); !missing.empty()) {
    return {kName, State::kMissing, text, missing + ": name one with --cupti-lib"};
  }
  return {kName, State::kOk, text, {}};
}

Ability CuptiAbility(const RecordOptions& options, const std::optional<FoundLibrary>& driver) {
  constexpr char kName[] = "libcupti";
  const uint32_t driver_version = driver ? driver->version : 0;
  const std::vector<std::string> candidates =
      CuptiCandidates(options.cupti_library, driver_version);
  for (const std::string& candidate : candidates) {
    if (auto cupti = LoadLibrary(candidate, "cuptiGetVersion")) {
      return CombinationAbility(options, *cupti, driver_version);
    }
  }
  const bool is_wanted = driver.has_value() || !options.cupti_library.empty();
  return {kName, is_wanted ? State::kMissing : State::kAbsent, NotFound(options, candidates),
          "install the CUDA Toolkit, or pip install nvidia-cuda-cupti and name its file with "
          "--cupti-lib; a program that brings its own (PyTorch) needs neither"};
}

// A known obstacle explains more than the error of the system call. Stacks that the library takes
// itself need no marker.
Ability MarkerAbility(const RecordOptions& options, const Machine& machine,
                      const std::string& library) {
  constexpr char kName[] = "launch marker";
  const State otherwise = UsesInlineStacks(options) ? State::kAbsent : State::kMissing;
  if (const auto obstacle = ObstacleToBpf(machine)) {
    return {kName, otherwise, obstacle->what, obstacle->hint};
  }
  auto launches = LaunchSource::Open(library, 1, nullptr);
  if (!launches.ok()) {
    return {kName, otherwise, launches.error().message, launches.error().hint};
  }
  std::string text = "uprobe";
  for (const MarkerTiming& timing : launches->timings()) {
    AppendFormat(text, ", {:.0f} ns per hit at +{}", timing.hit_ns, timing.offset);
  }
  AppendFormat(text, "; +{} is used", launches->chosen_offset());
  return {kName, State::kOk, text, {}};
}

bool HasPidfdGetfd() { return ::syscall(SYS_pidfd_getfd, -1, -1, 0) < 0 && errno != ENOSYS; }

}  // namespace

Ability AttachAbility(std::string_view yama_scope, uint64_t capabilities) {
  constexpr char kName[] = "attaching (-p)";
  if (!HasPidfdGetfd()) {
    return {kName, State::kAbsent, "no pidfd_getfd(2)", "it needs Linux 5.6 or newer"};
  }
  if (const auto obstacle = ObstacleToTracing(yama_scope, capabilities)) {
    return {kName, State::kAbsent, obstacle->what, obstacle->hint};
  }
  const bool may_trace = (capabilities >> kCapSysPtrace & 1) != 0;
  return {
      kName, State::kOk, may_trace ? "ptrace, to all processes" : "ptrace, to your processes", {}};
}

std::vector<Ability> GpuAbilities(const RecordOptions& options, const Machine& machine) {
  std::vector<Ability> abilities;
  auto library = FindInjectLibrary();
  if (library.ok()) {
    abilities.push_back({"injected library", State::kOk, *library, {}});
    abilities.push_back(MarkerAbility(options, machine, *library));
  } else {
    abilities.push_back(
        {"injected library", State::kMissing, library.error().message, library.error().hint});
  }
  auto scope = ReadFile(kYamaPath);
  abilities.push_back(AttachAbility(scope.ok() ? *scope : "", machine.capabilities));
  const auto driver = LoadLibrary("libcuda.so.1", "cuDriverGetVersion");
  abilities.push_back(DriverAbility(driver));
  abilities.push_back(CuptiAbility(options, driver));
  auto parameters = ReadFile(kDriverParametersPath);
  for (Ability& ability :
       ProfilingAbilities(parameters.ok() ? *parameters : "", machine.capabilities, options)) {
    abilities.push_back(std::move(ability));
  }
  return abilities;
}

}  // namespace xpu
