#include <cstdio>

#include "format/base/terminal_text.h"
#include "record/check.h"
#include "record/options.h"
#include "record/recorder.h"
#include "record/target.h"

namespace {

void Print(const xpu::Error& error) {
  std::fprintf(stderr, "xpu-record: %s\n", xpu::ForTerminal(error).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  auto parsed = xpu::ParseCommandLine(argc, argv);
  if (!parsed.ok()) {
    Print(parsed.error());
    return xpu::kOwnFailure;
  }
  if (parsed->answer) return std::fputs(parsed->answer->c_str(), stdout) < 0;
  const xpu::RecordOptions& options = parsed->options;
  if (options.check) return xpu::PrintCheck(options);
  const xpu::Outcome outcome = xpu::Record(options);
  if (outcome.error) Print(*outcome.error);
  if (!options.quiet) std::fputs(xpu::ForTerminal(outcome.summary).c_str(), stderr);
  xpu::ExitLike(outcome.wait_status);
}
