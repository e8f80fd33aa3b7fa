#include "record/gpu/gpu_source.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/environment.h"
#include "record/gpu/inject_library.h"
#include "record/kernel/capabilities.h"
#include "record/kernel/own_limits.h"

namespace xpu {
namespace {

constexpr size_t kMaxInstances = size_t{1} << 20;
constexpr uint64_t kTableSpace = uint64_t{1} << 20;  // the size of the arena is a multiple of it
// A program may unload the library and load it again, so a process can have several peers.
constexpr ptrdiff_t kMaxPeersOfProcess = 16;

// Each peer has two open descriptors.
size_t MaxPeers() {
  constexpr size_t kMost = 4096;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMost;
  return std::min<size_t>(limit.rlim_cur / 4, kMost);
}

// Only one tool can set the variable: returns its value if another tool has set it. The value of an
// outer xpu-record does not count; the inner one replaces it.
std::optional<std::string> ValueOfAnotherTool(const std::vector<std::string>& environment,
                                              const char* variable) {
  auto value = FindVariable(environment, variable);
  if (!value || value->empty() || FindVariable(environment, wire::kEnvironmentVariable)) {
    return std::nullopt;
  }
  return value;
}

Status CheckVariableIsFree(const std::vector<std::string>& environment) {
  const auto value = ValueOfAnotherTool(environment, kInjectionVariable);
  if (!value) return Ok();
  return Error{ErrorKind::kUsage,
               Format("{} is already set, to {}: another tool wants to be loaded into the program",
                      kInjectionVariable, *value),
               Format("unset {}, or record with --yield-cupti", kInjectionVariable)};
}

bool TakesNvtx(const RecordOptions& options, const std::vector<std::string>& environment) {
  if (!options.record_nvtx) return false;
  if (!ValueOfAnotherTool(environment, kNvtxVariable)) return true;
  if (!options.quiet) {
    std::fprintf(stderr, "xpu-record: %s is already set: NVTX ranges are not recorded\n",
                 kNvtxVariable);
  }
  return false;
}

uint32_t ControlSettings(const RecordOptions& options) {
  const ControlOptions& control = options.control;
  uint32_t settings = 0;
  if (control.CanPause()) settings |= wire::kSettingPauses;
  // At its end the recording is paused until the libraries have sent everything.
  if (control.CanEndEarly() || options.attach) {
    settings |= wire::kSettingPauses | wire::kSettingMayEnd;
  }
  if (!control.capture_range) return settings;
  return settings | (control.capture_range->is_profiler_api ? wire::kSettingProfilerApi
                                                            : wire::kSettingNvtxRange);
}

Error NoRangesOfNvtx() {
  return Error{
      ErrorKind::kUsage,
      Format("--capture-range: {} is already set, to another tool's library", kNvtxVariable),
      Format("unset {}", kNvtxVariable)};
}

// The path must be absolute: the program may change its directory before CUDA starts.
Result<std::string> AbsolutePath(const std::string& path) {
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr || ::access(resolved, R_OK) != 0) {
    return SystemError(Format("--cupti-lib {}", path), errno,
                       "name the libcupti.so of a CUDA Toolkit or of a Python package; without "
                       "--cupti-lib xpu-record searches for it");
  }
  return std::string(resolved);
}

// The timings of the marker's offsets, for -v.
std::string MarkerText(const LaunchSource& launches) {
  std::string text = Format("launch marker: probe at +{};", launches.chosen_offset());
  for (const MarkerTiming& timing : launches.timings()) {
    AppendFormat(text, " +{}: {:.0f} ns per hit;", timing.offset, timing.hit_ns);
  }
  text.back() = '\n';
  return text;
}

// Returns nullptr if memfds cannot be sealed here and launch stacks can come from the marker.
Result<std::unique_ptr<SharedTables>> OpenArena(const RecordOptions& options) {
  if (!UsesInlineStacks(options)) return std::unique_ptr<SharedTables>();
  // In a limited address space the arena gets a quarter of what is free; the rest is for everything
  // else.
  const uint64_t most = std::min(FreeAddressBytes() / 4, LargestFileBytes());
  auto arena =
      TableArena::Create(std::min(TableArena::kDefaultBytes, most / kTableSpace * kTableSpace));
  if (arena.ok()) return std::make_unique<SharedTables>(*std::move(arena), nullptr);
  if (options.launch_stacks == LaunchStacks::kInline) return std::move(arena).error();
  return std::unique_ptr<SharedTables>();
}

}  // namespace

