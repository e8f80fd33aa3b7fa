#include "tests/unit/report/report_testing.h"

#include <sstream>

#include "format/base/file.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu::test {

std::string Written(const std::function<void(Output&)>& write) {
  const TempFolder folder;
  Output output = Output::Open(folder / "out").value();
  write(output);
  XPU_CHECK(output.Close().ok());
  return ReadFile(folder / "out").value();
}

std::map<std::string, uint64_t> Folded(Analysis& analysis, const FoldedOptions& options,
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
