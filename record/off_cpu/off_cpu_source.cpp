#include "record/off_cpu/off_cpu_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <linux/membarrier.h>
#include <off_cpu.skel.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/scheduler_times.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/kernel/bpf_support.h"
#include "record/kernel/kernel_features.h"
#include "record/kernel/probe_links.h"
#include "record/off_cpu/remote_stacks.h"
#include "record/process/watched_processes.h"
#include "record/symbols/kernel_symbols.h"
#include "record/unwind/stack_frames.h"
#include "record/unwind/unwinder.h"

namespace xpu {
namespace {

static_assert(static_cast<int>(OffCpuState::kBlocked) == XPU_OFF_CPU_BLOCKED);
static_assert(static_cast<int>(OffCpuState::kUninterruptible) == XPU_OFF_CPU_UNINTERRUPTIBLE);
static_assert(static_cast<int>(OffCpuState::kPreempted) == XPU_OFF_CPU_PREEMPTED);
static_assert(static_cast<int>(OffCpuState::kCreated) == XPU_OFF_CPU_CREATED);
static_assert(static_cast<int>(OffCpuState::kRunning) == XPU_OFF_CPU_RUNNING);
static_assert(static_cast<int>(OffCpuState::kStopped) == XPU_OFF_CPU_STOPPED);
static_assert(static_cast<int>(OffCpuWaker::kThread) == XPU_WAKER_THREAD);
static_assert(static_cast<int>(OffCpuWaker::kInterrupt) == XPU_WAKER_INTERRUPT);

// The stack of a waking thread is taken for waits that are so many times as long as the minimum: it
// costs as much as that of the wait.
constexpr uint64_t kWakerFactor = 10;

// Returns when all BPF programs that are running on other CPUs have ended.
void WaitForPrograms() { ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0); }

// Since Linux 6.16.
bool HasSchedulerExit() {
  return MayUse(KernelFeature::kSchedulerExit) &&
         libbpf_find_vmlinux_btf_id("sched_exit_tp", BPF_TRACE_RAW_TP) > 0;
}

// Where the stacks of waits are taken.
void ChooseEndOfWait(off_cpu_bpf& program) {
  const bool at_scheduler_exit = HasSchedulerExit();
  program.rodata->has_scheduler_exit = at_scheduler_exit;
  bpf_program__set_autoload(program.progs.take_stack_after_switch, at_scheduler_exit);
  bpf_program__set_autoload(program.progs.take_stack_of_wait, !at_scheduler_exit);
}

// How often the kernel did not run one of the programs because it interrupted itself.
uint64_t EventsMissed(bpf_object* object) {
  uint64_t missed = 0;
  bpf_program* program = nullptr;
  while ((program = bpf_object__next_program(object, program)) != nullptr) {
    bpf_prog_info info{};
    uint32_t bytes = sizeof(info);
    if (bpf_program__fd(program) < 0) continue;  // not loaded
    if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes) == 0) {
      missed += info.recursion_misses;
    }
  }
  return missed;
}

// How often a thread has run; 0: the kernel does not count that.
uint64_t RunCount(uint32_t pid, uint32_t tid) {
  return ReadSchedulerTimes(Format("/proc/{}/task/{}", pid, tid)).runs;
}

// What was added to a sum. The kernel's programs change sums while they are read, so one may be
// less than before.
xpu_off_cpu_sum Since(const xpu_off_cpu_sum& before, const xpu_off_cpu_sum& now) {
  const auto added = [](uint64_t from, uint64_t to) { return to - std::min(from, to); };
  return {.count = added(before.count, now.count),
          .duration_ns = added(before.duration_ns, now.duration_ns),
          .ready_ns = added(before.ready_ns, now.ready_ns)};
}

uint64_t ReadyNs(const xpu_off_cpu_wait& wait) {
  if (wait.state == XPU_OFF_CPU_PREEMPTED || wait.state == XPU_OFF_CPU_CREATED) {
    return wait.start_ns;
  }
  return wait.ready_ns == 0 ? wait.end_ns : std::clamp(wait.ready_ns, wait.start_ns, wait.end_ns);
}

// An event of the ring as its type; nullptr if the event is too short.
template <typename Event>
const Event* As(std::span<const std::byte> bytes, size_t least_bytes = sizeof(Event)) {
  return bytes.size() < least_bytes ? nullptr : reinterpret_cast<const Event*>(bytes.data());
}

}  // namespace

