// The environment and the search path of a program that is to be started.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace xpu {

// Sets NAME=value in a list of such strings.
void SetVariable(std::vector<std::string>& environment, const std::string& name,
                 const std::string& value);
// Its value, nullopt: not set.
std::optional<std::string> FindVariable(const std::vector<std::string>& environment,
                                        const std::string& name);

// As execvp finds it; empty: not found.
std::string FindProgram(const std::string& name, const std::string& path_variable);

}  // namespace xpu