Result<std::unique_ptr<Source>> GpuSource::Open(SourceContext& context) {
  const RecordOptions& options = context.options;
  if (!options.record_gpu || !options.inject) return std::unique_ptr<Source>();
  if (!options.attach) XPU_RETURN_IF_ERROR(CheckVariableIsFree(context.environment));
  XPU_ASSIGN_OR_RETURN(std::string library, FindInjectLibrary());
  XPU_ASSIGN_OR_RETURN(std::unique_ptr<SharedTables> tables, OpenArena(options));
  const bool graph_nodes = options.graph_trace == GraphTraceMode::kNode;
  const bool nvtx = TakesNvtx(options, context.environment);
  XPU_ASSIGN_OR_RETURN(
      InjectServer server,
      InjectServer::Listen(
          (graph_nodes ? wire::kSettingGraphNodes : 0) |
          (tables != nullptr ? wire::kSettingInlineStacks : 0) | (nvtx ? wire::kSettingNvtx : 0) |
          (options.record_memory ? wire::kSettingMemory : 0) |
          (options.gpu_samples.is_on ? wire::kSettingGpuSamples : 0) | ControlSettings(options)));
  server.SetDeviceBuffers(context.device_buffers);
  server.SetHang(context.hang_ns);
  server.SetSampling(options.gpu_samples.period_bits, options.gpu_samples.buffer_bytes);
  const std::optional<CaptureRange>& range = options.control.capture_range;
  if (range && !range->is_profiler_api) {
    if (!nvtx) return NoRangesOfNvtx();
    server.SetCaptureRange(range->name, range->any_domain ? "*" : range->domain);
  }
  if (tables != nullptr) server.ShareArena(tables->arena().memfd(), tables->arena().bytes());
  std::unique_ptr<GpuSource> source(new GpuSource(context, std::move(server)));
  source->library_ = std::move(library);
  source->shared_tables_ = std::move(tables);
  source->paused_ = options.control.UserStartsPaused();
  source->SetGates();
  context.stacks_are_inline = source->shared_tables_ != nullptr;
  if (!options.cupti_library.empty()) {
    XPU_ASSIGN_OR_RETURN(source->cupti_library_, AbsolutePath(options.cupti_library));
  }
  if (!options.attach) source->SetVariables(nvtx);
  return std::unique_ptr<Source>(std::move(source));
}

// By which the driver, and NVTX, load the library into the program.
void GpuSource::SetVariables(bool nvtx) {
  std::vector<std::string>& environment = context_.environment;
  SetVariable(environment, kInjectionVariable, library_);
  if (nvtx) SetVariable(environment, kNvtxVariable, library_);
  SetVariable(environment, wire::kEnvironmentVariable, server_.EnvironmentValue());
  if (!cupti_library_.empty()) SetVariable(environment, wire::kCuptiLibVariable, cupti_library_);
}

Status GpuSource::Arm() {
  if (!context_.has_task_records) {
    tracker_.emplace(context_.processes);
  } else if (context_.scope.is_program()) {
    unreached_ = std::make_unique<UnreachedProcesses>(
        context_.processes,
        UnreachedProcesses::Expected{.library = library_,
                                     .connection_string = server_.EnvironmentValue()});
  }
  if (shared_tables_ != nullptr) shared_tables_->SetTables(context_.tables.get());
  if (context_.options.attach) {
    attached_ = std::make_unique<AttachedProcesses>(
        context_.processes, server_,
        AttachTarget{
            .library = library_, .session = server_.session(), .cupti_library = cupti_library_},
        !context_.options.whole_system);
  }
  if (shared_tables_ != nullptr || context_.options.launch_stacks == LaunchStacks::kNone) {
    return Ok();
  }
  return OpenMarker();
}

std::vector<int> GpuSource::fds() const {
  std::vector<int> fds = {server_.fd()};
  if (attached_) fds.push_back(attached_->fd());
  return fds;
}

bool GpuSource::IsStarting() const {
  if (!attached_) return false;
  return attached_->IsBusy() || server_.IsExpecting() ||
         std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) {
           return !peer->has_cuda() && !peer->waits_for_gpu() && !peer->HasEnded();
         });
}

void GpuSource::UpdateAttached(EventSink& sink) {
  attached_->Update(sink);
  const std::string failures = attached_->TakeFailures();
  if (!context_.options.quiet) std::fputs(ForTerminal(failures).c_str(), stderr);
  const std::string news = attached_->TakeNews();
  if (context_.options.verbose) std::fputs(ForTerminal(news).c_str(), stderr);
}

