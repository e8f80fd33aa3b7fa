// Runs xpu-report from its command line to its exit status.
#include <csignal>
#include <cstdio>
#include <new>

#include <malloc.h>

#include "format/base/terminal_text.h"
#include "report/cli/options.h"
#include "report/cli/run.h"
#include "symbolize/dwarf/debug_reader.h"

namespace xpu {
namespace {

int Run(int argc, char** argv) {
  if (IsDebugReader(argc, argv)) return RunDebugReader();
  // Long lists go back to the system when they are freed; glibc would come to keep them. What one
  // block takes is less and is used again for the next: its page faults were a fifth of the time.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);  // setting either ends that glibc adapts the other
  std::signal(SIGPIPE, SIG_IGN);  // a pipe that is closed early is a write error, seen in Output
  const auto fail = [](const Error& error) {
    std::fprintf(stderr, "xpu-report: %s\n", ForTerminal(error).c_str());
    return error.kind == ErrorKind::kUsage ? 2 : 1;
  };
  const auto parsed = ParseOptions(argc, argv);
  if (!parsed.ok()) return fail(parsed.error());
  if (const auto* help = std::get_if<Help>(&parsed.value())) {
    const Status printed = PrintHelp(*help);
    return printed.ok() ? 0 : fail(printed.error());
  }
  const auto& options = std::get<ReportOptions>(parsed.value());
  ReportOutcome outcome;
  const Status status = options.each ? RunEach(options, outcome) : RunReport(options, outcome);
  std::fputs(ForTerminal(outcome.notes).c_str(), stderr);
  if (!status.ok()) return fail(status.error());
  return options.strict && outcome.data_lost ? 3 : 0;
}

}  // namespace
}  // namespace xpu

int main(int argc, char** argv) {
  try {
    return xpu::Run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("xpu-report: out of memory\n", stderr);
    return 1;
  }
}
