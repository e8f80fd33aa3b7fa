// demangle_bench [--print] < NAMES: the time that demangling takes of a list of mangled names, one
// a line (nm -D FILE | awk '{print $NF}'), or the demangled ones, to compare with llvm-cxxfilt.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "symbolize/demangle.h"

namespace {

// Of CPU time: others may be at work.
double NowMicroseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

}  // namespace

int main(int argc, char** argv) {
  const bool print = argc > 1 && std::strcmp(argv[1], "--print") == 0;
  std::vector<std::string> names;
  for (std::string line; std::getline(std::cin, line);) names.push_back(line);
  size_t changed = 0;
  const double begin = NowMicroseconds();
  for (const std::string& name : names) changed += xpu::Demangle(name) != name ? 1 : 0;
  const double each = (NowMicroseconds() - begin) / static_cast<double>(names.size());
  double slowest = 0;  // reading the clock takes as long as a name
  for (const std::string& name : names) {
    const double name_begin = NowMicroseconds();
    const std::string text = xpu::Demangle(name);
    slowest = std::max(slowest, NowMicroseconds() - name_begin);
    if (print) std::puts(text.c_str());
  }
  std::fprintf(stderr, "%zu names, %zu demangled: %.2f us a name, the slowest %.0f us\n",
               names.size(), changed, each, slowest);
  return 0;
}
