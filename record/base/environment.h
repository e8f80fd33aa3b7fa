// The environment and the search path of a program that will be started.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace xpu {

// Sets NAME=value in a list of such strings.
void SetVariable(std::vector<std::string>& environment, const std::string& name,
                 const std::string& value);
// The value of the variable; nullopt if it is not set.
std::optional<std::string> FindVariable(const std::vector<std::string>& environment,
                                        const std::string& name);

// Finds the program as execvp does; empty if there is none.
std::string FindProgram(const std::string& name, const std::string& path_variable);

}  // namespace xpu
