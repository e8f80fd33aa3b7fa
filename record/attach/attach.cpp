#include "record/attach/attach.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/open_file.h"
#include "format/base/text.h"
#include "record/attach/borrowed_thread.h"
#include "record/attach/loader_code.h"
#include "record/attach/seccomp_filter.h"
#include "record/attach/signal_frame.h"
#include "record/attach/target_code.h"
#include "record/attach/thread_choice.h"
#include "record/attach/traced_thread.h"
#include "record/base/background_threads.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"
#include "record/kernel/capabilities.h"
#include "record/kernel/machine.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kFindThreadNs = 5'000 * kMs;  // until one can be borrowed
constexpr uint64_t kTakeAllNs = 1'000 * kMs;     // then also threads that it disturbs
constexpr uint64_t kOtherTracerNs = 1'000 * kMs;
constexpr uint64_t kMapNs = 100 * kMs;      // its libraries
constexpr uint64_t kStopNs = 20 * kMs;      // a thread that does not sleep uninterruptibly
constexpr uint64_t kStartNs = 5'000 * kMs;  // of the new thread
constexpr uint64_t kLoadNs = 10'000 * kMs;  // dlopen may wait for the loader's lock
constexpr uint64_t kTurnNs = 20 * kMs;
constexpr uint64_t kFirstPauseNs = kMs / 20;
constexpr uint64_t kLongestPauseNs = 200 * kMs;
constexpr uint64_t kPageBytes = 4096;
constexpr size_t kMaxLibraryBytes = size_t{64} << 20;

// The area in the process: a LoaderArea, the code, the library.
constexpr size_t kCodeAt = (sizeof(LoaderArea) + 63) & ~size_t{63};
size_t LibraryAt() { return kCodeAt + LoaderCode().size(); }

