#include "record/target/injection_reach.h"

#include <algorithm>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/gpu/inject_library.h"
#include "record/target/file_rights.h"
#include "record/target/process_maps.h"
#include "record/target/target_file.h"

namespace xpu {
namespace {

// Three quarters of 8 MiB are the most that the kernel lets a program be started with.
constexpr size_t kMaxEnvironmentBytes = size_t{8} << 20;

// An exec puts everything elsewhere: the image that was told of is still there.
bool HasStillMapped(const PerfMapping& driver) {
  auto mappings = ReadProcessMaps(driver.pid);
  if (!mappings.ok()) return false;
  const ProcessMapping* found = FindMapping(*mappings, driver.address);
  return found != nullptr && IsCudaDriver(found->path);
}

}  // namespace

bool IsCudaDriver(std::string_view path) {
  constexpr std::string_view kName = "libcuda.so";
  path.remove_prefix(path.rfind('/') + 1);
  if (!path.starts_with(kName)) return false;
  path.remove_prefix(kName.size());
  return path.empty() || path.front() == '.';
}

std::string ObstacleInEnvironment(std::string_view environment, const std::string& library) {
  const std::string name = std::string(kInjectionVariable) + "=";
  while (!environment.empty()) {
    const std::string_view variable = environment.substr(0, environment.find('\0'));
    if (variable == name + library) return {};
    if (variable.starts_with(name)) return Format("its {} was changed", kInjectionVariable);
    environment.remove_prefix(std::min(variable.size() + 1, environment.size()));
  }
  return Format(
      "it was started without {}: put xpu-record behind what clears variables ('env -i', 'sudo')",
      kInjectionVariable);
}

std::optional<std::string> ObstacleToInjection(const PerfMapping& driver,
                                               const std::string& library) {
  const std::string process = Format("/proc/{}", driver.pid);
  auto environment = ReadFile(process + "/environ", kMaxEnvironmentBytes);
  auto status = ReadFile(process + "/status");
  const auto place = OpenPlaceIn(process + "/root", library);
  const bool may_read =
      !status.ok() || MayRead(process + "/root", library, ParseFileRights(*status));
  // Last: what was read is then of the image that was told of.
  if (!environment.ok() || !HasStillMapped(driver)) return std::nullopt;
  std::string obstacle = ObstacleInEnvironment(*environment, library);
  if (!obstacle.empty()) return obstacle;
  if (place.ok() && may_read) return std::string();
  if (place.ok()) return Format("its user may not read {}: install xpu for all users", library);
  if (place.error().kind != ErrorKind::kNotFound) return std::nullopt;
  return Format("{} is not in its root: have xpu there under the same path", library);
}

}  // namespace xpu
