#include "record/probes/probe_source.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <launch_probe.skel.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "record/kernel/bpf_support.h"
#include "record/probes/probe_files.h"
#include "record/probes/user_probe_links.h"
#include "record/process/loader.h"
#include "record/process/watched_processes.h"
#include "record/unwind/stack_frames.h"
#include "record/unwind/unwinder.h"

namespace xpu {
namespace {

// A file that a process has mapped and that is examined later.
struct CandidateFile {
  uint32_t pid = 0;
  std::string path;   // as the process sees it
  std::string range;  // of addresses, as in /proc/PID/map_files

  // The root directory of the process, which may be in a container. Readable until it ends.
  std::string Root() const { return Format("/proc/{}/root", pid); }
  std::string InRoot() const { return Root() + path; }
  // Also leads to a deleted file.
  std::string InMapFiles() const { return Format("/proc/{}/map_files/{}", pid, range); }
};

// 0 if the file exists.
int ReasonOfAbsence(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0 ? 0 : errno;
}

}  // namespace

std::vector<Frame> FramesFromCaller(std::span<const Frame> walk, uint64_t caller) {
  std::vector<Frame> frames;
  if (!walk.empty()) walk = walk.subspan(1);
  const Frame direct{FrameKind::kUser, caller};
  if (caller != 0 && (walk.empty() || walk.front() != direct)) frames.push_back(direct);
  frames.insert(frames.end(), walk.begin(), walk.end());
  return frames;
}

class ProbeSource::Impl : public ProcessListener {
 public:
  // `processes`: nullptr if no mapped file will be probed.
  explicit Impl(const ProcessTable* processes)
      : stack_(KernelStackLimit()), processes_(processes) {}

  // Notes a file that a recorded process has mapped; Drain probes it.
  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  Status Open(const RecordOptions& options, const Scope& scope,
              const std::vector<std::string>& environment, const Unwinder* unwinder);
  void Drain(EventSink& sink);
  std::string Describe() const;

  void LoadOnlyFor(const RecordOptions& options);
  Status Load(const RecordOptions& options, const Scope& scope, const Unwinder* unwinder);
  Status AttachUserProbes(const RecordOptions& options,
                          const std::vector<std::string>& environment);
  Status AddNamed(const std::vector<std::string>& paths);
  void AddForeseen(const std::vector<std::string>& paths);
  Status Arm(pid_t target);
  std::string AddMapped(const CandidateFile& file);
  void AddMapped(EventSink& sink);
  void WriteDefinitions(EventSink& sink);
  void TakeHit(std::span<const std::byte> bytes);
  std::vector<Frame> FramesOf(const xpu_probe_hit& raw) const;
  void CountLosses(EventSink& sink);
  void CountOutlived(EventSink& sink) const;
  std::string HitsText() const;