class OffCpuSource::Impl {
 public:
  explicit Impl(const SourceContext& context)
      : stack_(KernelStackLimit()),
        unwinder_(context.unwinder.get()),
        remote_stacks_(context.processes, context.tables.get()) {}

  Status Open(const SourceContext& context);
  // Only for ListWaits.
  Status OpenList(const SourceContext& context);
  // Records where the threads of the process wait now.
  Status ListWaits(uint32_t pid);
  void Switch(bool on);
  void Drain(EventSink& sink);
  // Writes the sums so far.
  void WriteSums(EventSink& sink);
  // Takes what is left. Nothing is recorded from then on.
  void Stop(EventSink& sink);
  void CountLosses(LossLedger& losses, bool is_over);

 private:
  struct Stacks {
    StackId native;
    StackId python;
    uint8_t flags = 0;
  };

  Status Load(const SourceContext& context, bool only_lists = false);
  Status OpenRings();
  Status Attach(bpf_program* program);
  // Runs a program for each thread of the system.
  Status ForEachThread(bpf_program* program) const;
  void Take(std::span<const std::byte> bytes);
  void TakeWait(std::span<const std::byte> bytes);
  void TakeWake(std::span<const std::byte> bytes);
  void TakeTotals(std::span<const std::byte> bytes);
  // `bytes`: of an event from its stack on.
  Stacks TakeStack(std::span<const std::byte> bytes, uint32_t pid);
  // Those of stack_, without what the kernel does after the thread has stopped: the scheduler, and
  // what runs our program there.
  std::span<const Frame> FramesOfWait() const;
  // Of a thread that did not run: with the user stack that is there now.
  Stacks TakeRemoteStack(const xpu_off_cpu_wait& wait, std::span<const std::byte> bytes);
  void CountStacks(std::span<const std::byte> bytes, uint32_t pid);
  // The thread at whose futex pthread_join waits; 0: none.
  uint32_t ThreadThatEnds(uint32_t pid, uint64_t futex) const;

  Handle<off_cpu_bpf, off_cpu_bpf::destroy> program_;
  std::vector<BpfLink> links_;
  std::unique_ptr<BpfRing> ring_;
  std::unique_ptr<BpfRing> totals_;
  StackFrames stack_;
  KernelFunction scheduler_;
  const Unwinder* unwinder_;
  RemoteStacks remote_stacks_;
  // By the woken thread; their waits follow.
  std::unordered_map<uint32_t, std::vector<std::byte>> wakes_;
  // What has been written of the sums of threads that have not ended.
  std::unordered_map<uint32_t, xpu_off_cpu_totals> written_;
  EventSink* sink_ = nullptr;  // valid during Drain
  uint64_t recorded_ = 0;
  uint64_t summed_ = 0;
  uint64_t dropped_counted_ = 0;
  uint64_t unsummed_counted_ = 0;
  uint64_t wakers_counted_ = 0;
  uint64_t threads_counted_ = 0;
  uint64_t events_counted_ = 0;
};

Status OffCpuSource::Impl::Load(const SourceContext& context, bool only_lists) {
  XPU_ASSIGN_OR_RETURN(const PidNamespace pid_namespace, OwnPidNamespace());
  program_.reset(off_cpu_bpf::open());
  if (!program_) return BpfError("BPF program off_cpu: open", -errno);
  program_->rodata->pid_namespace_device = pid_namespace.device;
  program_->rodata->pid_namespace_inode = pid_namespace.inode;
  program_->rodata->minimum_ns = context.options.off_cpu_min_ns;
  program_->rodata->waker_minimum_ns = kWakerFactor * context.options.off_cpu_min_ns;
  auto kallsyms = ReadFile("/proc/kallsyms");
  if (kallsyms.ok()) {
    scheduler_ = FindKernelFunction(*kallsyms, "__schedule");
    const KernelFunction entry = FindKernelFunction(*kallsyms, "asm_exc_page_fault");
    program_->rodata->page_fault_entry = entry.begin;
    program_->rodata->page_fault_entry_end = entry.end;
  }
  ChooseEndOfWait(*program_);
  for (bpf_program* one = nullptr;
       only_lists && (one = bpf_object__next_program(program_->obj, one)) != nullptr;) {
    bpf_program__set_autoload(one, one == program_->progs.list_wait);
  }
  XPU_RETURN_IF_ERROR(UseUnwinder(*program_, unwinder_));
  XPU_RETURN_IF_ERROR(WatchOnly(*program_, context.scope));
  const int result = off_cpu_bpf::load(program_.get());
  return result == 0 ? Ok() : Status(BpfError("BPF program off_cpu: load", result));
}

Status OffCpuSource::Impl::Attach(bpf_program* program) {
  BpfLink link(bpf_program__attach(program));
  if (!link) return BpfError("BPF program off_cpu: attach to context switches", -errno);
  links_.push_back(std::move(link));
  return Ok();
}

Status OffCpuSource::Impl::ForEachThread(bpf_program* program) const {
  const BpfLink link(bpf_program__attach_iter(program, nullptr));
  if (!link) return BpfError("BPF program off_cpu: attach to the list of threads", -errno);
  const UniqueFd list(bpf_iter_create(bpf_link__fd(link.get())));
  if (!list) return BpfError("BPF program off_cpu: list threads", -errno);
  std::array<char, 256> output;  // the programs write none
  while (::read(list.get(), output.data(), output.size()) > 0) continue;
  return Ok();
}

Status OffCpuSource::Impl::OpenList(const SourceContext& context) {
  XPU_RETURN_IF_ERROR(Load(context, true));
  return OpenRings();
}

Status OffCpuSource::Impl::ListWaits(uint32_t pid) {
  program_->bss->listed_pid = pid;
  return ForEachThread(program_->progs.list_wait);
}

Status OffCpuSource::Impl::OpenRings() {
  XPU_ASSIGN_OR_RETURN(BpfRing ring,
                       BpfRing::Open(program_->maps.off_cpu_events,
                                     [this](std::span<const std::byte> bytes) { Take(bytes); }));
  ring_ = std::make_unique<BpfRing>(std::move(ring));
  XPU_ASSIGN_OR_RETURN(BpfRing totals, BpfRing::Open(program_->maps.off_cpu_totals,
                                                     [this](std::span<const std::byte> bytes) {
                                                       TakeTotals(bytes);
                                                     }));
  totals_ = std::make_unique<BpfRing>(std::move(totals));
  return Ok();
}

Status OffCpuSource::Impl::Open(const SourceContext& context) {
  XPU_RETURN_IF_ERROR(Load(context));
  XPU_RETURN_IF_ERROR(OpenRings());
  const auto& programs = program_->progs;
  if (context.scope.is_program()) {
    XPU_RETURN_IF_ERROR(Attach(programs.inherit_mark));
    XPU_RETURN_IF_ERROR(MarkProgram(bpf_map__fd(program_->maps.recorded), context.scope.program));
  }
  XPU_RETURN_IF_ERROR(Attach(programs.begin_program));
  XPU_RETURN_IF_ERROR(Attach(programs.begin_thread));
  if (!context.scope.is_program())
    XPU_RETURN_IF_ERROR(ForEachThread(programs.follow_running_thread));
  XPU_RETURN_IF_ERROR(Attach(program_->rodata->has_scheduler_exit ? programs.take_stack_after_switch
                                                                  : programs.take_stack_of_wait));
  XPU_RETURN_IF_ERROR(Attach(programs.note_waker));
  XPU_RETURN_IF_ERROR(Attach(programs.off_cpu_switch));
  // Before its exec the program is ignored.
  Switch(!context.scope.starts_paused);
  return Ok();
}

void OffCpuSource::Impl::Switch(bool on) {
  auto& state = *program_->bss;
  if (on == (state.is_on != 0)) return;
  (on ? state.on_since_ns : state.off_since_ns) = MonotonicNs();
  __atomic_store_n(&state.is_on, on, __ATOMIC_RELEASE);
  if (on) return;
  WaitForPrograms();
  // Without it, times that have not ended are missing, which the totals show.
  (void)ForEachThread(program_->progs.end_thread);
  __atomic_store_n(&state.off_since_ns, 0, __ATOMIC_RELEASE);
}

void OffCpuSource::Impl::Drain(EventSink& sink) {
  sink_ = &sink;
  ring_->Drain();
  totals_->Drain();
}

void OffCpuSource::Impl::WriteSums(EventSink& sink) {
  (void)ForEachThread(program_->progs.report_sums);
  Drain(sink);
}

