// Which files a program will map when it starts, found without running it, so that their unwind
// tables can be ready before its first instruction.
#pragma once

#include <string>
#include <vector>

namespace xpu {

// The program (found as execvp does; of a script its interpreter, and what env is to run), its
// loader, and the libraries that these need, searched for as the loader does. Real paths, each
// once, 512 at most, the program's first. What is not found is left out: the program may find it
// elsewhere, and it will map more later; then it is the mapping that tells.
std::vector<std::string> ExpectedFiles(const std::string& program,
                                       const std::vector<std::string>& environment);

}  // namespace xpu
