// Decides which of the signals sent to the recorder must still be sent to the program.
//
// The program is in the recorder's process group, so signals from the terminal (Ctrl-C) and signals
// to the group (`timeout`) have reached it already; those sent to the recorder alone have not. The
// sender does not distinguish them: a script and its jobs share one group. So a witness process
// that does nothing is put into the group: the signals that it receives were sent to the group.
#pragma once

#include <csignal>
#include <cstdint>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

// One signal, as reported by signalfd.
struct Arrival {
  int signal = 0;
  int code = 0;      // SI_USER, SI_KERNEL, ...
  pid_t sender = 0;  // for SI_USER and similar codes
};

// Only decides: makes no system calls, and the caller provides the time.
class SignalRouter {
 public:
  // The time in which a signal to the group reaches the witness after the recorder. The kernel
  // delivers both in one loop; the rest is the time until the witness runs.
  static constexpr uint64_t kWitnessNs = 100'000'000;
  // On a loaded machine, the witness or a sender that has yet to signal the group may have to wait
  // for a processor. They are waited for, but no longer than this: a sender may always be busy.
  static constexpr uint64_t kLoadedNs = 1'000'000'000;

  struct Group {
    bool recorder_leads_session = false;
    pid_t target = 0;             // 0: none
    bool takes_switches = false;  // SIGUSR2 is for the recorder
    // Bits 1 << signal. Signals that were ignored from the start count only if they are sent to
    // this very process, not to the group or by the terminal.
    uint64_t ignored = 0;
  };

  explicit SignalRouter(Group group) : group_(group) {}

  void AtRecorder(const Arrival& arrival, uint64_t now_ns);
  void AtWitness(const Arrival& arrival, uint64_t now_ns);

  // The signals to forward now, each as often as it must be sent. `target_in_group`: the program
  // has not moved to a process group of its own. `others_run`: the witness or one of Senders() was
  // running or waiting for a processor before the last call of AtWitness.
  std::vector<int> Due(uint64_t now_ns, bool target_in_group, bool others_run = false);
  // The senders of signals that wait for their decision.
  std::vector<pid_t> Senders() const;
  // True while a signal waits for its decision.
  bool waiting() const { return !pending_.empty(); }

  // How often SIGUSR2 arrived for the recorder since the last call.
  int TakeSwitchRequests() { return std::exchange(switch_requests_, 0); }

  // How often the user requested the end (SIGINT, SIGTERM, SIGHUP, SIGQUIT).
  int requests_to_end() const { return requests_to_end_; }

 private:
  struct Timed {
    Arrival arrival;
    uint64_t time_ns;
  };

  bool WasIgnored(const Arrival& arrival) const {
    return (group_.ignored >> arrival.signal & 1) != 0;
  }
  bool TerminalSignaledTarget(const Arrival& arrival) const;
  bool IsSwitch(const Arrival& arrival) const {
    return group_.takes_switches && arrival.signal == SIGUSR2;
  }
  void CountRequest(const Arrival& arrival, int times);

  Group group_;
  std::vector<Timed> pending_;  // received by the recorder, not yet decided
  std::vector<Timed> witnessed_;
  int requests_to_end_ = 0;
  int switch_requests_ = 0;
};

// Owns the descriptors: a signalfd, and the witness with its pipe.
class SignalSource {
 public:
  // Blocks the signals to forward, in this process and all its future children. Signals that were
  // ignored when the recorder started (nohup) stay ignored, except SIGINT and SIGQUIT: shells let
  // background jobs of scripts ignore those, but they end a recording.
  static Result<SignalSource> Create();

  SignalSource(SignalSource&&) noexcept;
  SignalSource& operator=(SignalSource&&) = delete;
  ~SignalSource();

  int signal_fd() const { return signal_fd_.get(); }
  int witness_fd() const { return witness_reports_.get(); }
  // Those of SIGINT and SIGQUIT that were ignored: SignalRouter::Group.
  uint64_t ignored() const { return ignored_; }

  std::vector<Arrival> ReadArrivals();   // of the recorder
  std::vector<Arrival> ReadWitnessed();  // of the witness
  // True if the witness or one of these runs or waits for a processor.
  bool WitnessOrAnyRuns(const std::vector<pid_t>& senders) const;

 private:
  SignalSource() = default;

  sigset_t set_{};
  uint64_t ignored_ = 0;
  UniqueFd signal_fd_;
  UniqueFd witness_reports_;
  pid_t witness_ = -1;
};

}  // namespace xpu
