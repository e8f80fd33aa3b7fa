// Predicts which files a program will map when it starts, without running it, so that their unwind
// tables can be ready before its first instruction.
#pragma once

#include <string>
#include <vector>

namespace xpu {

// The program (found as execvp does; for a script its interpreter and what env runs), its loader,
// and the libraries that these need, searched for as the loader does. Real paths without
// duplicates, 512 at most, the program's first. Files that are not found are left out: the program
// may find them elsewhere, and it will map more later, which its mappings then report.
std::vector<std::string> ExpectedFiles(const std::string& program,
                                       const std::vector<std::string>& environment);

}  // namespace xpu