int GpuSource::DrainIntervalMs(uint64_t /*now_ns*/) const {
  constexpr int kForRanges = 1, kForQuestions = 5;
  if (context_.options.control.capture_range) return kForRanges;
  // Libraries cannot wake the recorder for their questions, which wait in the rings.
  return context_.unwinder ? kForQuestions : kUsualIntervalMs;
}

Status GpuSource::OpenMarker() {
  marker_tried_ = true;
  XPU_ASSIGN_OR_RETURN(LaunchSource launches,
                       LaunchSource::Open(library_, server_.session(), context_.unwinder.get()));
  launches_.emplace(std::move(launches));
  if (context_.options.verbose) std::fputs(MarkerText(*launches_).c_str(), stderr);
  return Ok();
}

// Opens the marker for a process that cannot take its stacks itself. Its earlier launches have no
// stacks.
void GpuSource::UseMarker(GpuPeer& peer) {
  if (!peer.marker_used() || marker_tried_ || context_.options.launch_stacks != LaunchStacks::kAuto)
    return;
  const Status opened = OpenMarker();
  if (!opened.ok() && context_.options.verbose) {
    std::fprintf(stderr, "launch marker: %s\n", ForTerminal(opened.error()).c_str());
  }
}

// Why a new peer must be refused. A program could send any identity, and any number of them.
std::string GpuSource::Objection(pid_t pid, uint64_t instance) const {
  const auto is_of = [&](const auto& peer) { return peer->pid() == static_cast<uint32_t>(pid); };
  const auto of_process = std::count_if(peers_.begin(), peers_.end(), is_of);
  if (instance == 0 || instances_.contains(instance))
    return "it claims the identity of another process";
  if (instances_.size() >= kMaxInstances) {
    return Format("more than {} CUDA processes", kMaxInstances);
  }
  if (peers_.size() + ended_.size() >= MaxPeers()) {
    return Format("more than {} CUDA processes at once", MaxPeers());
  }
  if (of_process >= kMaxPeersOfProcess) return "it loaded the library too many times";
  return {};
}

void GpuSource::AcceptPeers(EventSink& sink) {
  InjectArrivals arrivals = server_.Accept(
      MonotonicNs(), [this](pid_t pid, uint64_t instance) { return Objection(pid, instance); });
  const InlineStacks::Settings stacks{
      .tables = shared_tables_.get(),
      .processes = &context_.processes,
      .tracker = tracker_ ? &*tracker_ : nullptr,
      .python = context_.options.walk_python ? &python_files_ : nullptr};
  for (InjectPeer& peer : arrivals.peers) {
    ++reports_.connected[static_cast<uint32_t>(peer.pid)];
    // One that was attached to is known; nor has it begun a new program.
    if (tracker_ && !peer.is_attached) tracker_->Observe(static_cast<uint32_t>(peer.pid), sink);
    if (!instances_.insert(peer.instance).second) continue;  // claimed twice in one round
    peers_.push_back(std::make_unique<GpuPeer>(std::move(peer), sink, stacks, memory_));
    peers_.back()->SetGate(Gate(!in_range_.empty()));
  }
  for (const InjectRefusal& refusal : arrivals.refusals) CountRefusal(refusal, sink);
}

void GpuSource::CountRefusal(const InjectRefusal& refusal, EventSink& sink) {
  const auto pid = static_cast<uint32_t>(refusal.pid);
  ++reports_.connected[pid];
  ++reports_.refused[pid];
  sink.losses().Add(LossKind::kProcessNotReached, 1, pid, {},
                    Format("process {}: {}", pid, refusal.reason));
}

// Once the library holds CUPTI, any further client is another profiler.
void GpuSource::WatchCupti(GpuPeer& peer) {
  const std::string path = peer.TakeHeldCupti();
  if (path.empty() || context_.options.launch_stacks == LaunchStacks::kNone) return;
  if (!std::exchange(watch_tried_, true) && MissingCapabilities(EffectiveCapabilities()).empty()) {
    auto watch = CuptiWatch::Open();
    if (watch.ok()) cupti_watch_.emplace(*std::move(watch));
  }
  if (!cupti_watch_) return;
  const Status watched = cupti_watch_->Watch(static_cast<pid_t>(peer.pid()), path);
  if (!watched.ok() && context_.options.verbose) {
    std::fprintf(stderr, "process %u: %s\n", peer.pid(), ForTerminal(watched.error()).c_str());
  }
}

