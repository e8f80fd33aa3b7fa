#include "record/session/recorder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include <sys/random.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/quote.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/environment.h"
#include "record/base/process_status.h"
#include "record/base/size_text.h"
#include "record/checks/preflight.h"
#include "record/kernel/bpf_support.h"
#include "record/output/output_parts.h"
#include "record/process/loader.h"
#include "record/process/process_maps.h"
#include "record/process/rank.h"
#include "record/process/running_processes.h"
#include "record/session/control_fifo.h"
#include "record/session/event_loop.h"
#include "record/session/recording_control.h"
#include "record/session/rotation.h"
#include "record/session/signals.h"
#include "record/session/sources.h"
#include "record/session/summary.h"
#include "record/sink/event_sink.h"
#include "record/target/gained_privileges.h"
#include "record/target/not_started.h"
#include "record/target/target.h"

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

std::string WorkingDirectory() {
  char* path = ::getcwd(nullptr, 0);
  std::string text = path == nullptr ? "" : path;
  std::free(path);
  return text;
}

// For running processes, the command lines that they were started with.
std::string CommandLineOf(const RecordOptions& options) {
  if (options.whole_system && options.command.empty()) return "(all processes)";
  if (options.pids.empty()) return QuoteForShell(options.command);
  std::string lines;
  for (const pid_t pid : options.pids) {
    std::vector<std::string> words;
    const auto text = ReadFile(Format("/proc/{}/cmdline", LivingThread(pid)));
    for (std::string_view rest = text.ok() ? text.value() : std::string_view(); !rest.empty();) {
      const size_t end = std::min(rest.find('\0'), rest.size());
      words.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    AppendFormat(lines, "{}{}", lines.empty() ? "" : "; ", QuoteForShell(words));
  }
  return lines;
}

// The same for all that runs on the machine, in containers too; empty if it is not known.
std::string BootId() {
  Result<std::string> read = ReadFile("/proc/sys/kernel/random/boot_id");
  std::string id = read.ok() ? *read : "";
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

// Never 0: parts without an id could not be recognized as one recording.
uint64_t DrawRecordingId() {
  uint64_t id = 0;
  return ::getrandom(&id, sizeof(id), 0) == sizeof(id) ? id | 1 : 0;
}

// Returns the start time of the recording.
uint64_t WriteBeginning(EventSink& sink, const RecordOptions& options, const Sources& sources,
                        const Target* target, uint32_t part) {
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
  info.command_line = sink.Intern(CommandLineOf(options));
  info.settings = sink.Intern(QuoteForShell(options.own_arguments));
  info.working_directory = sink.Intern(WorkingDirectory());
  info.launch_stacks = sources.launch_stacks();
  info.graph_trace =
      options.graph_trace == GraphTraceMode::kNode ? GraphTrace::kNode : GraphTrace::kGraph;
  info.call_graph = sources.call_graph();
  info.symbols = options.symbols;
  info.recording = DrawRecordingId();
  info.part = part;
  info.boot_id = sink.Intern(BootId());
  sink.Write(info);
  WriteRank(FindRank(OwnEnvironment()), InstanceId{}, info.recorder_pid, sink);
  if (target == nullptr) return info.start_ns;

  ProcessEvent held;
  held.time_ns = info.start_ns;
  held.kind = ProcessEventKind::kExisting;
  held.pid = held.tid = static_cast<uint32_t>(target->pid());
  held.parent_pid = held.parent_tid = info.recorder_pid;
  held.name = sink.Intern("xpu-record");  // until its exec
  sink.Write(held);
  return info.start_ns;
}

// The parts of one recording, in the order in which they are created.
struct Recording {
  const RecordOptions& options;
  TestHooks hooks{};
  std::optional<SignalSource> signals{};
  std::optional<ControlFifo> fifo{};
  std::optional<TargetUser> user{};
  ProcessTable processes{options.symbols != SymbolDetail::kNone};
  SourcePlaces places{};
  std::optional<HitFiles> hits{};      // nullopt: without symbols
  std::optional<SourceTexts> texts{};  // nullopt: without sources
  std::optional<Sources> sources{};
  std::optional<Target> target{};  // nullopt: no program is started
  std::optional<OutputParts> parts{};
  std::optional<Rotation> rotation{};
  std::optional<CaptureWriter> writer{};  // until the sink takes it
  std::optional<RecordingControl> control{};
  std::optional<EventLoop> loop{};
  bool goes_on = false;  // the program continues after the end of the recording

  Status Prepare(const InheritedSignals& inherited);
  Status PrepareProgram(std::vector<std::string>& environment);
  Status Start(const InheritedSignals& inherited);
  Status Listen();
  Status OpenOutput();
  Outcome Run();
  Outcome Finish(EventSink& sink);
  const Target* TargetOrNull() const { return target ? &*target : nullptr; }
};

Status Recording::Listen() {
  XPU_ASSIGN_OR_RETURN(SignalSource source, SignalSource::Create());
  signals.emplace(std::move(source));
  if (options.control.fifo.empty()) return Ok();
  XPU_ASSIGN_OR_RETURN(ControlFifo opened,
                       ControlFifo::Open(options.control.fifo, options.control.ack_fifo));
  fifo.emplace(std::move(opened));
  return Ok();
}

Status Recording::Start(const InheritedSignals& inherited) {
  if (options.command.empty()) return sources->Arm(0);
  const Confinement confinement{.allows_new_privileges = options.allow_new_privileges,
                                .keeps_descriptors = options.keep_descriptors};
  XPU_ASSIGN_OR_RETURN(Target held,
                       Target::Fork({options.command, sources->environment(), inherited, user,
                                     confinement, options.output == "-"}));
  target.emplace(std::move(held));
  return sources->Arm(target->pid());
}

// Determines the user that the program runs as, and checks that it does not gain privileges beyond
// that user's.
Status Recording::PrepareProgram(std::vector<std::string>& environment) {
  if (!options.user.empty()) {
    XPU_ASSIGN_OR_RETURN(user, FindTargetUser(options.user));
    SetUserVariables(*user, environment);
  }
  // Events on CPUs include programs that gain privileges, and with -p the program is not recorded.
  if (options.command.empty() || options.whole_system || !options.pids.empty()) return Ok();
  // With no_new_privs the kernel ignores the privileges of the file.
  if (user && !options.allow_new_privileges) return Ok();
  const std::string file = FindProgram(options.command.front(),
                                       FindVariable(environment, "PATH").value_or("/bin:/usr/bin"));
  const Starter starter = user ? Starter{user->uid, user->gid, 0} : OwnStarter();
  return CheckGainsNothing(file, starter);
}

// With -o DIR/ each recorder of a job names its capture by host, rank and process.
Result<std::string> OutputFor(const std::string& output, const std::optional<Target>& target) {
  if (!output.ends_with('/')) return output;
  XPU_RETURN_IF_ERROR(CreateDirectoryFor(output));
  utsname system{};
  ::uname(&system);
  const std::optional<Rank> rank = FindRank(OwnEnvironment());
  return Format("{}{}{}.pid{}.xpu", output, system.nodename,
                rank ? Format(".rank{}", rank->rank) : "", target ? target->pid() : ::getpid());
}

Status Recording::OpenOutput() {
  XPU_ASSIGN_OR_RETURN(const std::string output, OutputFor(options.output, target));
  XPU_ASSIGN_OR_RETURN(OutputParts prepared, OutputParts::Prepare(output, options.output_options));
  parts.emplace(std::move(prepared));
  rotation.emplace(*parts,
                   Rotation::Options{.output = options.output_options,
                                     .symbols = options.symbols,
                                     .stores_native_sources = options.StoresNativeSources(),
                                     .max_bytes = options.control.max_bytes},
                   hits ? &*hits : nullptr, texts ? &*texts : nullptr);
  XPU_ASSIGN_OR_RETURN(CaptureWriter begun, rotation->Begin());
  writer.emplace(std::move(begun));
  return Ok();
}

Status Recording::Prepare(const InheritedSignals& inherited) {
  XPU_RETURN_IF_ERROR(Preflight(options));
  XPU_RETURN_IF_ERROR(Listen());
  std::vector<std::string> environment = OwnEnvironment();
  XPU_RETURN_IF_ERROR(PrepareProgram(environment));
  if (options.symbols != SymbolDetail::kNone) {
    hits.emplace(processes, options.StoresNativeSources() ? &places : nullptr);
  }
  XPU_ASSIGN_OR_RETURN(Sources opened,
                       Sources::Open(options, std::move(environment), processes, hooks));
  sources.emplace(std::move(opened));
  if (user && options.record_gpu && options.inject) {
    XPU_RETURN_IF_ERROR(CheckUserReaches(*user, sources->environment()));
  }
  XPU_RETURN_IF_ERROR(Start(inherited));
  if (options.store_sources) texts.emplace(&places);  // its thread: not before the fork
  return OpenOutput();
}

// The recording never was on, which cannot be intended.
std::string NothingRecordedText(const ControlOptions& control) {
  if (control.capture_range && control.capture_range->is_profiler_api) {
    return "xpu-record: nothing was recorded: the program did not call cudaProfilerStart\n"
           "hint: --capture-range=cudaProfilerApi records between cudaProfilerStart and "
           "cudaProfilerStop\n";
  }
  if (control.capture_range) {
    return Format(
        "xpu-record: nothing was recorded: no NVTX range {} began\n"
        "hint: names and domains must match exactly; to list them, record without --capture-range "
        "and run xpu-report --top --table nvtx_sum\n",
        control.capture_range->Text());
  }
  return "xpu-record: nothing was recorded: the recording was never enabled\n";
}

std::string SizeLimitText(uint64_t max_bytes, bool goes_on) {
  return Format("xpu-record: the recording stopped at --max-size, {}{}\n", SizeText(max_bytes),
                goes_on ? "; the program keeps running" : "");
}

Outcome Recording::Finish(EventSink& sink) {
  goes_on = target && !loop->TargetHasEnded();
  Outcome outcome;
  // Reaped here, so that no other process finds it as a zombie.
  if (target && !goes_on) outcome.wait_status = target->Wait();
  sources->EndSampling();
  RecordingEnd end;
  end.time_ns = MonotonicNs();
  sources->Stop(sink, goes_on);
  rotation->LookUpKernelFunctions(sink);
  sources.reset();  // removes probes from a program that continues
  if (target && !goes_on) {
    end.target_pid = static_cast<uint32_t>(target->pid());
    end.wait_status = outcome.wait_status;
  }
  const Rotation::Totals totals = rotation->Finish(sink, end);
  outcome.summary = SummaryText({totals.events, totals.bytes, parts->Text()}, totals.losses);
  if (loop->has_reached_max()) outcome.summary += SizeLimitText(options.control.max_bytes, goes_on);
  if (!control->was_ever_on()) outcome.summary += NothingRecordedText(options.control);
  if (totals.failure) {
    outcome.error = totals.failure;
    outcome.wait_status = WaitStatusOfExit(kOwnFailure);
  }
  return outcome;
}

// The BPF programs know newly mapped code only once this thread has published it, so it must not
// wait for a CPU. It has little to do. Without the right to raise its priority, the thread keeps
// the usual one.
void RaisePriority() {
  constexpr int kRecorderNiceness = -10;
  ::setpriority(PRIO_PROCESS, 0, kRecorderNiceness);
}

// Everything from the armed sources to the finished capture.
Outcome Recording::Run() {
  EventSink sink(*std::exchange(writer, std::nullopt));
  if (!options.quiet) std::fputs(parts->kept_text().c_str(), stderr);
  sink.SetFilter(std::move(hooks.filter));
  if (options.store_sources) sink.AddObserver(&places);  // before those that ask it
  sink.AddObserver(&processes);
  sink.SetLiveState(&processes);
  if (hits) sink.AddObserver(&*hits);
  if (texts) sink.AddObserver(&*texts);
  const uint64_t begin_ns = WriteBeginning(sink, options, *sources, TargetOrNull(), parts->part());
  sources->Begin(sink);

  RaisePriority();
  if (target) {
    auto released = target->Release();
    if (!released.ok() || released->error_number != 0) {
      parts->Discard();
      if (!released.ok()) return OwnFailure(std::move(released).error());
      return Outcome{WaitStatusOfExit(released->ExitStatus()),
                     NotStarted(*released, options.command.front(), user ? &*user : nullptr),
                     {}};
    }
    sources->AfterExec(sink);
  }
  control.emplace(options.control, MonotonicNs());
  loop.emplace(EventLoop::Parts{.target = target ? &*target : nullptr,
                                .signals = *signals,
                                .control = *control,
                                .rotation = *rotation,
                                .fifo = fifo ? &*fifo : nullptr,
                                .begin_ns = begin_ns,
                                .takes_switches = options.control.by_signal || !target});
  if (Status recorded = loop->Record(*sources, sink); !recorded.ok()) {
    return OwnFailure(std::move(recorded).error());
  }
  return Finish(sink);
}

// The recording is over and reported, and the program keeps running.
Outcome WaitForProgram(const RecordOptions& options, EventLoop& loop, Outcome outcome) {
  if (!options.quiet) std::fputs(ForTerminal(std::exchange(outcome.summary, {})).c_str(), stderr);
  auto wait_status = loop.WaitForTarget();
  if (!wait_status.ok()) return OwnFailure(std::move(wait_status).error());
  if (!outcome.error) outcome.wait_status = *wait_status;
  return outcome;
}

bool MapsCuda(pid_t pid) {
  auto mappings = ReadProcessMaps(static_cast<uint32_t>(pid));
  return mappings.ok() &&
         std::any_of(mappings->begin(), mappings->end(), [](const ProcessMapping& mapping) {
           return mapping.path.find("/libcuda.so") != std::string::npos;
         });
}

// Unreadable processes count as without CUDA: this only affects a message.
bool AnyProcessMapsCuda() {
  const std::vector<pid_t> pids = ListProcesses();
  return std::any_of(pids.begin(), pids.end(), MapsCuda);
}

void ReportLimits(const RecordOptions& options) {
  if (options.quiet) return;
  if (!options.control.note.empty()) {
    std::fputs(Format("xpu-record: {}\n", options.control.note).c_str(), stderr);
  }
  if (!options.gpu_out_of_reach || !AnyProcessMapsCuda()) return;
  std::fputs(
      "xpu-record: GPU activity is not recorded: -a does not load the injected library into "
      "processes that are already running\nhint: give --attach, or name such a process with -p, or "
      "give --cpu-only to avoid this note\n",
      stderr);
}

}  // namespace

Outcome Record(const RecordOptions& options, TestHooks hooks) {
  SetBpfMessages(options.verbose);
  const InheritedSignals inherited = InheritedSignals::Take();
  InheritedSignals::IgnoreOutputSignals();
  Recording recording{.options = options, .hooks = std::move(hooks)};
  if (Status prepared = recording.Prepare(inherited); !prepared.ok()) {
    return OwnFailure(std::move(prepared).error());
  }
  ReportLimits(options);
  Outcome outcome = recording.Run();
  return recording.goes_on ? WaitForProgram(options, *recording.loop, std::move(outcome)) : outcome;
}

}  // namespace xpu
