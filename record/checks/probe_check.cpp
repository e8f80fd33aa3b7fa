// The part of --check for recordings that inject nothing.
#include <string>
#include <vector>

#include <unistd.h>

#include "record/checks/check.h"
#include "record/probes/probe_source.h"

namespace xpu {

std::vector<Ability> ProbeAbilities(const RecordOptions& options) {
  std::vector<std::string> environment;
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  auto probes = ProbeSource::Try(options, environment);
  if (!probes.ok()) {
    return {
        {"launch probes", Ability::State::kMissing, probes.error().message, probes.error().hint}};
  }
  return {{"launch probes", Ability::State::kOk, *probes, {}}};
}

}  // namespace xpu