void GpuSource::FinishPeer(GpuPeer& peer, EventSink& sink, GpuPeer::End end) {
  peer.Finish(sink, end);
  server_.HangUp(peer.instance().value);
  if (peer.has_cuda()) ++reports_.started_cuda[peer.pid()];
  FollowRange(peer);
  SetRange(peer, MonotonicNs(), false, "end of a process");
  if (cupti_watch_) {
    sink.losses().Add(LossKind::kOtherProfilerRefused,
                      cupti_watch_->Refusals(static_cast<pid_t>(peer.pid())), peer.pid(),
                      peer.instance(), Format("process {}", peer.pid()));
  }
  if (tracker_ && end == GpuPeer::End::kOfProcess) tracker_->ObserveEnd(peer.pid(), sink);
  if (peer.markers() > 0) {
    markers_[peer.instance()] = {peer.pid(), peer.markers(), peer.marker_reason()};
  }
  if (peer.leaves()) instances_.erase(peer.instance().value);
  sink.Forget(peer.instance());
  std::erase_if(sampled_gpus_, [&](const auto& gpu) { return gpu.second == peer.instance(); });
}

void GpuSource::ReportHang(GpuPeer& peer) {
  const std::string text = peer.TakeHang();
  if (text.empty()) return;
  context_.hanging.push_back(peer.pid());
  if (context_.options.quiet) return;
  std::fprintf(stderr, "xpu-record: process %u: %s\n", peer.pid(), ForTerminal(text).c_str());
}

// A process may create several contexts on a GPU.
void GpuSource::AnswerClaim(GpuPeer& peer) {
  if (peer.claimed_gpu().empty()) return;
  const auto claimed = sampled_gpus_.try_emplace(peer.claimed_gpu(), peer.instance()).first;
  peer.AnswerClaim(claimed->second == peer.instance());
}

// Returns false while stacks of an ended process still wait for tables.
bool GpuSource::FinishStacks(GpuPeer& peer, EventSink& sink) {
  peer.stacks().Update(sink);
  return !peer.stacks().waits();
}

void GpuSource::Drain(EventSink& sink) {
  if (attached_) UpdateAttached(sink);
  AcceptPeers(sink);
  std::erase_if(ended_, [&](auto& peer) { return FinishStacks(*peer, sink); });
  const bool has_tables = !launches_ || !context_.unwinder || context_.unwinder->IsUpToDate();
  std::erase_if(peers_, [&](std::unique_ptr<GpuPeer>& peer) {
    // Tested before draining, so that everything the process wrote before its end is taken.
    const bool process_ended = peer->HasEnded();
    const bool has_left = peer->leaves() && !server_.IsConnected(peer->instance().value);
    const bool ended = process_ended || has_left;
    if (ended) {
      FinishPeer(*peer, sink, process_ended ? GpuPeer::End::kOfProcess : GpuPeer::End::kLeft);
    } else {
      peer->Drain(sink);
      FollowRange(*peer);
      WatchCupti(*peer);
      UseMarker(*peer);
      peer->AnswerForTables(has_tables);
      AnswerClaim(*peer);
    }
    ReportHang(*peer);
    if (const std::string news = peer->TakeNews(); context_.options.verbose) {
      std::fputs(ForTerminal(news).c_str(), stderr);
    }
    if (ended && peer->stacks().waits()) ended_.push_back(std::move(peer));
    return ended;
  });
  if (launches_) launches_->Drain(sink);
  if (const std::string news = unreached_ ? unreached_->TakeNews() : ""; context_.options.verbose) {
    std::fputs(ForTerminal(news).c_str(), stderr);
  }
}

void GpuSource::Switch(const SwitchState& wanted) {
  paused_ = !wanted.user_on;
  if (attached_ && std::exchange(in_programs_, wanted.in_programs) != wanted.in_programs) {
    wanted.in_programs ? attached_->Resume() : attached_->Pause();
  }
  SetGates();
}

void GpuSource::CountLosses(EventSink& sink) {
  if (launches_) launches_->CountLosses(sink);
}

// The library counts every hit of its marker too, so hits that the probe missed are known.
void GpuSource::CountMissingStacks(EventSink& sink) {
  if (context_.options.launch_stacks == LaunchStacks::kNone) return;
  uint64_t dropped = launches_ ? launches_->dropped() : 0;
  for (const auto& [instance, markers] : markers_) {
    const uint64_t seen = launches_ ? launches_->seen(instance) : 0;
    if (markers.count <= seen) continue;
    uint64_t missing = markers.count - seen;
    const uint64_t explained = std::min(missing, dropped);
    dropped -= explained;
    missing -= explained;
    sink.losses().Add(
        LossKind::kLaunchStackMissing, missing, markers.pid, instance,
        markers.reason.empty() ? "" : Format("process {}: {}", markers.pid, markers.reason));
  }
}

