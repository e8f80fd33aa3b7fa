// Signals sent to the recorder: which of them the program must still be given.
//
// The program is in the recorder's process group, so what the terminal sends (Ctrl-C) and what is
// sent to the group (`timeout`) has reached it already; what is sent to the recorder alone has not.
// Who sent it does not tell them apart: a script and its jobs share one group. So a witness
// process that does nothing sits in the group, and what it receives was sent to the group.
#pragma once

#include <csignal>
#include <cstdint>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

// One signal as signalfd reports it.
struct Arrival {
  int signal = 0;
  int code = 0;      // SI_USER, SI_KERNEL, ...
  pid_t sender = 0;  // of SI_USER and its like
};

// The decisions alone: no system calls, the caller brings the time.
class SignalRouter {
 public:
  // How long a signal to the group may take to reach the witness after it reached the recorder
  // (the kernel delivers to both in one loop; the rest is the witness waking up).
  static constexpr uint64_t kWitnessNs = 100'000'000;

  struct Group {
    bool recorder_leads_session = false;
    pid_t target = 0;             // 0: there is none
    bool takes_switches = false;  // SIGUSR2 is meant for the recorder
    // Bits 1 << signal. What ignored a signal from its start is not meant when the whole group or
    // the terminal sends it, but by who names this very process.
    uint64_t ignored = 0;
  };

  explicit SignalRouter(Group group) : group_(group) {}

  void AtRecorder(const Arrival& arrival, uint64_t now_ns);
  void AtWitness(const Arrival& arrival, uint64_t now_ns);

  // The signals to forward by now, each as often as it must be sent. `target_in_group`: it has not
  // moved to a process group of its own.
  std::vector<int> Due(uint64_t now_ns, bool target_in_group);
  // Something is waiting for its time.
  bool waiting() const { return !pending_.empty(); }

  // How many times SIGUSR2 came since the last call, where it is meant for the recorder.
  int TakeSwitchRequests() { return std::exchange(switch_requests_, 0); }

  // How many times the user asked for the end (SIGINT, SIGTERM, SIGHUP, SIGQUIT).
  int requests_to_end() const { return requests_to_end_; }

 private:
  struct Timed {
    Arrival arrival;
    uint64_t time_ns;
  };

  bool WasIgnored(const Arrival& arrival) const {
    return (group_.ignored >> arrival.signal & 1) != 0;
  }
  bool TerminalToldTarget(const Arrival& arrival) const;
  bool IsSwitch(const Arrival& arrival) const {
    return group_.takes_switches && arrival.signal == SIGUSR2;
  }
  void CountRequest(const Arrival& arrival, int times);

  Group group_;
  std::vector<Timed> pending_;  // at the recorder, not yet decided
  std::vector<Timed> witnessed_;
  int requests_to_end_ = 0;
  int switch_requests_ = 0;
};

// Its descriptors: a signalfd, and the witness with the pipe it reports through.
class SignalSource {
 public:
  // Blocks the signals to forward, in this process and all it will fork. Those that were ignored
  // when the recorder started (nohup) stay ignored, but for SIGINT and SIGQUIT: shells let what a
  // script runs in the background ignore them, and a recording is ended by them nevertheless.
  static Result<SignalSource> Create();

  SignalSource(SignalSource&&) noexcept;
  SignalSource& operator=(SignalSource&&) = delete;
  ~SignalSource();

  int signal_fd() const { return signal_fd_.get(); }
  int witness_fd() const { return witness_reports_.get(); }
  // SIGINT and SIGQUIT, where they were ignored: SignalRouter::Group.
  uint64_t ignored() const { return ignored_; }

  std::vector<Arrival> ReadArrivals();   // at the recorder
  std::vector<Arrival> ReadWitnessed();  // at the witness

 private:
  SignalSource() = default;

  sigset_t set_{};
  uint64_t ignored_ = 0;
  UniqueFd signal_fd_;
  UniqueFd witness_reports_;
  pid_t witness_ = -1;
};

}  // namespace xpu