void OffCpuSource::Impl::Stop(EventSink& sink) {
  Switch(false);
  // Nothing is learned of threads that end once the programs are detached.
  WriteSums(sink);
  links_.clear();
  WaitForPrograms();
  Drain(sink);
  program_->bss->is_over = 1;
  (void)ForEachThread(program_->progs.end_thread);
  Drain(sink);
  CountLosses(sink.losses(), true);
}

void OffCpuSource::Impl::Take(std::span<const std::byte> bytes) {
  uint32_t event = 0;
  if (bytes.size() < sizeof(event)) return;
  std::memcpy(&event, bytes.data(), sizeof(event));
  if (event == XPU_OFF_CPU_WAIT) TakeWait(bytes);
  if (event == XPU_OFF_CPU_WAKE) TakeWake(bytes);
}

OffCpuSource::Impl::Stacks OffCpuSource::Impl::TakeStack(std::span<const std::byte> bytes,
                                                         uint32_t pid) {
  const auto& raw = *reinterpret_cast<const xpu_stack*>(bytes.data());
  Stacks stacks;
  stack_.Take(raw, bytes.size());
  stacks.flags = stack_.flags();
  // Taken before the native stack, because it writes definitions.
  stacks.python = TakePython(unwinder_, raw, bytes.size(), pid, *sink_);
  stacks.native = sink_->Intern(FramesOfWait());
  return stacks;
}

std::span<const Frame> OffCpuSource::Impl::FramesOfWait() const {
  const std::span<const Frame> frames = stack_.frames();
  const auto scheduler = std::find_if(frames.begin(), frames.end(), [&](const Frame& frame) {
    return frame.kind == FrameKind::kKernel && scheduler_.Contains(frame.address);
  });
  return scheduler == frames.end() ? frames : std::span(std::next(scheduler), frames.end());
}

void OffCpuSource::Impl::CountStacks(std::span<const std::byte> bytes, uint32_t pid) {
  stack_.Take(*reinterpret_cast<const xpu_stack*>(bytes.data()), bytes.size());
  stack_.CountLosses(sink_->losses(), pid);
}

OffCpuSource::Impl::Stacks OffCpuSource::Impl::TakeRemoteStack(const xpu_off_cpu_wait& wait,
                                                               std::span<const std::byte> bytes) {
  RemoteStacks::Stack stack =
      remote_stacks_.Take(wait.pid, {.ip = wait.ip, .sp = wait.sp, .bp = wait.bp});
  Stacks stacks;
  // Taken before the native stack, because it writes definitions.
  PythonStacks* python = unwinder_ != nullptr ? unwinder_->python() : nullptr;
  if (python != nullptr) stacks.python = python->TakeRemote(wait.pid, wait.own_tid, *sink_);
  if (RunCount(wait.pid, wait.tid) != wait.run_count) {
    // The thread has gone on, so these are not the frames in which it waited.
    stack = {.frames = {}, .walk = {.flags = 0, .stop = XPU_STOP_UNREADABLE}};
    stacks.python = {};
  }
  CountStop(stack.walk, sink_->losses(), wait.pid);
  stacks.flags = StackFlagsOf(stack.walk);
  if (stack.frames.empty() && stack.walk.stop != XPU_STOP_NO_STACK) {
    stacks.flags |= kStackUserFailed;
  }
  stack_.Take(*reinterpret_cast<const xpu_stack*>(bytes.data()), bytes.size());
  const std::span<const Frame> kernel = FramesOfWait();
  stack.frames.insert(stack.frames.begin(), kernel.begin(), kernel.end());
  stacks.native = sink_->Intern(stack.frames);
  return stacks;
}

uint32_t OffCpuSource::Impl::ThreadThatEnds(uint32_t pid, uint64_t futex) const {
  const xpu_thread_end end{.futex = futex, .pid = pid, .reserved = 0};
  uint32_t tid = 0;
  const int found =
      bpf_map__lookup_elem(program_->maps.thread_ends, &end, sizeof(end), &tid, sizeof(tid), 0);
  return found == 0 ? tid : 0;
}

