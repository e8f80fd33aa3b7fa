#include "record/base/environment.h"

#include <string_view>

#include <unistd.h>

#include "format/base/split.h"

namespace xpu {

void SetVariable(std::vector<std::string>& environment, const std::string& name,
                 const std::string& value) {
  std::erase_if(environment,
                [&](const std::string& variable) { return variable.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

std::optional<std::string> FindVariable(const std::vector<std::string>& environment,
                                        const std::string& name) {
  for (const std::string& variable : environment) {
    if (variable.starts_with(name + "=")) return variable.substr(name.size() + 1);
  }
  return std::nullopt;
}

std::string FindProgram(const std::string& name, const std::string& path_variable) {
  if (name.find('/') != std::string::npos) return name;
  for (std::string_view directory : Split(path_variable, ":")) {
    std::string path = std::string(directory) + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

}  // namespace xpu
