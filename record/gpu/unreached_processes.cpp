#include "record/gpu/unreached_processes.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "format/base/text.h"
#include "record/gpu/inject_library.h"

namespace xpu {
namespace {

constexpr char kCannotConnect[] =
    " cannot connect to xpu-record: another xpu-record inside this one, a seccomp filter, another "
    "network namespace, no free descriptor or a cleared environment";

uint32_t CountOf(const std::map<uint32_t, uint32_t>& counts, uint32_t pid) {
  const auto found = counts.find(pid);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

void UnreachedProcesses::OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) {
  if (mapping.is_amended) return;  // the kernel's event for it arrives separately
  const std::string& path = processes_.file(mapping.file).path;
  if (!IsCudaDriver(path) && !IsInjectLibrary(path)) return;
  const ProcessTable::Process& process = *processes_.Find(pid);
  const MappedLibrary library{pid, start, path};
  if (IsCudaDriver(path)) {
    ObserveDriver(library, process.name(pid), process.exec_ns);
  } else {
    ObserveLibrary(library, process.name(pid));
  }
}

// Examined at once, because the process may end soon. A library that is unloaded and loaded again
// belongs to the same image.
void UnreachedProcesses::ObserveDriver(const MappedLibrary& mapping, std::string_view name,
                                       uint64_t exec_ns) {
  Drivers& drivers = drivers_[mapping.pid];
  if (drivers.images > 0 && drivers.exec_ns == exec_ns) return;
  drivers.name = name;
  drivers.exec_ns = exec_ns;
  ++drivers.images;
  const std::optional<std::string> obstacle = expected_.examine_driver(mapping, expected_.library);
  AppendFormat(news_, "process {}: {} is mapped, the injected library {}\n", mapping.pid,
               mapping.path,
               !obstacle           ? "may be missing: the process could not be examined"
               : obstacle->empty() ? "can be loaded"
                                   : "will be missing: " + *obstacle);
  if (!obstacle) {
    ++drivers.unknown;
  } else if (!obstacle->empty()) {
    ++drivers.unreachable;
    drivers.obstacle = *obstacle;
  }
}

void UnreachedProcesses::ObserveLibrary(const MappedLibrary& mapping, std::string_view name) {
  if (IsRecorder(mapping.pid)) return;
  Loader& loader = loaders_[mapping.pid];
  ++loader.loads;
  loader.name = name;
  const auto obstacle = expected_.examine_library(mapping, expected_.connection_string);
  if (obstacle && !obstacle->empty()) loader.obstacle = *obstacle;
}

void UnreachedProcesses::CountSilentLibraries(EventSink& sink, const InjectionReports& reports) {
  for (const auto& [pid, loader] : loaders_) {
    const uint32_t connected = CountOf(reports.connected, pid);
    if (loader.loads <= connected) continue;
    sink.losses().Add(LossKind::kProcessNotReached, loader.loads - connected, pid, {},
                      Format("process {} ({}){}", pid, loader.name,
                             loader.obstacle.empty() ? kCannotConnect : ": " + loader.obstacle));
  }
}

// Images that have the library nevertheless, because the program loads it itself, are not counted.
// One that was not examined and has it, by NVTX, inherited the variables: CUDA would find it too.
void UnreachedProcesses::CountUnreachable(EventSink& sink, const InjectionReports& reports) {
  for (const auto& [pid, drivers] : drivers_) {
    const auto loader = loaders_.find(pid);
    const uint32_t loads = loader == loaders_.end() ? 0 : loader->second.loads;
    const uint32_t connected = CountOf(reports.connected, pid);
    const uint32_t accounted_for = CountOf(reports.started_cuda, pid) +
                                   CountOf(reports.refused, pid) +
                                   (loads > connected ? loads - connected : 0);
    uint32_t left = drivers.images - std::min(drivers.images, accounted_for);
    const uint32_t unreachable = std::min(left, drivers.unreachable);
    left -= unreachable;
    const uint32_t without_library = drivers.images - std::min(drivers.images, loads);
    const uint32_t unknown = std::min({left, drivers.unknown, without_library});
    sink.losses().Add(LossKind::kProcessNotReached, unreachable, pid, {},
                      Format("process {} ({}): {}", pid, drivers.name, drivers.obstacle));
    sink.losses().Add(LossKind::kInjectionUnknown, unknown, pid, {},
                      Format("process {} ({})", pid, drivers.name));
  }
}

void UnreachedProcesses::Finish(EventSink& sink, const InjectionReports& reports) {
  CountSilentLibraries(sink, reports);
  CountUnreachable(sink, reports);
}

}  // namespace xpu
