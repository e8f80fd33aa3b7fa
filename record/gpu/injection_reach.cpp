#include "record/gpu/injection_reach.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>

#include "cupti_inject/wire.h"
#include "format/base/file.h"
#include "format/base/number.h"
#include "format/base/path.h"
#include "format/base/text.h"
#include "record/gpu/inject_library.h"
#include "record/process/file_rights.h"
#include "record/process/process_maps.h"
#include "record/process/target_file.h"

namespace xpu {
namespace {

// The kernel starts programs with at most three quarters of 8 MiB of arguments and environment.
constexpr size_t kMaxEnvironmentBytes = size_t{8} << 20;

// An exec maps everything at new addresses, so an unchanged mapping means that the reported image
// still runs.
bool HasStillMapped(const MappedLibrary& mapping, bool (*is_such)(std::string_view path)) {
  auto mappings = ReadProcessMaps(mapping.pid);
  if (!mappings.ok()) return false;
  const ProcessMapping* found = FindMapping(*mappings, mapping.address);
  return found != nullptr && is_such(found->path);
}

std::optional<std::string_view> FindVariable(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view variable = environment.substr(0, environment.find('\0'));
    if (variable.starts_with(name) && variable.substr(name.size()).starts_with('=')) {
      return variable.substr(name.size() + 1);
    }
    environment.remove_prefix(std::min(variable.size() + 1, environment.size()));
  }
  return std::nullopt;
}

std::string StartedWithout(const char* variable) {
  return Format(
      "it was started without {}: put xpu-record after the command that clears the environment "
      "('env -i', 'sudo')",
      variable);
}

}  // namespace

bool IsInjectLibrary(std::string_view path) { return FileNameOf(path) == kInjectLibraryFile; }

bool IsCudaDriver(std::string_view path) {
  constexpr std::string_view kName = "libcuda.so";
  path = FileNameOf(path);
  if (!path.starts_with(kName)) return false;
  path.remove_prefix(kName.size());
  return path.empty() || path.front() == '.';
}

std::string ObstacleInEnvironment(std::string_view environment, const std::string& library) {
  const auto value = FindVariable(environment, kInjectionVariable);
  if (!value) return StartedWithout(kInjectionVariable);
  return *value == library ? "" : Format("its {} was changed", kInjectionVariable);
}

std::string ObstacleToConnection(std::string_view environment,
                                 const std::string& connection_string) {
  const auto value = FindVariable(environment, wire::kEnvironmentVariable);
  if (!value || value->empty()) return StartedWithout(wire::kEnvironmentVariable);
  return *value == connection_string ? "" : "another xpu-record inside this one records it";
}

std::optional<std::string> ObstacleToReport(const MappedLibrary& mapping,
                                            const std::string& connection_string) {
  auto environment = ReadFile(Format("/proc/{}/environ", mapping.pid), kMaxEnvironmentBytes);
  const std::string descriptors = ObstacleToDescriptors(mapping.pid, kDescriptorsForRing);
  if (!environment.ok() || !HasStillMapped(mapping, &IsInjectLibrary)) return std::nullopt;
  std::string obstacle = ObstacleToConnection(*environment, connection_string);
  return obstacle.empty() ? descriptors : obstacle;
}

bool IsRecorder(uint32_t pid) {
  struct stat own {};
  struct stat other {};
  return ::stat("/proc/self/exe", &own) == 0 &&
         ::stat(Format("/proc/{}/exe", pid).c_str(), &other) == 0 && own.st_dev == other.st_dev &&
         own.st_ino == other.st_ino;
}

std::optional<std::string> ObstacleToInjection(const MappedLibrary& driver,
                                               const std::string& library) {
  const std::string process = Format("/proc/{}", driver.pid);
  auto environment = ReadFile(process + "/environ", kMaxEnvironmentBytes);
  auto status = ReadFile(process + "/status");
  const auto file = OpenInRoot(process + "/root", library);
  const bool may_read =
      !status.ok() || MayRead(process + "/root", library, ParseFileRights(*status));
  // Tested last: everything read before then belongs to the reported image.
  if (!environment.ok() || !HasStillMapped(driver, &IsCudaDriver)) return std::nullopt;
  std::string obstacle = ObstacleInEnvironment(*environment, library);
  if (!obstacle.empty()) return obstacle;
  if (file.ok() && may_read) return std::string();
  if (file.ok()) return Format("its user cannot read {}: install xpu for all users", library);
  if (file.error().kind != ErrorKind::kNotFound) return std::nullopt;
  return Format("{} is not in its root directory: install xpu there under the same path", library);
}

namespace {

// Counts up to `most`.
uint64_t OpenDescriptors(uint32_t pid, uint64_t most) {
  std::error_code failed;
  std::filesystem::directory_iterator entry(Format("/proc/{}/fd", pid), failed);
  uint64_t count = 0;
  for (; !failed && count < most && entry != std::filesystem::directory_iterator();
       entry.increment(failed)) {
    ++count;
  }
  return count;
}

}  // namespace

uint64_t DescriptorLimit(std::string_view limits) {
  constexpr std::string_view kName = "Max open files ";
  const size_t at = limits.find(kName);
  if (at == std::string_view::npos) return 0;
  limits.remove_prefix(at + kName.size());
  limits.remove_prefix(std::min(limits.find_first_not_of(' '), limits.size()));
  return ParseNumber<uint64_t>(limits.substr(0, limits.find(' '))).value_or(0);
}

std::string ObstacleToDescriptors(uint32_t pid, uint64_t needed) {
  const auto limits = ReadFile(Format("/proc/{}/limits", pid));
  const uint64_t limit = limits.ok() ? DescriptorLimit(limits.value()) : 0;
  if (limit == 0 || OpenDescriptors(pid, limit) + needed <= limit) return {};
  return Format(
      "its limit of {} open files leaves no descriptor free: raise it (RLIMIT_NOFILE, 'ulimit -n')",
      limit);
}

std::string ObstacleToTables(uint32_t pid, std::string_view reported) {
  std::string obstacle = ObstacleToDescriptors(pid, kDescriptorsForTables);
  return obstacle.empty() ? std::string(reported) : obstacle;
}

}  // namespace xpu
