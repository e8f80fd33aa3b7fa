#include "record/recorder.h"

#include <cerrno>
#include <ctime>
#include <utility>

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/bpf_support.h"
#include "record/cpu_source.h"
#include "record/event_loop.h"
#include "record/event_sink.h"
#include "record/kernel_symbols.h"
#include "record/output_file.h"
#include "record/preflight.h"
#include "record/quote.h"
#include "record/signals.h"
#include "record/sources.h"
#include "record/summary.h"
#include "record/symbol_slices.h"
#include "record/target.h"

namespace xpu {
namespace {

Outcome OwnFailure(Error error) {
  return Outcome{WaitStatusOfExit(kOwnFailure), std::move(error), {}};
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> variables;
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  return variables;
}

uint64_t RealtimeNs() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

std::string WorkingDirectory() {
  char* path = ::getcwd(nullptr, 0);
  std::string text = path == nullptr ? "" : path;
  std::free(path);
  return text;
}

LaunchStackSource StackSourceOf(const RecordOptions& options, const Sources& sources) {
  if (sources.takes_stacks_inline()) return LaunchStackSource::kInProcess;
  if (!options.record_gpu || options.launch_stacks == LaunchStacks::kNone) {
    return LaunchStackSource::kNone;
  }
  return options.inject ? LaunchStackSource::kMarker : LaunchStackSource::kProbes;
}

void WriteBeginning(EventSink& sink, const RecordOptions& options, const Sources& sources,
                    pid_t target) {
  RecordingInfo info;
  info.start_ns = MonotonicNs();
  info.start_realtime_ns = RealtimeNs();
  info.recorder_pid = static_cast<uint32_t>(::getpid());
  info.cpu_count = static_cast<uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  utsname system{};
  ::uname(&system);
  info.recorder_version = sink.Intern(XPU_VERSION);
  info.host_name = sink.Intern(system.nodename);
  info.kernel_release = sink.Intern(system.release);
  info.machine = sink.Intern(system.machine);
  info.command_line = sink.Intern(QuoteForShell(options.command));
  info.settings = sink.Intern(QuoteForShell(options.own_arguments));
  info.working_directory = sink.Intern(WorkingDirectory());
  info.launch_stacks = StackSourceOf(options, sources);
  info.graph_trace =
      options.graph_trace == GraphTraceMode::kNode ? GraphTrace::kNode : GraphTrace::kGraph;
  info.call_graph = sources.call_graph();
  info.symbols = options.symbols;
  sink.Write(info);

  ProcessEvent held;
  held.time_ns = info.start_ns;
  held.kind = ProcessEventKind::kExisting;
  held.pid = held.tid = static_cast<uint32_t>(target);
  held.parent_pid = held.parent_tid = info.recorder_pid;
  held.name = sink.Intern("xpu-record");  // until its exec
  sink.Write(held);
}

Outcome NotStarted(const ExecFailure& failure, const std::string& program) {
  Outcome outcome;
  outcome.wait_status = WaitStatusOfExit(failure.ExitStatus());
  std::string hint;
  if (failure.error_number == ENOENT && program.find('/') == std::string::npos) {
    hint = "it is in no folder of PATH";
  }
  outcome.error = SystemError(Format("{}: exec", program), failure.error_number, hint);
  return outcome;
}

Outcome Finish(EventSink& sink, Sources& sources, const OutputFile& output, SymbolDetail symbols,
               pid_t target, int wait_status) {
  sources.Stop(sink);
  WriteKernelSymbols(sink);
  sink.Flush();  // whatever happens while symbols are read
  WriteSymbols(sink, symbols);
  RecordingEnd end;
  end.time_ns = MonotonicNs();
  end.target_pid = static_cast<uint32_t>(target);
  end.wait_status = wait_status;
  sink.Close(end);

  Outcome outcome;
  outcome.wait_status = wait_status;
  outcome.summary =
      SummaryText({sink.events_written(), sink.bytes_written(), output.name()}, sink.losses());
  if (sink.failure()) {
    outcome.error = sink.failure();
    outcome.wait_status = WaitStatusOfExit(kOwnFailure);
  }
  return outcome;
}

// Of code that was just mapped the BPF programs know when this thread has told them, so it is not
// to wait for a processor. It has little to do. Where the user may not, it is as it was.
void TakePrecedence() {
  constexpr int kNiceness = -10;
  ::setpriority(PRIO_PROCESS, 0, kNiceness);
}

// Everything between the armed sources and the finished capture.
Outcome RecordTarget(const RecordOptions& options, Target& target, Sources& sources,
                     SignalSource& signals, OutputFile& output) {
  auto writer = CaptureWriter::Create(output.TakeFd(), output.name());
  if (!writer.ok()) {
    output.Discard();
    return OwnFailure(std::move(writer).error());
  }
  EventSink sink(*std::move(writer));
  if (options.symbols != SymbolDetail::kNone) sink.CollectHits();
  WriteBeginning(sink, options, sources, target.pid());
  sources.Describe(sink);

  TakePrecedence();
  auto released = target.Release();
  if (!released.ok() || released->error_number != 0) {
    output.Discard();
    return released.ok() ? NotStarted(*released, options.command.front())
                         : OwnFailure(std::move(released).error());
  }
  sources.AfterExec(target.pid(), sink);
  EventLoop loop(target, signals, sources, sink);
  auto wait_status = loop.Run();
  if (!wait_status.ok()) return OwnFailure(std::move(wait_status).error());
  return Finish(sink, sources, output, options.symbols, target.pid(), *wait_status);
}

}  // namespace

Outcome Record(const RecordOptions& options) {
  SetBpfMessages(options.verbose);
  const InheritedSignals inherited = InheritedSignals::Take();
  InheritedSignals::IgnoreOutputSignals();
  if (auto able = Preflight(options); !able.ok()) return OwnFailure(std::move(able).error());
  auto signals = SignalSource::Create();
  if (!signals.ok()) return OwnFailure(std::move(signals).error());

  std::vector<std::string> environment = OwnEnvironment();
  auto sources = Sources::Prepare(options, environment);
  if (!sources.ok()) return OwnFailure(std::move(sources).error());
  auto target =
      Target::Fork({options.command, std::move(environment), inherited, options.output == "-"});
  if (!target.ok()) return OwnFailure(std::move(target).error());
  if (auto armed = sources->Arm(target->pid()); !armed.ok()) {
    return OwnFailure(std::move(armed).error());
  }
  auto output = OutputFile::Open(options.output);
  if (!output.ok()) return OwnFailure(std::move(output).error());
  return RecordTarget(options, *target, *sources, *signals, *output);
}

}  // namespace xpu