void OffCpuSource::Impl::TakeWait(std::span<const std::byte> bytes) {
  constexpr size_t kStackAt = offsetof(xpu_off_cpu_wait, stack);
  const auto* raw = As<xpu_off_cpu_wait>(bytes, offsetof(xpu_off_cpu_wait, stack.frames));
  if (raw == nullptr) return;
  ++recorded_;
  OffCpuWait wait;
  wait.start_ns = raw->start_ns;
  wait.end_ns = raw->end_ns;
  wait.ready_ns = ReadyNs(*raw);
  wait.pid = raw->pid;
  wait.tid = raw->tid;
  wait.state = static_cast<OffCpuState>(raw->state);
  wait.is_open = raw->is_open != 0;
  wait.system_call = raw->system_call;
  wait.argument = raw->argument;
  wait.file_type = raw->file_type;
  wait.waker = static_cast<OffCpuWaker>(raw->waker.kind);
  wait.waker_pid = raw->waker.pid;
  wait.waker_tid = raw->waker.tid;
  // Only the stack of a thread that runs again was taken when it did.
  const bool is_remote = raw->ip != 0;
  if (is_remote && raw->system_call == SYS_futex) {
    wait.lock_holder = ThreadThatEnds(raw->pid, raw->argument);
    if (wait.lock_holder == 0) {
      wait.lock_holder = remote_stacks_.HolderOf(raw->pid, raw->argument, raw->own_tid != raw->tid);
    }
    if (RunCount(raw->pid, raw->tid) != raw->run_count) wait.lock_holder = 0;
  }
  std::vector<std::byte> wake;
  if (const auto found = wakes_.find(raw->tid); found != wakes_.end()) {
    if (As<xpu_off_cpu_wake>(found->second, 0)->time_ns == raw->ready_ns) {
      wake = std::move(found->second);
    }
    wakes_.erase(found);
  }
  constexpr size_t kWakerStackAt = offsetof(xpu_off_cpu_wake, stack);
  const std::span<const std::byte> own_stack = bytes.subspan(kStackAt);
  if (!is_remote) CountStacks(own_stack, raw->pid);
  if (!wake.empty()) CountStacks(std::span(wake).subspan(kWakerStackAt), raw->waker.pid);
  // A Python stack may write definitions, after which the ids from before may be of another block;
  // they are written once.
  uint64_t tables = 0;
  do {
    tables = sink_->TablesNumber();
    const Stacks own =
        is_remote ? TakeRemoteStack(*raw, own_stack) : TakeStack(own_stack, raw->pid);
    Stacks waker;
    if (!wake.empty()) waker = TakeStack(std::span(wake).subspan(kWakerStackAt), raw->waker.pid);
    wait.stack = own.native;
    wait.stack_flags = own.flags;
    wait.python_stack = own.python;
    wait.waker_stack = waker.native;
    wait.waker_stack_flags = waker.flags;
    wait.waker_python_stack = waker.python;
    const std::string_view name(raw->waker.name,
                                ::strnlen(raw->waker.name, sizeof(raw->waker.name)));
    wait.waker_name = raw->waker.kind == XPU_WAKER_THREAD ? sink_->Intern(name) : StringId{};
  } while (tables != sink_->TablesNumber());
  sink_->Write(wait);
}

void OffCpuSource::Impl::TakeWake(std::span<const std::byte> bytes) {
  const auto* raw = As<xpu_off_cpu_wake>(bytes, offsetof(xpu_off_cpu_wake, stack.frames));
  if (raw != nullptr) wakes_[raw->tid].assign(bytes.begin(), bytes.end());
}

void OffCpuSource::Impl::TakeTotals(std::span<const std::byte> bytes) {
  const auto* raw = As<xpu_off_cpu_totals>(bytes);
  if (raw == nullptr) return;
  const auto written = written_.find(raw->tid);
  for (uint32_t state = 0; state < XPU_OFF_CPU_STATES; ++state) {
    const xpu_off_cpu_sum before =
        written == written_.end() ? xpu_off_cpu_sum{} : written->second.sums[state];
    const xpu_off_cpu_sum value = Since(before, raw->sums[state]);
    if (value.count == 0 && value.duration_ns == 0) continue;
    const bool is_ready = state == XPU_OFF_CPU_PREEMPTED || state == XPU_OFF_CPU_CREATED;
    if (state != XPU_OFF_CPU_RUNNING) summed_ += value.count;
    OffCpuSum sum;
    sum.time_ns = raw->time_ns;
    sum.pid = raw->pid;
    sum.tid = raw->tid;
    sum.state = static_cast<OffCpuState>(state);
    sum.count = value.count;
    sum.duration = value.duration_ns;
    sum.ready_duration = is_ready ? value.duration_ns : value.ready_ns;
    sink_->Write(sum);
  }
  if (!raw->is_final) {
    written_[raw->tid] = *raw;
    return;
  }
  wakes_.erase(raw->tid);
  if (written != written_.end()) written_.erase(written);
}