void Sleep(uint64_t ns) {
  const timespec pause{static_cast<time_t>(ns / 1'000'000'000),
                       static_cast<long>(ns % 1'000'000'000)};
  ::nanosleep(&pause, nullptr);
}

Error Withdrawn() {
  return {ErrorKind::kBusy, "xpu-record was stopped for too long meanwhile", "try again"};
}

Error CallFailed(const char* what) {
  return Error{ErrorKind::kSystem, Format("{} failed in it", what),
               "it may be at a limit of memory or threads (ulimit -v, -u)"};
}

Error NoPermission(pid_t pid, const std::string& reason) {
  auto scope = ReadFile(kYamaPath);
  const auto obstacle = ObstacleToTracing(scope.ok() ? *scope : "", EffectiveCapabilities());
  if (obstacle) {
    return Error{ErrorKind::kPermission,
                 Format("Yama does not allow attaching ({})", obstacle->what), obstacle->hint};
  }
  struct stat process {};
  const bool is_of_another = ::stat(Format("/proc/{}", pid).c_str(), &process) == 0 &&
                             process.st_uid != 0 && process.st_uid != ::geteuid();
  return Error{ErrorKind::kPermission, is_of_another ? "it belongs to another user" : reason,
               HowToGetCapabilities(",cap_sys_ptrace") + "; or --no-attach"};
}

// Of its program, whatever it has mapped.
bool Is32Bit(pid_t pid) {
  auto program = OpenRegularFile(Format("/proc/{}/exe", LivingThread(pid)));
  std::array<unsigned char, EI_NIDENT> ident{};
  return program.ok() && ::read(program->fd.get(), ident.data(), ident.size()) == EI_NIDENT &&
         ident[EI_CLASS] == ELFCLASS32;
}

// The memory of the program that the process was then: after an execve, there is none any more.
class ImageMemory {
 public:
  bool Open(pid_t tid) {
    file_.reset(::open(Format("/proc/{}/mem", tid).c_str(), O_RDWR | O_CLOEXEC));
    return static_cast<bool>(file_);
  }
  bool Read(uint64_t address, void* to, size_t bytes) const {
    return ::pread(file_.get(), to, bytes, static_cast<off_t>(address)) ==
           static_cast<ssize_t>(bytes);
  }
  bool Write(uint64_t address, const void* from, size_t bytes) const {
    return ::pwrite(file_.get(), from, bytes, static_cast<off_t>(address)) ==
           static_cast<ssize_t>(bytes);
  }

 private:
  UniqueFd file_;
};

}  // namespace

// What goes on while a process is attached to.
class Attaching::Impl {
 public:
  Impl(const AttachTarget& target, const AttachObserver& observe)
      : target_(target.process ? target : Choose(target, target.pid)),
        observe_(observe),
        code_(target.pid) {}

  std::optional<Result<Attached>> Continue();
  Error GiveUp();
  uint64_t due_ns() const { return due_ns_; }

 private:
  // nullopt: not yet.
  using Done = std::optional<Status>;

  // The steps. Each is called until it is done.
  Done Prepare();
  Done FindFunctions();
  Done BorrowAThread();
  Done WaitForThread();
  Done CopyLibrary();
  Done TakeConnection();
  static constexpr Done (Impl::*kSteps[])() = {&Impl::Prepare,       &Impl::FindFunctions,
                                               &Impl::BorrowAThread, &Impl::WaitForThread,
                                               &Impl::CopyLibrary,   &Impl::TakeConnection};

  Done TakeTurn();
  Status OpenMemory();
  Done Try(const ThreadToBorrow& candidate);
  Done TryOnThisThread(const ThreadToBorrow& candidate);
  Done Borrow(TracedThread& thread, const ThreadRegisters& before);
  Status SeizeError(const Error& error);
  Error NoThread() const;
  Status Connect();
  bool IsGone() const { return AllHaveEnded(target_.process->get()); }
  bool HasEnded() const;  // its threads have, whatever keeps its number
  // Also for one whose threads are about to end, and for another program in its place.
  Error Gone() {
    is_gone_ = true;
    return {ErrorKind::kNotFound, "the process has ended", {}};
  }
  void NoteReason(const char* why) { ++reasons_[why]; }
  std::vector<std::byte> Area(uint64_t address) const;
  Status Refusal();
  wire::AttachState ReadState();
  bool IsSameProgram() const {
    std::byte code{};
    return memory_.Read(functions_.restorer, &code, sizeof(code));
  }
  bool WriteState(wire::AttachState state) const;
  bool IsLater(uint64_t ns) const { return MonotonicNs() >= step_since_ns_ + ns; }
  bool Pause();
  void Observe(AttachStage stage) const {
    if (observe_) observe_(stage);
  }

  const AttachTarget target_;
  const AttachObserver observe_;
  size_t step_ = 0;
  uint64_t step_since_ns_ = 0;
  uint64_t pause_ns_ = 0;
  uint64_t turn_ends_ns_ = 0;
  uint64_t due_ns_ = 0;
  ImageMemory memory_;
  TargetCode code_;
  TargetFunctions functions_;
  bool is_gone_ = false;
  size_t tried_ = 0;  // threads of the list, in the turns before
  uint64_t library_bytes_ = 0;
  uint64_t entry_ = 0;  // where it is mapped already
  uint64_t area_ = 0;
  uint64_t area_bytes_ = 0;
  std::map<std::string, int> reasons_;
  uint64_t other_tracer_since_ns_ = 0;
  Attached result_;
};

// CAP_PERFMON lets us see what is mapped, but neither its contents nor its threads.
Status Attaching::Impl::OpenMemory() {
  if (memory_.Open(LivingThread(target_.pid))) return Ok();
  if (errno != EACCES && errno != EPERM) return Gone();
  return NoPermission(target_.pid, "no permission to trace it");
}

// Waits before the next try, longer each time; false: the turn is over, and the step goes on later.
bool Attaching::Impl::Pause() {
  pause_ns_ = std::min(pause_ns_ + pause_ns_ / 2, kLongestPauseNs);
  due_ns_ = MonotonicNs() + pause_ns_;
  if (due_ns_ > turn_ends_ns_) return false;
  Sleep(pause_ns_);
  return true;
}

// The loader of a program that has just begun may map the driver before the C library.
Attaching::Impl::Done Attaching::Impl::FindFunctions() {
  while (true) {
    XPU_RETURN_IF_ERROR(code_.Refresh());
    Result<TargetFunctions> found = code_.FindFunctions();
    if (found.ok()) {
      functions_ = *found;
      break;
    }
    if (HasEnded()) return Gone();
    const bool may_come = found.error().kind == ErrorKind::kUnsupported;
    if (!may_come || IsLater(kMapNs)) return std::move(found).error();
    if (!Pause()) return std::nullopt;
  }
  XPU_ASSIGN_OR_RETURN(const std::string build_id, ReadBuildId(target_.library));
  entry_ = code_.FindInLibrary(build_id, wire::kAttachSymbol);
  result_.was_mapped = entry_ != 0;
  const uint64_t bytes = LibraryAt() + (entry_ != 0 ? 0 : library_bytes_);
  area_bytes_ = (bytes + kPageBytes - 1) & ~(kPageBytes - 1);
  return Ok();
}

Attaching::Impl::Done Attaching::Impl::Prepare() {
  if (!*target_.process) return Gone();
  XPU_RETURN_IF_ERROR(OpenMemory());
  auto status = ReadFile(Format("/proc/{}/status", target_.pid));
  if (!status.ok()) return Gone();
  if (StatusField(*status, "x86_Thread_features").find("shstk") != std::string_view::npos) {
    return Error{ErrorKind::kUnsupported, "it uses a shadow stack",
                 "start the program under xpu-record"};
  }
  if (Is32Bit(target_.pid)) {
    return Error{ErrorKind::kUnsupported, "it is a 32-bit program", "build it for 64 bits"};
  }
  struct stat library {};
  if (::stat(target_.library.c_str(), &library) != 0) {
    return SystemError(Format("{}: open", target_.library), errno);
  }
  library_bytes_ = static_cast<uint64_t>(library.st_size);
  if (library_bytes_ > kMaxLibraryBytes || LoaderCode().size() > kPageBytes) {
    return Error{ErrorKind::kInvalid, Format("{}: too large", target_.library), {}};
  }
  return Ok();
}

// All of the area but the library.
std::vector<std::byte> Attaching::Impl::Area(uint64_t address) const {
  LoaderArea area{};
  area.request.version = wire::kAttachVersion;
  area.request.socket.store(-1);
  area.request.area_start = address;
  area.request.area_bytes = area_bytes_;
  area.request.session = target_.session;
  target_.cupti_library.copy(area.request.cupti_library, sizeof(area.request.cupti_library) - 1);
  area.library_at = address + LibraryAt();
  area.library_bytes = library_bytes_;
  constexpr long kPauseNs = kMs / 5;
  area.pause.tv_nsec = kPauseNs;
  area.most_pauses = wire::kAttachPatienceNs / kPauseNs;
  area.entry = entry_;
  const auto set = [](auto& member, uint64_t function) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(function);
  };
  set(area.munmap, functions_.munmap);
  set(area.pthread_self, functions_.pthread_self);
  set(area.pthread_detach, functions_.pthread_detach);
  set(area.dlopen, functions_.dlopen);
  set(area.dlsym, functions_.dlsym);
  set(area.dlerror, functions_.dlerror);
  std::strcpy(area.memfd_name, "libxpu_inject.so");
  std::strcpy(area.entry_name, wire::kAttachSymbol);
  std::strcpy(area.path, "/proc/thread-self/fd/");
  std::vector<std::byte> bytes(LibraryAt());
  std::memcpy(bytes.data(), &area, sizeof(area));
  std::copy(LoaderCode().begin(), LoaderCode().end(), bytes.begin() + kCodeAt);
  return bytes;
}

Attaching::Impl::Done Attaching::Impl::Borrow(TracedThread& thread, const ThreadRegisters& before) {
  BorrowedThread borrowed(thread, before, functions_, observe_);
  if (!borrowed.Prepare()) {
    NoteReason("its stack cannot be written");
    return std::nullopt;
  }
  Observe(AttachStage::kFrameWritten);
  area_ = borrowed.Map(area_bytes_);
  const auto failed = [&](const char* what) -> Status {
    const bool is_gone = borrowed.last_stop() == TracedThread::Stop::kGone;
    borrowed.Release();
    return is_gone ? Gone() : CallFailed(what);
  };
  if (area_ == 0) return failed("mmap");
  Observe(AttachStage::kAreaMapped);
  const std::vector<std::byte> area = Area(area_);
  const uint64_t entry = area_ + kCodeAt + LoaderThreadAt();
  if (!memory_.Write(area_, area.data(), area.size())) return failed("writing to the new memory");
  // The borrowed thread executes nothing of the area, which the new one may unmap meanwhile.
  const std::vector<uint64_t> arguments = {area_ + offsetof(LoaderArea, thread), 0, entry, area_};
  if (!borrowed.CallAndRelease(functions_.pthread_create, arguments)) {
    return failed("pthread_create");
  }
  return Ok();
}

Status Attaching::Impl::SeizeError(const Error& error) {
  auto status = ReadFile(Format("/proc/{}/status", target_.pid));
  if (!status.ok()) return Gone();
  for (const ThreadToBorrow& thread : ThreadsToTry(target_.pid)) {
    auto of_thread = ReadFile(Format("/proc/{}/status", thread.tid));
    const std::string tracer(of_thread.ok() ? StatusField(*of_thread, "TracerPid") : "0");
    if (tracer.empty() || tracer == "0" || tracer == std::to_string(::getpid())) continue;
    return Error{
        ErrorKind::kBusy,
        Format("process {} ({}) is tracing it", tracer, ReadComm(Format("/proc/{}/comm", tracer))),
        "end the debugger or strace that holds it"};
  }
  return NoPermission(target_.pid, error.message);
}

Error Attaching::Impl::NoThread() const {
  std::string text;
  for (const auto& [why, count] : reasons_) {
    AppendFormat(text, "{}{} ({} times)", text.empty() ? "" : ", ", why, count);
  }
  return {ErrorKind::kBusy,
          Format("none of its threads could be borrowed for {:.1f} s: {}",
                 static_cast<double>(MonotonicNs() - step_since_ns_) / 1e9,
                 text.empty() ? "none could be tried" : text),
          "try again, or start the program under xpu-record"};
}

// The kernel detaches everything from a tracer's thread that ends, also what could not be detached
// from because it did not stop in time: it would stand still for good once it does.
Attaching::Impl::Done Attaching::Impl::Try(const ThreadToBorrow& candidate) {
  Done done;
  std::thread tracer = StartWithoutSignals([&] { done = TryOnThisThread(candidate); });
  if (!tracer.joinable()) {
    return Error{ErrorKind::kSystem, "no thread could be started to trace it",
                 "raise the limit of threads (ulimit -u)"};
  }
  tracer.join();
  return done;
}

Attaching::Impl::Done Attaching::Impl::TryOnThisThread(const ThreadToBorrow& candidate) {
  auto seized = TracedThread::Seize(candidate.tid);
  if (!seized.ok()) {
    if (seized.error().kind == ErrorKind::kNotFound) return std::nullopt;
    const uint64_t now_ns = MonotonicNs();
    if (other_tracer_since_ns_ == 0) other_tracer_since_ns_ = now_ns;
    // Another xpu-record holds it for a moment only.
    NoteReason("another program traces it");
    if (now_ns - other_tracer_since_ns_ < kOtherTracerNs) return std::nullopt;
    return SeizeError(seized.error());
  }
  // While the process is there, its number and those of its threads are not another's.
  const bool is_of_process =
      ::access(Format("/proc/{}/task/{}", target_.pid, candidate.tid).c_str(), F_OK) == 0;
  if (IsGone() || !is_of_process) return std::nullopt;
  // It may have started one since it was looked at.
  if (candidate.disturbance < Disturbance::kHasChild && HasChild(target_.pid, candidate.tid)) {
    NoteReason("it starts processes");
    return std::nullopt;
  }
  Observe(AttachStage::kSeized);
  ++result_.attempts;
  const uint64_t begin_ns = MonotonicNs();
  const TracedThread::Stop stop = seized->Interrupt(kStopNs);
  if (stop == TracedThread::Stop::kGroupStopped) {
    return Error{ErrorKind::kBusy, "it is stopped",
                 Format("continue it (kill -CONT {}) and record again", target_.pid)};
  }
  if (stop != TracedThread::Stop::kInterrupted) {
    NoteReason("it does not stop");
    return std::nullopt;
  }
  Observe(AttachStage::kStopped);
  ThreadRegisters before;
  if (!seized->ReadRegisters(before.general) || !seized->ReadVectors(before.vectors) ||
      !seized->ReadSignalMask(before.signal_mask)) {
    NoteReason("its registers are not those of a 64-bit thread");
    return std::nullopt;
  }
  RepeatEndedCall(*seized, before);
  // While the thread stands still it stays so, or the thread ends.
  if (!IsSameProgram()) return Gone();
  const Unsuitable unsuitable = WhyUnsuitable(*seized, before, code_);
  if (unsuitable.needs_tables) {
    NoteReason(unsuitable.why);
    seized->Detach();
    code_.LoadMissing();
    return std::nullopt;
  }
  if (unsuitable.why != nullptr) {
    NoteReason(unsuitable.why);
    return std::nullopt;
  }
  // Each thread may have filters of its own.
  XPU_RETURN_IF_ERROR(CheckSeccomp(*seized));
  Done done = Borrow(*seized, before);
  result_.held_ns = MonotonicNs() - begin_ns;
  result_.tid = candidate.tid;
  if (done && done->ok()) Observe(AttachStage::kReleased);
  return done;
}

bool Attaching::Impl::HasEnded() const {
  if (IsGone()) return true;
  const pid_t thread = LivingThread(target_.pid);
  auto status = ReadFile(Format("/proc/{}/status", thread));
  return !status.ok() || StatusField(*status, "State").starts_with("Z");
}

Attaching::Impl::Done Attaching::Impl::BorrowAThread() {
  while (!IsLater(kFindThreadNs)) {
    const std::vector<ThreadToBorrow> threads = ThreadsToTry(target_.pid);
    const bool has_one = !threads.empty() && threads.front().disturbance != Disturbance::kExcluded;
    if (IsGone() || (!has_one && HasEnded())) return Gone();
    // Those that a stop would disturb only if there is no other, or no other can be borrowed.
    const bool takes_all =
        IsLater(kTakeAllNs) || !has_one || threads.front().disturbance >= Disturbance::kHasChild;
    for (size_t i = tried_ < threads.size() ? tried_ : 0; i < threads.size(); ++i) {
      if (threads[i].disturbance == Disturbance::kExcluded) {
        NoteReason("stopped, or in a call that must not be interrupted");
        continue;
      }
      if (!takes_all && threads[i].disturbance >= Disturbance::kHasChild) break;
      if (auto done = Try(threads[i])) return done;
      // Not only the first ones of many.
      if (tried_ = i + 1; MonotonicNs() >= turn_ends_ns_) break;
    }
    const bool has_tried_all = MonotonicNs() < turn_ends_ns_;
    if (has_tried_all) tried_ = 0;
    if (!Pause()) return std::nullopt;
  }
  return NoThread();
}

wire::AttachState Attaching::Impl::ReadState() {
  wire::AttachState state = wire::AttachState::kWithdrawn;
  const uint64_t at = area_ + offsetof(wire::AttachRequest, state);
  if (!memory_.Read(at, &state, sizeof(state)) && !IsSameProgram()) Gone();
  return state;
}

bool Attaching::Impl::WriteState(wire::AttachState state) const {
  return memory_.Write(area_ + offsetof(wire::AttachRequest, state), &state, sizeof(state));
}

// Until the new thread owns the area. Without one it stays mapped.
Attaching::Impl::Done Attaching::Impl::WaitForThread() {
  while (!IsLater(kStartNs)) {
    uint32_t runs = 0;
    if (!memory_.Read(area_ + offsetof(LoaderArea, runs), &runs, sizeof(runs))) {
      return Gone();
    }
    if (runs == 1) {
      Observe(AttachStage::kThreadRuns);
      return Ok();
    }
    if (!Pause()) return std::nullopt;
  }
  return CallFailed("pthread_create");
}

// Read only now, because many may wait.
Attaching::Impl::Done Attaching::Impl::CopyLibrary() {
  if (entry_ == 0) {
    XPU_ASSIGN_OR_RETURN(const std::string library, ReadFile(target_.library));
    if (library.size() != library_bytes_) {
      return Error{ErrorKind::kInvalid, Format("{}: changed meanwhile", target_.library), {}};
    }
    const LibraryState there = LibraryState::kThere;
    if (!memory_.Write(area_ + LibraryAt(), library.data(), library.size()) ||
        !memory_.Write(area_ + offsetof(LoaderArea, library_state), &there, sizeof(there))) {
      return Gone();
    }
  }
  Observe(AttachStage::kLibraryCopied);
  return Ok();
}

Status Attaching::Impl::Refusal() {
  char text[wire::kAttachErrorBytes] = "";
  memory_.Read(area_ + offsetof(wire::AttachRequest, error), text, sizeof(text) - 1);
  WriteState(wire::AttachState::kTaken);
  const std::string reason = text[0] == '\0' ? "the library could not be loaded into it" : text;
  const char* hint = "start the program under xpu-record";
  if (reason == wire::kAttachIsTaken) hint = "wait until the other one has ended, or end it";
  if (reason == wire::kAttachWaits) hint = "attach again when the GPU has finished, or restart it";
  if (reason == wire::kAttachIsForked) hint = "start the recording after the fork";
  return Error{ErrorKind::kUnsupported, reason, hint};
}

Attaching::Impl::Done Attaching::Impl::TakeConnection() {
  wire::AttachState state = ReadState();
  for (; state == wire::AttachState::kLoading; state = ReadState()) {
    if (IsLater(kLoadNs)) return GiveUp();
    if (!Pause()) return std::nullopt;
  }
  if (state == wire::AttachState::kRefused) return Refusal();
  return state == wire::AttachState::kOffered ? Connect() : Withdrawn();
}

Status Attaching::Impl::Connect() {
  Observe(AttachStage::kOffered);
  int32_t theirs = -1;
  if (!memory_.Read(area_ + offsetof(wire::AttachRequest, socket), &theirs, sizeof(theirs))) {
    return Gone();
  }
  UniqueFd ours(static_cast<int>(::syscall(SYS_pidfd_getfd, target_.process->get(), theirs, 0)));
  if (!ours && errno == ESRCH) {  // its first thread has ended, and has no descriptors any more
    constexpr unsigned kPidfdThread = O_EXCL;  // Linux 6.9
    const UniqueFd thread(
        static_cast<int>(::syscall(SYS_pidfd_open, LivingThread(target_.pid), kPidfdThread)));
    ours.reset(static_cast<int>(::syscall(SYS_pidfd_getfd, thread.get(), theirs, 0)));
  }
  // Once it has withdrawn, the library's descriptor may be another file's.
  if (ReadState() != wire::AttachState::kOffered) return Withdrawn();
  if (!ours) return SystemError("pidfd_getfd", errno, "attaching needs Linux 5.6");
  int domain = 0;
  socklen_t size = sizeof(domain);
  if (::getsockopt(ours.get(), SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX) {
    return Error{ErrorKind::kInvalid, "it sent something other than a connection", {}};
  }
  if (!WriteState(wire::AttachState::kTaken)) return Gone();
  result_.connection = std::move(ours);
  return Ok();
}

Attaching::Impl::Done Attaching::Impl::TakeTurn() {
  turn_ends_ns_ = MonotonicNs() + kTurnNs;
  for (; step_ < std::size(kSteps); ++step_, step_since_ns_ = 0) {
    if (step_since_ns_ == 0) {
      step_since_ns_ = MonotonicNs();
      pause_ns_ = kFirstPauseNs;
    }
    Done done = (this->*kSteps[step_])();
    if (!done || !done->ok()) return done;
  }
  return Ok();
}

std::optional<Result<Attached>> Attaching::Impl::Continue() {
  ::prctl(PR_SET_TIMERSLACK, 1000);  // of this thread: short waits are short
  Done done = TakeTurn();
  if (!done) return std::nullopt;
  if (done->ok()) return std::move(result_);
  if (is_gone_ || HasEnded()) return Gone();  // whatever that made fail
  Error error = std::move(*done).error();
  if (error.kind == ErrorKind::kNotFound) error.kind = ErrorKind::kSystem;
  return error;
}

Error Attaching::Impl::GiveUp() {
  if (area_ == 0) return NoThread();
  if (ReadState() == wire::AttachState::kLoading) WriteState(wire::AttachState::kWithdrawn);
  return {ErrorKind::kBusy, "its dynamic loader is busy: the library was not loaded",
          "try again, or start the program under xpu-record"};
}

Attaching::Attaching(const AttachTarget& target, const AttachObserver& observe)
    : impl_(std::make_unique<Impl>(target, observe)) {}
Attaching::~Attaching() = default;
std::optional<Result<Attached>> Attaching::Continue() { return impl_->Continue(); }
uint64_t Attaching::due_ns() const { return impl_->due_ns(); }
Error Attaching::GiveUp() { return impl_->GiveUp(); }

AttachTarget Choose(AttachTarget target, pid_t pid) {
  target.pid = pid;
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  target.process = std::make_shared<const UniqueFd>(process);
  return target;
}

}  // namespace xpu
