#include "report/views/summary/summary_processes.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <vector>

#include <sys/wait.h>

#include "format/base/text.h"
#include "report/analysis/sampled_events.h"
#include "report/output/text.h"
#include "report/query/thread_times.h"

namespace xpu {
namespace {

constexpr size_t kProcesses = 5;
constexpr size_t kThreads = 3;  // of each

std::string StartText(uint64_t realtime_ns) {
  const auto seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  struct tm time {};
  if (realtime_ns == 0 || ::gmtime_r(&seconds, &time) == nullptr) return {};
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &time)};
}

std::string TimeText(const MergedCapture& capture) {
  std::string text = StartText(capture.info.start_realtime_ns);
  if (!capture.end) return text + (text.empty() ? "" : ", ") + "without its end";
  const uint64_t from_ns = capture.info.start_ns;
  const uint64_t to_ns = std::max(capture.end->time_ns, from_ns);
  text += (text.empty() ? "" : ", ") + HumanDuration(to_ns - from_ns);
  if (capture.end->target_pid != 0) text += ", " + DescribeStatus(capture.end->wait_status);
  return text;
}

void WriteRow(const ThreadTime& row, bool is_time, const std::string& name, SummaryText& text) {
  const std::string cpu = is_time ? HumanDuration(row.cpu) : WithThousands(row.cpu);
  text.Row(Format("  {:>9} {:>9} {:>9}  ", cpu, row.gpu_work == 0 ? "-" : HumanDuration(row.gpu_ns),
                  WithThousands(row.samples)),
           name);
}

}  // namespace

std::string DescribeStatus(int status) {
  if (WIFEXITED(status)) return Format("exit status {}", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return name == nullptr ? Format("killed by signal {}", WTERMSIG(status))
                           : Format("killed by SIG{}", name);
  }
  return Format("wait status {:#x}", status);
}

std::string HostText(const Model& model, const RecordingInfo& info) {
  return Format("{} {} {}, {} CPUs", model.Text(info.host_name), model.Text(info.kernel_release),
                model.Text(info.machine), info.cpu_count);
}

void WriteCaptures(const Analysis& analysis, SummaryText& text) {
  const Model& model = analysis.model;
  for (const MergedCapture& capture : model.captures) {
    const RecordingInfo& info = capture.info;
    text.Paragraph("capture", capture.path);
    text.Line("  command", model.Text(info.command_line));
    text.Line("  host", HostText(model, info));
    text.Line("  time", TimeText(capture));
  }
}

void WriteProcessTimes(const Analysis& analysis, SummaryText& text) {
  const std::vector<ThreadTime> threads = ThreadTimes(analysis);
  const std::vector<ThreadTime> processes = ProcessTimes(threads);
  if (processes.size() < 2) return;
  const bool is_time = SamplesCountTime(analysis.model);
  text.Heading("Processes", ", the busiest first, with their busiest threads");
  text.Names(Format("  {:>9}  GPU time   samples  process",
                    is_time ? "CPU time" : ToWidth(SampleUnit(analysis.model), 9)));
  auto thread = threads.begin();
  for (size_t i = 0; i < std::min(processes.size(), kProcesses); ++i) {
    const ThreadTime& process = processes[i];
    WriteRow(process, is_time, Format("{} ({})", process.process_name, process.pid), text);
    const auto first = thread;
    const auto is_of_process = [&](const ThreadTime& row) {
      return row.process == process.process && row.pid == process.pid;
    };
    while (thread != threads.end() && is_of_process(*thread)) ++thread;
    const auto count = static_cast<size_t>(thread - first);
    for (size_t k = 0; count > 1 && k < std::min(count, kThreads); ++k) {
      const ThreadTime& row = first[static_cast<ptrdiff_t>(k)];
      WriteRow(row, is_time, Format("  {} ({})", row.thread_name, row.tid), text);
    }
  }
  if (processes.size() > kProcesses || threads.size() > processes.size()) {
    text.Names("  every process and thread: --table thread_sum");
  }
}

}  // namespace xpu
