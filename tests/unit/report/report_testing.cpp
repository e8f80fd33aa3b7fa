#include "tests/unit/report/report_testing.h"

#include <sstream>

#include <sys/mman.h>

#include "format/base/check.h"
#include "format/base/file.h"
#include "format/base/text.h"

namespace xpu::test {

std::string Written(const std::function<void(Output&)>& write) {
  // In memory: thousands of files made and removed wait for the disk.
  const UniqueFd file(::memfd_create("view", MFD_CLOEXEC));
  const std::string path = Format("/proc/self/fd/{}", file.get());
  Output output = Output::Open(path).value();
  write(output);
  XPU_CHECK(output.Close().ok());
  return ReadFile(path).value();
}

std::map<std::string, uint64_t> Folded(Analysis& analysis, const ViewOptions& options,
                                       std::string* notes) {
  std::string ignored;
  std::istringstream lines(Written([&](Output& output) {
    WriteFolded(analysis, options, output, notes == nullptr ? ignored : *notes);
  }));
  std::map<std::string, uint64_t> by_stack;
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.rfind(' ');
    by_stack[line.substr(0, space)] = std::stoull(line.substr(space + 1));
  }
  return by_stack;
}

}  // namespace xpu::test
