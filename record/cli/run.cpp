#include "record/cli/run.h"

#include <cerrno>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "format/base/terminal_text.h"
#include "record/checks/check.h"
#include "record/cli/command_line.h"
#include "record/gpu_metrics/counter_list.h"
#include "record/gpu_metrics/metrics_helper.h"
#include "record/options/options.h"
#include "record/session/recorder.h"
#include "record/target/target.h"
#include "symbolize/dwarf/debug_reader.h"

namespace xpu {
namespace {

void Print(const Error& error) {
  std::fprintf(stderr, "xpu-record: %s\n", ForTerminal(error).c_str());
}

// What is asked for instead of a recording. Returns the exit status.
int PrintAnswer(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return 0;
  Print(SystemError("standard output: write", errno));
  return kOwnFailure;
}

// May run on any thread, when no memory is left.
[[noreturn]] void OutOfMemory() {
  constexpr std::string_view kText =
      "xpu-record: out of memory\n"
      "hint: check ulimit -v and -d, the container's limit and other processes; the capture holds "
      "what has been written so far\n";
  (void)!::write(STDERR_FILENO, kText.data(), kText.size());
  ::_exit(kOwnFailure);
}

}  // namespace

int RunRecorder(int argc, char** argv) { return RunRecorder(argc, argv, TestHooks{}); }

int RunRecorder(int argc, char** argv, TestHooks hooks) {
  if (IsDebugReader(argc, argv)) return RunDebugReader();
  if (IsMetricsHelper(argc, argv)) return RunMetricsHelper(argc, argv);
  std::set_new_handler(&OutOfMemory);
  auto parsed = ParseCommandLine(argc, argv);
  if (!parsed.ok()) {
    Print(parsed.error());
    return kOwnFailure;
  }
  if (parsed->answer) return PrintAnswer(*parsed->answer);
  if (hooks.change_options) hooks.change_options(parsed->options);
  const RecordOptions& options = parsed->options;
  if (options.check) {
    const CheckResult check = Check(options);
    const int written = PrintAnswer(check.text);
    return written != 0 ? written : check.works ? 0 : 1;
  }
  if (options.list_gpu_metrics) return PrintAnswer(GpuMetricList(options.gpu_metrics));
  const Outcome outcome = Record(options, std::move(hooks));
  if (outcome.error) Print(*outcome.error);
  if (!options.quiet) std::fputs(ForTerminal(outcome.summary).c_str(), stderr);
  ExitLike(outcome.wait_status);
}

}  // namespace xpu
