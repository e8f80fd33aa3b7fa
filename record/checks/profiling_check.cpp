// Whether the NVIDIA driver lets hardware counters and code samples be read, for --check.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/text.h"
#include "record/checks/check.h"
#include "record/kernel/capabilities.h"

namespace xpu {
namespace {

using State = Ability::State;

constexpr char kHint[] =
    "run as root or with CAP_SYS_ADMIN; or allow all users: load the driver with "
    "NVreg_RestrictProfilingToAdminUsers=0 (options nvidia ... in /etc/modprobe.d)";

// Of "RmProfilingAdminOnly: 1", which is how the driver shows that parameter. nullopt: it does not.
std::optional<bool> IsRestricted(std::string_view driver_parameters) {
  constexpr std::string_view kName = "RmProfilingAdminOnly:";
  for (size_t at = 0; at < driver_parameters.size();) {
    const size_t end = std::min(driver_parameters.find('\n', at), driver_parameters.size());
    std::string_view line = driver_parameters.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(kName)) continue;
    line.remove_prefix(kName.size());
    const size_t digit = line.find_first_not_of(" \t");
    if (digit == std::string_view::npos) return std::nullopt;
    return line.substr(digit) != "0";
  }
  return std::nullopt;
}

}  // namespace

std::vector<Ability> ProfilingAbilities(std::string_view driver_parameters, uint64_t capabilities,
                                        const RecordOptions& options) {
  Ability counters{"GPU counters", State::kOk, {}, {}};
  Ability samples{"GPU code samples", State::kOk, {}, {}};
  const State refused_counters = options.gpu_metrics.counters ? State::kMissing : State::kAbsent;
  const State refused_samples = options.gpu_samples.is_on ? State::kMissing : State::kAbsent;
  const std::optional<bool> restricted = IsRestricted(driver_parameters);
  const bool is_admin = (capabilities >> kCapSysAdmin & 1) != 0;
  if (!restricted) {
    // The driver may still allow them, so nothing is called missing.
    counters.state = samples.state = State::kAbsent;
    counters.detail = samples.detail =
        Format("not known: {} does not say who may read them", kDriverParametersPath);
    counters.hint = samples.hint =
        "without an NVIDIA driver there are none; a container may hide that file";
  } else if (!*restricted) {
    counters.detail = samples.detail = "open to all users (NVreg_RestrictProfilingToAdminUsers=0)";
  } else if (is_admin) {
    counters.detail = samples.detail = "allowed, with CAP_SYS_ADMIN";
  } else {
    counters = {counters.name, refused_counters, {}, kHint};
    samples = {samples.name, refused_samples, {}, kHint};
    counters.detail = samples.detail =
        "only root may read them (NVreg_RestrictProfilingToAdminUsers=1)";
  }
  // The program itself samples its code; xpu-record reads the counters.
  if (restricted.value_or(false) && is_admin && !options.user.empty()) {
    samples.state = refused_samples;
    samples.detail = Format(
        "only root may read them (NVreg_RestrictProfilingToAdminUsers=1), and the program "
        "runs as {}",
        options.user);
    samples.hint = kHint;
  }
  return {counters, samples};
}

}  // namespace xpu
