// A tree of processes and threads with known names: the root forks children, each child starts
// threads and forks a grandchild, each grandchild execs this program again as a leaf.
//   --children C --threads T (in each child) --ms M (CPU time of each process's main thread)
// Comms: root "fork-root", children "fork-child-I" with threads "child-thread-J", leaves
// "fork-leaf-I". Only the root prints, one line with what every process reported.
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/wait.h>

#include "json_line.h"
#include "puppet.h"

#define XPU_BURN_FUNCTION(name)                                        \
  XPU_FRAME uint64_t name(uint64_t milliseconds) {                     \
    const uint64_t begin = workload::ClockNs(CLOCK_THREAD_CPUTIME_ID); \
    uint64_t elapsed = 0;                                              \
    volatile uint64_t x = 1;                                           \
    while (elapsed < milliseconds * 1'000'000) {                       \
      for (int i = 0; i < 20'000; ++i) x = x * 3 + 1;                  \
      elapsed = workload::ClockNs(CLOCK_THREAD_CPUTIME_ID) - begin;    \
    }                                                                  \
    return elapsed;                                                    \
  }

XPU_BURN_FUNCTION(RootBurn)
XPU_BURN_FUNCTION(ChildBurn)
XPU_BURN_FUNCTION(ThreadBurn)
XPU_BURN_FUNCTION(LeafBurn)

namespace {

struct Settings {
  uint64_t children = 2;
  uint64_t threads = 2;
  uint64_t ms = 50;
  int report_fd = -1;  // a pipe; every process but the root writes one JSON object and a newline
};

struct ThreadReport {
  std::string comm;
  uint64_t tid = 0;
  uint64_t cpu_ns = 0;
};

void SetComm(const std::string& comm) { pthread_setname_np(pthread_self(), comm.c_str()); }

// One write below PIPE_BUF, so reports of several processes do not mix.
void Report(const Settings& settings, const char* role, const std::string& comm,
            const char* function, uint64_t cpu_ns, const std::vector<ThreadReport>& threads) {
  workload::JsonLine json;
  json.Add("role", role);
  json.Add("comm", comm);
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.Add("ppid", static_cast<uint64_t>(getppid()));
  json.Add("function", function);
  json.Add("cpu_ns", cpu_ns);
  json.BeginArray("threads");
  for (const ThreadReport& thread : threads) {
    json.BeginObject("");
    json.Add("comm", thread.comm);
    json.Add("tid", thread.tid);
    json.Add("function", "ThreadBurn");
    json.Add("cpu_ns", thread.cpu_ns);
    json.EndObject();
  }
  json.EndArray();
  const std::string line = json.Finish() + "\n";
  if (write(settings.report_fd, line.data(), line.size()) < 0) _exit(1);
}

void WaitFor(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) std::exit(1);
}

void RunThread(const Settings& settings, uint64_t index, ThreadReport* report) {
  report->comm = "child-thread-" + std::to_string(index);
  SetComm(report->comm);
  report->tid = workload::ThreadId();
  report->cpu_ns = ThreadBurn(settings.ms);
}

[[noreturn]] void ExecLeaf(const Settings& settings, uint64_t index) {
  std::string options[] = {
      "cpu_fork",
      "--leaf=" + std::to_string(index),
      "--ms=" + std::to_string(settings.ms),
      "--report-fd=" + std::to_string(settings.report_fd),
  };
  std::vector<char*> argv;
  for (std::string& option : options) argv.push_back(option.data());
  argv.push_back(nullptr);
  execv("/proc/self/exe", argv.data());
  _exit(127);
}

void RunChild(const Settings& settings, uint64_t index) {
  const std::string comm = "fork-child-" + std::to_string(index);
  SetComm(comm);
  const pid_t grandchild = fork();
  if (grandchild == 0) ExecLeaf(settings, index);
  std::vector<ThreadReport> reports(settings.threads);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < settings.threads; ++i) {
    threads.emplace_back(RunThread, settings, i, &reports[i]);
  }
  const uint64_t cpu_ns = ChildBurn(settings.ms);
  for (std::thread& thread : threads) thread.join();
  WaitFor(grandchild);
  Report(settings, "child", comm, "ChildBurn", cpu_ns, reports);
}

int RunLeaf(const Settings& settings, const char* index) {
  const std::string comm = std::string("fork-leaf-") + index;
  SetComm(comm);
  Report(settings, "leaf", comm, "LeafBurn", LeafBurn(settings.ms), {});
  return 0;
}

// The reports of all processes, each ended by a newline, as a JSON array.
std::string ReadReports(int fd) {
  std::string text = "[";
  char chunk[4096];
  ssize_t size = 0;
  while ((size = read(fd, chunk, sizeof(chunk))) > 0) text.append(chunk, static_cast<size_t>(size));
  for (char& c : text) {
    if (c == '\n') c = ',';
  }
  if (text.back() == ',') text.pop_back();
  return text + "]";
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  settings.children = workload::OptionNumber(argc, argv, "--children", settings.children);
  settings.threads = workload::OptionNumber(argc, argv, "--threads", settings.threads);
  settings.ms = workload::OptionNumber(argc, argv, "--ms", settings.ms);
  if (const char* leaf = workload::Option(argc, argv, "--leaf")) {
    settings.report_fd = static_cast<int>(workload::OptionNumber(argc, argv, "--report-fd", 1));
    return RunLeaf(settings, leaf);
  }
  SetComm("fork-root");
  int report[2];
  if (pipe(report) != 0) return 1;
  settings.report_fd = report[1];
  std::vector<pid_t> children;
  for (uint64_t i = 0; i < settings.children; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      RunChild(settings, i);
      return 0;
    }
    children.push_back(child);
  }
  const uint64_t cpu_ns = RootBurn(settings.ms);
  close(report[1]);
  const std::string reports = ReadReports(report[0]);
  for (const pid_t child : children) WaitFor(child);

  workload::JsonLine json;
  json.Add("workload", "cpu_fork");
  json.Add("pid", static_cast<uint64_t>(getpid()));
  json.Add("comm", "fork-root");
  json.Add("function", "RootBurn");
  json.Add("cpu_ns", cpu_ns);
  json.Add("forks", settings.children * 2);
  json.Add("execs", settings.children);
  json.Add("processes", 1 + settings.children * 2);
  json.Add("threads", 1 + settings.children * 2 + settings.children * settings.threads);
  json.AddRaw("reports", reports);
  workload::PrintLine(json.Finish());
  return 0;
}