// The program has ended and is not delayed, so the last tables are waited for: on a busy machine,
// or from a slow disk, they take a while.
void GpuSource::GiveUpStacks(EventSink& sink) {
  for (auto& peer : peers_) ended_.push_back(std::move(peer));
  peers_.clear();
  std::erase_if(ended_, [&](auto& peer) { return FinishStacks(*peer, sink); });
  constexpr uint64_t kPatienceNs = 5'000'000'000;
  if (!ended_.empty()) shared_tables_->WaitUntil(MonotonicNs() + kPatienceNs);
  for (auto& peer : ended_) peer->stacks().Finish(sink);
  ended_.clear();
}

// Each process handles its own ranges, so its gate depends only on the ranges of others.
uint32_t GpuSource::Gate(bool others_open) const {
  return (paused_ ? wire::kGatePaused : 0) | (others_open ? wire::kGateOthersOpen : 0) |
         (in_programs_ ? 0 : wire::kGateEnds);
}

void GpuSource::SetGates() {
  for (const auto& peer : peers_) {
    peer->SetGate(Gate(in_range_.size() > in_range_.count(peer->instance())));
  }
  server_.SetGate(Gate(!in_range_.empty()));
}

void GpuSource::SetRange(const GpuPeer& peer, uint64_t time_ns, bool is_open, std::string cause) {
  const bool was_open = !in_range_.empty();
  const bool changes =
      is_open ? in_range_.insert(peer.instance()).second : in_range_.erase(peer.instance()) > 0;
  if (!changes) return;
  SetGates();
  if (was_open != !in_range_.empty()) {
    range_changes_.push_back({time_ns, is_open, std::move(cause)});
  }
}

void GpuSource::FollowRange(GpuPeer& peer) {
  const std::optional<CaptureRange>& range = context_.options.control.capture_range;
  for (const GpuPeer::Switch& change : peer.TakeSwitches()) {
    if (!range) continue;
    const std::string of_api = change.is_open ? "cudaProfilerStart" : "cudaProfilerStop";
    SetRange(peer, change.time_ns, change.is_open, range->is_profiler_api ? of_api : range->Text());
  }
}

// Asks the libraries to fetch what CUPTI still holds. Kernels may still run after that.
void GpuSource::FlushPrograms(EventSink& sink) {
  constexpr uint64_t kPatienceNs = 2'000'000'000;
  const uint64_t deadline_ns = MonotonicNs() + kPatienceNs;
  const uint32_t gate = wire::kGatePaused | wire::kGateEnds;
  for (const auto& peer : peers_) {
    peer->SetGate(gate);
    // Such a library leaves when the GPU has finished.
    if (peer->waits_for_gpu()) server_.HangUp(peer->instance().value);
  }
  server_.SetGate(gate);
  const auto is_quiet = [](const auto& peer) { return peer->IsQuiet(); };
  // Programs that were attached to are as fast as before once the library has left CUPTI.
  while ((!std::all_of(peers_.begin(), peers_.end(), is_quiet) || server_.HasAdopted()) &&
         MonotonicNs() < deadline_ns) {
    ::usleep(5000);
    Drain(sink);
  }
}

void GpuSource::Stop(EventSink& sink, bool may_go_on) {
  if (attached_) attached_->Finish(sink, paused_);
  if (may_go_on) FlushPrograms(sink);
  Drain(sink);
  const auto unanswered = server_.GiveUpExpected();
  if (!paused_) {  // a window that never began loses nothing
    for (const InjectRefusal& refusal : unanswered) CountRefusal(refusal, sink);
  }
  // Processes that were killed together with the target may need a moment to end.
  constexpr uint64_t kPatienceNs = 200'000'000;
  const uint64_t deadline_ns = MonotonicNs() + (may_go_on ? 0 : kPatienceNs);
  const auto otherwise = may_go_on ? GpuPeer::End::kLeft : GpuPeer::End::kOutlived;
  for (const auto& peer : peers_) {
    const uint64_t now_ns = MonotonicNs();
    const uint64_t left_ns = deadline_ns - std::min(now_ns, deadline_ns);
    const bool ended = peer->HasEnded(static_cast<int>(left_ns / 1'000'000));
    FinishPeer(*peer, sink, ended ? GpuPeer::End::kOfProcess : otherwise);
  }
  GiveUpStacks(sink);
  if (launches_) launches_->Drain(sink);
  CountLosses(sink);
  CountMissingStacks(sink);
  if (unreached_) unreached_->Finish(sink, reports_);
}

}  // namespace xpu
