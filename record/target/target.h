// The program being recorded: started suspended, released when everything is armed.
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

// What a program inherits and the recorder changes for itself: taken before the first change.
struct InheritedSignals {
  sigset_t mask;
  struct sigaction pipe;
  struct sigaction file_size;

  static InheritedSignals Take();
  // What the recorder runs with: a reader of its output that goes away (SIGPIPE) and a limit on
  // file sizes (SIGXFSZ) become errors of write.
  static void IgnoreOutputSignals();
};

// Why a program did not start.
struct ExecFailure {
  int error_number = 0;
  // Of becoming another user; nullptr: exec. The child is a copy of this process, so that its
  // literals lie where ours do.
  const char* user_step = nullptr;
  const char* user_hint = "";
  // As shells do: 127 not found, 126 found but not executable.
  int ExitStatus() const;
};

// A child process that waits in front of its exec. Killed and reaped when it is destroyed before
// Release(); afterwards it is left to itself.
class Target {
 public:
  struct Start {
    std::vector<std::string> command;
    std::vector<std::string> environment;  // NAME=value
    InheritedSignals signals;
    std::optional<TargetUser> user{};  // nullopt: as we are
    Confinement confinement{};         // with `user`
    bool prints_to_stderr = false;     // the recorder's standard output is the capture
  };

  // Forks. The child holds no descriptor of the recorder that an exec would keep.
  static Result<Target> Fork(Start start);

  Target(Target&& other) noexcept;
  Target& operator=(Target&&) = delete;
  ~Target();

  pid_t pid() const { return pid_; }
  // Readable when the program has ended.
  int pidfd() const { return pidfd_.get(); }

  // Lets the program run, returns when its exec has happened: nullopt-like {0}, or why it did not.
  // The program is then gone.
  Result<ExecFailure> Release();

  // A signal to the program; false when it is gone.
  bool Send(int signal) const;

  // Its status as waitpid gives it; waits for its end.
  int Wait();

 private:
  Target() = default;

  pid_t pid_ = -1;
  bool released_ = false;
  bool reaped_ = false;
  UniqueFd pidfd_;
  UniqueFd go_;          // a byte lets the child exec
  UniqueFd exec_error_;  // errno of exec; end of file: it worked
};

// Ends this process as the program ended: the same exit status, or the same signal, without a core
// file of our own.
[[noreturn]] void ExitLike(int wait_status);

}  // namespace xpu