  Handle<launch_probe_bpf, launch_probe_bpf::destroy> program_;
  BpfLink fork_link_;
  BpfLink exec_link_;
  std::unique_ptr<BpfRing> ring_;
  bool at_once_ = false;
  bool spares_others_ = false;        // leaves return addresses of unrecorded programs unchanged
  bpf_program* at_return_ = nullptr;  // which of the two return programs is loaded
  bool verbose_ = false;
  bool sees_launches_ = false;
  UserProbeLinks user_probes_;
  std::optional<ProbeFiles> files_;
  bool asked_defined_ = false;
  size_t defined_ = 0;  // how many of files_->probes()
  std::vector<CandidateFile> mapped_;
  StackFrames stack_;
  const ProcessTable* processes_;
  const Unwinder* unwinder_ = nullptr;
  EventSink* sink_ = nullptr;  // valid during Drain
  uint64_t taken_ = 0;
  std::set<uint32_t> pids_;  // of processes that launched GPU work
  uint64_t dropped_counted_ = 0;
  uint64_t unmarked_counted_ = 0;
};

// Loads only the programs that are needed: the kernel verifies each for some milliseconds, and some
// kernels do not support all types.
void ProbeSource::Impl::LoadOnlyFor(const RecordOptions& options) {
  const auto wants = [&](ProbeKind kind) {
    const auto is_it = [kind](const UserProbe& probe) { return probe.kind == kind; };
    return std::any_of(options.probes.begin(), options.probes.end(), is_it);
  };
  const auto& programs = program_->progs;
  bpf_program__set_autoload(programs.probe_entry, sees_launches_ || wants(ProbeKind::kUprobe));
  bpf_program__set_autoload(programs.probe_return, false);
  bpf_program__set_autoload(programs.probe_session, false);
  bpf_program__set_autoload(at_return_, sees_launches_ || wants(ProbeKind::kUretprobe));
  bpf_program__set_autoload(programs.kernel_entry, wants(ProbeKind::kKprobe));
  bpf_program__set_autoload(programs.kernel_return, wants(ProbeKind::kKretprobe));
  bpf_program__set_autoload(programs.trace_point, wants(ProbeKind::kTracepoint));
}

Status ProbeSource::Impl::Load(const RecordOptions& options, const Scope& scope,
                               const Unwinder* unwinder) {
  XPU_ASSIGN_OR_RETURN(const PidNamespace pid_namespace, OwnPidNamespace());
  program_.reset(launch_probe_bpf::open());
  if (!program_) return BpfError("BPF program launch_probe: open", -errno);
  program_->rodata->pid_namespace_device = pid_namespace.device;
  program_->rodata->pid_namespace_inode = pid_namespace.inode;
  unwinder_ = unwinder;
  XPU_RETURN_IF_ERROR(UseUnwinder(*program_, unwinder));
  XPU_RETURN_IF_ERROR(WatchOnly(*program_, scope));
  program_->bss->paused = scope.starts_paused;
  const auto& programs = program_->progs;
  at_once_ = SelectMultiLink({programs.probe_entry, programs.probe_return});
  spares_others_ = at_once_ && SelectSession(programs.probe_session);
  at_return_ = spares_others_ ? programs.probe_session : programs.probe_return;
  LoadOnlyFor(options);
  if (int result = launch_probe_bpf::load(program_.get()); result != 0) {
    return BpfError("BPF program launch_probe: load", result);
  }
  XPU_ASSIGN_OR_RETURN(BpfRing ring,
                       BpfRing::Open(program_->maps.probe_hits,
                                     [this](std::span<const std::byte> bytes) { TakeHit(bytes); }));
  ring_ = std::make_unique<BpfRing>(std::move(ring));
  files_.emplace(ProbeFiles::Programs{programs.probe_entry, at_return_},
                 static_cast<uint32_t>(options.probes.size()) + 1);
  return Ok();
}

Status ProbeSource::Impl::AttachUserProbes(const RecordOptions& options,
                                           const std::vector<std::string>& environment) {
  const auto& programs = program_->progs;
  const std::string program = options.command.empty() ? "" : options.command.front();
  XPU_RETURN_IF_ERROR(user_probes_.Attach({programs.probe_entry, at_return_, programs.kernel_entry,
                                           programs.kernel_return, programs.trace_point},
                                          options.probes, program, environment, verbose_));
  for (const std::string& probe : user_probes_.slow()) {
    if (options.quiet) break;
    std::fprintf(stderr,
                 "xpu-record: %s: the kernel single-steps the instruction there: about 1 us per "
                 "hit, 10 to 15 us in a virtual machine\n",
                 probe.c_str());
  }
  if (!options.quiet && ReplacesReturns(options.probes)) {
    std::fprintf(stderr,
                 "xpu-record: --uretprobe: a C++ exception that propagates through the function "
                 "will terminate the program%s\n",
                 spares_others_ ? ""
                                : ", even if it is not recorded: before Linux 6.13 the probe "
                                  "affects all programs that use the file");
  }
  return Ok();
}

Status ProbeSource::Impl::AddNamed(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code failed;
    const std::string real = std::filesystem::canonical(path, failed).native();
    if (failed) {
      Error error = SystemError(Format("--cuda-lib {}", path), failed.value());
      error.hint = "name the libcudart.so or libcuda.so that the program uses";
      return error;
    }
    XPU_RETURN_IF_ERROR(files_->Add(real, real));
  }
  return Ok();
}

// A file that cannot be probed is counted as lost only when it is mapped and fails again.
void ProbeSource::Impl::AddForeseen(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const Status added = files_->Add(path, path);
    if (added.ok()) continue;
    files_->Forget(path);
    if (verbose_)
      std::fprintf(stderr, "launch probes: %s\n", ForTerminal(added.error().message).c_str());
  }
}

Status ProbeSource::Impl::Arm(pid_t target) {
  fork_link_.reset(bpf_program__attach(program_->progs.inherit_mark));
  if (!fork_link_) return BpfError("BPF program inherit_mark: attach", -errno);
  exec_link_.reset(bpf_program__attach(program_->progs.begin_program));
  if (!exec_link_) return BpfError("BPF program begin_program: attach", -errno);
  return MarkProgram(bpf_map__fd(program_->maps.recorded), target);
}