// `is_over`: nothing more is produced, so what is missing was lost.
void OffCpuSource::Impl::CountLosses(LossLedger& losses, bool is_over) {
  const auto counters = ReadCounters(program_->maps.counters);
  const auto add = [&](LossKind kind, uint64_t total, uint64_t& counted) {
    losses.Add(kind, total - std::exchange(counted, total));
  };
  const uint64_t dropped = counters[XPU_OFF_CPU_DROPPED];
  add(LossKind::kOffCpuRingFull, dropped, dropped_counted_);
  uint64_t unsummed = counters[XPU_OFF_CPU_UNSUMMED];
  if (is_over) unsummed = counters[XPU_OFF_CPU_SEEN] - recorded_ - summed_ - dropped;
  add(LossKind::kOffCpuNotSummed, unsummed, unsummed_counted_);
  add(LossKind::kOffCpuWakersDropped, counters[XPU_OFF_CPU_WAKERS_DROPPED], wakers_counted_);
  add(LossKind::kOffCpuThreadsMissed, counters[XPU_OFF_CPU_UNFOLLOWED], threads_counted_);
  add(LossKind::kOffCpuEventsMissed, EventsMissed(program_->obj) + counters[XPU_OFF_CPU_MISSED],
      events_counted_);
}

OffCpuSource::OffCpuSource(SourceContext& context) : context_(context) {}
OffCpuSource::~OffCpuSource() = default;

Result<std::unique_ptr<Source>> OffCpuSource::Open(SourceContext& context) {
  const RecordOptions& options = context.options;
  if (!options.record_off_cpu && (!options.record_gpu || !options.inject)) {
    return std::unique_ptr<Source>();
  }
  return std::unique_ptr<Source>(new OffCpuSource(context));
}

Status OffCpuSource::Try() {
  Handle<off_cpu_bpf, off_cpu_bpf::destroy> program(off_cpu_bpf::open());
  if (!program) return BpfError("BPF program off_cpu: open", -errno);
  ChooseEndOfWait(*program);
  XPU_RETURN_IF_ERROR(UseUnwinder(*program, nullptr));
  const int result = off_cpu_bpf::load(program.get());
  return result == 0 ? Ok() : Status(BpfError("BPF program off_cpu: load", result));
}

Status OffCpuSource::Arm() {
  if (!context_.options.record_off_cpu) return Ok();
  impl_ = std::make_unique<Impl>(context_);
  return impl_->Open(context_);
}

void OffCpuSource::Switch(const SwitchState& wanted) {
  if (context_.options.record_off_cpu) impl_->Switch(wanted.is_on);
}

void OffCpuSource::ListWaits(uint32_t pid, EventSink& sink) {
  Status listed = Ok();
  if (!impl_) {
    impl_ = std::make_unique<Impl>(context_);
    listed = impl_->OpenList(context_);
  }
  if (listed.ok()) listed = impl_->ListWaits(pid);
  if (listed.ok()) return;
  if (!context_.options.record_off_cpu) impl_.reset();
  sink.losses().Add(LossKind::kThreadsNotListed, 1, pid, {},
                    Format("process {}: {}", pid, listed.error().message));
}

void OffCpuSource::Drain(EventSink& sink) {
  for (const uint32_t pid : std::exchange(context_.hanging, {})) ListWaits(pid, sink);
  if (impl_) impl_->Drain(sink);
}

void OffCpuSource::BeforeNextPart(EventSink& sink) {
  if (context_.options.record_off_cpu) impl_->WriteSums(sink);
}

void OffCpuSource::CountLosses(EventSink& sink) {
  if (impl_) impl_->CountLosses(sink.losses(), false);
}

void OffCpuSource::Stop(EventSink& sink, bool /*may_go_on*/) {
  if (context_.options.record_off_cpu) impl_->Stop(sink);
}

}  // namespace xpu
