#include "record/target/target.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/base/check.h"
#include "format/base/file.h"

namespace xpu {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

void RestoreSignals(const InheritedSignals& signals) {
  ::sigaction(SIGPIPE, &signals.pipe, nullptr);
  ::sigaction(SIGXFSZ, &signals.file_size, nullptr);
  ::sigprocmask(SIG_SETMASK, &signals.mask, nullptr);
}

ExecFailure TryExec(const Target::Start& start, char* const* argv, char* const* envp) {
  if (start.user) {
    const UserFailure failure = BecomeConfinedUser(*start.user, start.confinement);
    if (failure.error_number != 0) return {failure.error_number, failure.step, failure.hint};
  }
  ::execvpe(argv[0], argv, envp);
  return {errno};
}

// Runs in the child, which has a single thread whatever the recorder has.
[[noreturn]] void HoldThenExec(Pipe& go, Pipe& exec_error, const Target::Start& start,
                               char* const* argv, char* const* envp) {
  go.write.reset();
  exec_error.read.reset();
  char byte = 0;
  ssize_t n;
  do {
    n = ::read(go.read.get(), &byte, 1);
  } while (n < 0 && errno == EINTR);
  if (n != 1) ::_exit(125);  // the recorder gave up
  RestoreSignals(start.signals);
  if (start.prints_to_stderr) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  const ExecFailure failure = TryExec(start, argv, envp);
  // If this write fails there is nobody to report to.
  if (::write(exec_error.write.get(), &failure, sizeof(failure)) < 0) ::_exit(125);
  ::_exit(failure.ExitStatus());
}

}  // namespace

InheritedSignals InheritedSignals::Take() {
  InheritedSignals signals{};
  ::sigprocmask(SIG_BLOCK, nullptr, &signals.mask);
  ::sigaction(SIGPIPE, nullptr, &signals.pipe);
  ::sigaction(SIGXFSZ, nullptr, &signals.file_size);
  return signals;
}

void InheritedSignals::IgnoreOutputSignals() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, nullptr);
  ::sigaction(SIGXFSZ, &ignore, nullptr);
}

int ExecFailure::ExitStatus() const {
  if (user_step != nullptr) return 125;
  return error_number == ENOENT || error_number == ENOTDIR ? 127 : 126;
}

Result<Target> Target::Fork(Start start) {
  XPU_CHECK(!start.command.empty());
  XPU_ASSIGN_OR_RETURN(Pipe go, MakePipe());
  XPU_ASSIGN_OR_RETURN(Pipe exec_error, MakePipe());
  const std::vector<char*> argv = Pointers(start.command);
  const std::vector<char*> envp = Pointers(start.environment);

  Target target;
  target.pid_ = ::fork();
  if (target.pid_ < 0) return SystemError("fork", errno);
  if (target.pid_ == 0) HoldThenExec(go, exec_error, start, argv.data(), envp.data());
  target.go_ = std::move(go.write);
  target.exec_error_ = std::move(exec_error.read);
  target.pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, target.pid_, 0)));
  if (!target.pidfd_) return SystemError("pidfd_open", errno, "Linux 5.3 or newer is needed");
  return target;
}

Target::Target(Target&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      released_(other.released_),
      reaped_(other.reaped_),
      pidfd_(std::move(other.pidfd_)),
      go_(std::move(other.go_)),
      exec_error_(std::move(other.exec_error_)) {}

Target::~Target() {
  if (pid_ < 0 || released_ || reaped_) return;
  go_.reset();  // the child reads end of file and exits
  Wait();
}

Result<ExecFailure> Target::Release() {
  const char byte = 1;
  released_ = true;
  if (::write(go_.get(), &byte, 1) != 1) {
    // EPIPE: the child was killed while it was held. Its wait status shows that.
    if (errno != EPIPE) return SystemError("releasing the program: write", errno);
  }
  go_.reset();
  ExecFailure failure;
  ssize_t n;
  do {
    n = ::read(exec_error_.get(), &failure, sizeof(failure));
  } while (n < 0 && errno == EINTR);
  exec_error_.reset();
  if (n != static_cast<ssize_t>(sizeof(failure))) failure = {};
  if (failure.error_number != 0) Wait();
  return failure;
}

bool Target::Send(int signal) const {
  return ::syscall(SYS_pidfd_send_signal, pidfd_.get(), signal, nullptr, 0) == 0;
}

int Target::Wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  return status;
}

void ExitLike(int wait_status) {
  if (WIFEXITED(wait_status)) std::exit(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  std::fflush(nullptr);
  // The limit prevents core files, the dumpable flag also handlers that core_pattern pipes to.
  const struct rlimit no_core {};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_DUMPABLE, 0);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::raise(signal);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::_exit(128 + signal);  // a signal that is ignored by default cannot have killed it
}

}  // namespace xpu