// Returns an empty string if the file is probed, else the reason why it is not.
std::string ProbeSource::Impl::AddMapped(const CandidateFile& file) {
  const std::string in_root = file.InRoot();
  const bool has_name = ReasonOfAbsence(in_root) == 0;
  const Status added = files_->Add(has_name ? in_root : file.InMapFiles(), file.path);
  if (added.ok()) return {};
  const int no_root = ReasonOfAbsence(file.Root() + "/");
  if (no_root == 0) return added.error().message;
  if (files_->Knows(file.path)) return {};
  if (no_root == EACCES) return SystemError(file.Root(), no_root).message;
  return Format("{}: the process ended before it could be probed", file.path);
}

void ProbeSource::Impl::AddMapped(EventSink& sink) {
  for (const CandidateFile& file : std::exchange(mapped_, {})) {
    const std::string why = AddMapped(file);
    if (!why.empty()) sink.losses().Add(LossKind::kProbeNotPlaced, 1, file.pid, {}, why);
  }
  for (const std::string& refusal : files_->TakeRefusals()) {
    sink.losses().Add(LossKind::kProbeNotPlaced, 1, 0, {}, refusal);
  }
}

void ProbeSource::Impl::WriteDefinitions(EventSink& sink) {
  if (!std::exchange(asked_defined_, true)) user_probes_.WriteDefinitions(sink);
  for (; defined_ < files_->probes().size(); ++defined_) {
    const ProbedFunction& attached = files_->probes()[defined_];
    Probe probe;
    probe.probe = attached.probe;
    probe.purpose = attached.function->purpose;
    probe.function = sink.Intern(attached.function->name);
    probe.path = sink.Intern(attached.path);
    sink.Write(probe);
  }
}

// Leaves out the probed function itself. At a return the caller is already on top, and a tracepoint
// is not a function.
std::vector<Frame> ProbeSource::Impl::FramesOf(const xpu_probe_hit& raw) const {
  const UserProbe* user_probe = user_probes_.Of(raw.probe);
  const std::span<const Frame> walk = stack_.frames();
  if (user_probe == nullptr) return FramesFromCaller(walk, raw.caller);
  if (user_probe->is_return() || user_probe->kind == ProbeKind::kTracepoint) {
    return {walk.begin(), walk.end()};
  }
  // Inside a function the return address is not at the stack pointer.
  const bool at_entry = user_probe->kind == ProbeKind::kUprobe && user_probe->offset == 0;
  return FramesFromCaller(walk, at_entry ? raw.caller : 0);
}

void ProbeSource::Impl::TakeHit(std::span<const std::byte> bytes) {
  if (bytes.size() < offsetof(xpu_probe_hit, stack.frames)) return;
  const auto& raw = *reinterpret_cast<const xpu_probe_hit*>(bytes.data());
  ++taken_;
  pids_.insert(raw.pid);
  ProbeHit hit;
  hit.time_ns = raw.time_ns;
  hit.probe = raw.probe;
  hit.is_return = raw.is_return != 0;
  hit.pid = raw.pid;
  hit.tid = raw.tid;
  hit.cpu = raw.cpu;
  hit.kernel = raw.kernel;
  hit.return_value = raw.return_value;
  if (!hit.is_return || user_probes_.Of(raw.probe) != nullptr) {
    stack_.Take(raw.stack, bytes.size() - offsetof(xpu_probe_hit, stack));
    stack_.CountLosses(sink_->losses(), raw.pid);
    hit.python_stack = TakePython(unwinder_, raw.stack,
                                  bytes.size() - offsetof(xpu_probe_hit, stack), raw.pid, *sink_);
    hit.stack = sink_->Intern(FramesOf(raw));
    hit.stack_flags = stack_.flags();
  }
  sink_->Write(hit);
}

void ProbeSource::Impl::CountLosses(EventSink& sink) {
  const auto counters = ReadCounters(program_->maps.counters);
  const uint64_t dropped = counters[XPU_PROBE_HITS_DROPPED];
  sink.losses().Add(LossKind::kProbeRingFull, dropped - std::exchange(dropped_counted_, dropped));
  const uint64_t unmarked = counters[XPU_TASKS_UNMARKED];
  sink.losses().Add(LossKind::kProbeNotPlaced,
                    unmarked - std::exchange(unmarked_counted_, unmarked), 0, {},
                    "a child of the program could not be marked: the kernel is out of memory");
}

