// Owns the program that is recorded: forked and held before its exec, released when all sources are
// armed.
//
// The program runs as if it had been started directly: it inherits the signal settings and
// descriptors of the caller, and its exit status or signal becomes that of this process. A program
// that is not released is killed and reaped, so an error before the start leaves no process.
// Holding a forked child was chosen because its pid is known, and events can be attached to it,
// before its first instruction.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/target/confinement.h"
#include "record/target/target_user.h"

namespace xpu {

// The signal settings that a program inherits and the recorder changes for itself; saved before the
// first change.
struct InheritedSignals {
  sigset_t mask;
  struct sigaction pipe;
  struct sigaction file_size;

  static InheritedSignals Take();
  // Settings for the recorder itself: a reader of its output that goes away (SIGPIPE) and a limit
  // on file sizes (SIGXFSZ) become errors of write.
  static void IgnoreOutputSignals();
};

// Why a program did not start.
struct ExecFailure {
  int error_number = 0;
  // The failed step of becoming another user; nullptr: the exec failed. A pointer to a literal is
  // valid here, because the child is a copy of this process.
  const char* user_step = nullptr;
  const char* user_hint = "";
  // As in shells: 127 not found, 126 found but not executable.
  int ExitStatus() const;
};

// A child process that waits before its exec. Killed and reaped if it is destroyed before
// Release(); left running afterwards.
class Target {
 public:
  struct Start {
    std::vector<std::string> command;
    std::vector<std::string> environment;  // NAME=value
    InheritedSignals signals;
    std::optional<TargetUser> user{};  // nullopt: the caller
    Confinement confinement{};         // with `user`
    bool prints_to_stderr = false;     // because the recorder's standard output is the capture
  };

  // Forks. The child holds no descriptor of the recorder that an exec would keep.
  static Result<Target> Fork(Start start);

  Target(Target&& other) noexcept;
  Target& operator=(Target&&) = delete;
  ~Target();

  pid_t pid() const { return pid_; }
  // Readable once the program has ended.
  int pidfd() const { return pidfd_.get(); }

  // Lets the program run and returns when its exec has happened: {0}, or the failure, after which
  // the program is gone.
  Result<ExecFailure> Release();

  // Sends a signal to the program; false if it has ended.
  bool Send(int signal) const;

  // Waits for the program's end and returns its wait status.
  int Wait();

 private:
  Target() = default;

  pid_t pid_ = -1;
  bool released_ = false;
  bool reaped_ = false;
  UniqueFd pidfd_;
  UniqueFd go_;          // a byte releases the child
  UniqueFd exec_error_;  // receives errno of exec; end of file: it worked
};

// Ends this process as the program ended: with the same exit status, or by the same signal, without
// writing a core file.
[[noreturn]] void ExitLike(int wait_status);

}  // namespace xpu
