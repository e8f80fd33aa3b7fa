#include <cstdio>
#include <new>
#include <string_view>

#include <unistd.h>

#include "format/base/terminal_text.h"
#include "record/checks/check.h"
#include "record/cli/command_line.h"
#include "record/options/options.h"
#include "record/session/recorder.h"
#include "record/target/target.h"
#include "symbolize/dwarf/debug_reader.h"

namespace {

void Print(const xpu::Error& error) {
  std::fprintf(stderr, "xpu-record: %s\n", xpu::ForTerminal(error).c_str());
}

// On any thread, and with nothing left to work with.
[[noreturn]] void OutOfMemory() {
  constexpr std::string_view kText =
      "xpu-record: out of memory\n"
      "hint: check ulimit -v and -d, the container's limit and other processes; the capture holds "
      "what has been written so far\n";
  (void)!::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(xpu::kOwnFailure);
}

}  // namespace

int main(int argc, char** argv) {
  if (xpu::IsDebugReader(argc, argv)) return xpu::RunDebugReader();
  std::set_new_handler(&OutOfMemory);
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