void ProbeSource::Impl::CountOutlived(EventSink& sink) const {
  for (const uint32_t pid : pids_) {
    if (pid == 0 || ::kill(static_cast<pid_t>(pid), 0) != 0) continue;
    sink.losses().Add(LossKind::kProcessOutlived, 1, pid, {}, Format("process {}", pid));
  }
}

std::string ProbeSource::Impl::HitsText() const {
  const auto counters = ReadCounters(program_->maps.counters);
  return Format("{}: {} hits, {} recorded, {} dropped\n",
                sees_launches_ ? "launch probes" : "probes", counters[XPU_PROBE_HITS_SEEN], taken_,
                counters[XPU_PROBE_HITS_DROPPED]);
}

void ProbeSource::Impl::OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) {
  const std::string& path = processes_->file(mapping.file).path;
  if (!sees_launches_ || !IsCudaLibrary(path)) return;
  mapped_.push_back({pid, path, Format("{:x}-{:x}", start, mapping.end)});
}

Status ProbeSource::Impl::Open(const RecordOptions& options, const Scope& scope,
                               const std::vector<std::string>& environment,
                               const Unwinder* unwinder) {
  verbose_ = options.verbose;
  sees_launches_ = UsesLaunchProbes(options);
  XPU_RETURN_IF_ERROR(CheckUserProbes(options.probes));
  XPU_RETURN_IF_ERROR(Load(options, scope, unwinder));
  XPU_RETURN_IF_ERROR(AttachUserProbes(options, environment));
  if (!sees_launches_) return Ok();
  XPU_RETURN_IF_ERROR(AddNamed(options.cuda_libraries));
  const std::string program = options.command.empty() ? "" : options.command.front();
  AddForeseen(FindCudaLibraries(program, environment));
  if (verbose_) std::fprintf(stderr, "launch probes: %s\n", ForTerminal(Describe()).c_str());
  return Ok();
}

void ProbeSource::Impl::Drain(EventSink& sink) {
  AddMapped(sink);
  WriteDefinitions(sink);
  sink_ = &sink;
  ring_->Drain();
}

// Describes how the probes are attached and which functions were found, for -v.
std::string ProbeSource::Impl::Describe() const {
  std::string text = at_once_ ? "all of a file at once" : "one by one";
  std::map<std::string, int> functions;
  for (const ProbedFunction& probe : files_->probes()) ++functions[probe.path];
  for (const auto& [path, count] : functions) AppendFormat(text, "; {} in {}", count, path);
  return text;
}

ProbeSource::ProbeSource(SourceContext& context, std::unique_ptr<Impl> impl)
    : context_(context), impl_(std::move(impl)) {}
ProbeSource::~ProbeSource() = default;

Result<std::unique_ptr<Source>> ProbeSource::Open(SourceContext& context) {
  if (!UsesProbes(context.options)) return std::unique_ptr<Source>();
  auto impl = std::make_unique<Impl>(&context.processes);
  XPU_RETURN_IF_ERROR(
      impl->Open(context.options, context.scope, context.environment, context.unwinder.get()));
  context.processes.AddListener(impl.get());
  return std::unique_ptr<Source>(new ProbeSource(context, std::move(impl)));
}

Result<std::string> ProbeSource::Try(const RecordOptions& options,
                                     const std::vector<std::string>& environment) {
  Impl impl(nullptr);
  XPU_RETURN_IF_ERROR(impl.Open(options, {}, environment, nullptr));
  return impl.Describe();
}

Status ProbeSource::Arm() {
  return context_.scope.is_program() ? impl_->Arm(context_.scope.program) : Ok();
}

void ProbeSource::Switch(const SwitchState& wanted) {
  __atomic_store_n(&impl_->program_->bss->paused, wanted.is_on ? 0 : 1, __ATOMIC_RELAXED);
}

void ProbeSource::Drain(EventSink& sink) { impl_->Drain(sink); }

void ProbeSource::CountLosses(EventSink& sink) { impl_->CountLosses(sink); }

void ProbeSource::Stop(EventSink& sink, bool may_go_on) {
  Drain(sink);
  impl_->user_probes_.RemoveAll();
  impl_->files_->RemoveAll();
  impl_->mapped_.clear();
  Drain(sink);
  CountLosses(sink);
  if (!may_go_on) impl_->CountOutlived(sink);
  if (impl_->verbose_) std::fputs(impl_->HitsText().c_str(), stderr);
}

}  // namespace xpu
