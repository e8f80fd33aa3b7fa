// Loads the injected library into a process that runs already, and connects to it.
//
// ptrace is used only to make a thread in the process: one of its threads is borrowed for two calls
// of the C library, mmap and pthread_create, and goes on. Everything else, above all dlopen, runs
// on the new thread, which can wait for the locks of loader and driver without holding up the
// program. The borrowed thread always has a way back that needs no tracer (signal_frame.h).
// Rejected: dlopen on the borrowed thread, which stands still for longer, and deadlocks when
// another thread runs a constructor that waits for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/attach/attach_stage.h"

namespace xpu {

struct AttachTarget {
  pid_t pid = 0;
  // Its pidfd, of when it was chosen (Choose): the number may become another process's until it is
  // its turn. None: the attach opens it.
  std::shared_ptr<const UniqueFd> process = {};
  std::string library;  // the file of the injected library
  uint64_t session = 0;
  std::string cupti_library;  // an absolute path; empty: the library searches
};

// The target as the process with that number now.
AttachTarget Choose(AttachTarget target, pid_t pid);

struct Attached {
  UniqueFd connection;      // to the library, which begins its handshake (wire.h)
  uint64_t held_ns = 0;     // how long the borrowed thread stood still, until the last call
  uint32_t attempts = 0;    // until one could be borrowed
  pid_t tid = 0;            // the borrowed thread
  bool was_mapped = false;  // the library was there from an earlier attach
};

// An attach under way, in turns: a process that keeps it waiting holds no thread of the recorder.
// The errors' messages say why the process cannot be attached to, without its pid; kNotFound: it
// has ended, or has become another program.
class Attaching {
 public:
  explicit Attaching(const AttachTarget& target, const AttachObserver& observe = {});
  ~Attaching();

  // Works on it for about 20 ms; a call that is made in the process can take seconds. nullopt: it
  // has to wait for the process, and goes on at due_ns(). Together they last some ten seconds at
  // most. Each turn may be on another thread.
  std::optional<Result<Attached>> Continue();
  uint64_t due_ns() const;
  // Instead of another turn. Returns what it waited for.
  Error GiveUp();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu
