#include "record/session/signals.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/base/file.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

// Excludes the signals of job control, which go to the whole group, and those that a process causes
// itself (SIGSEGV and similar ones, SIGCHLD, SIGPIPE).
constexpr int kForwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM};

bool RequestsEnd(int signal) {
  return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
}

bool IsIgnored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

std::vector<Arrival> ReadSignalFd(int fd) {
  std::vector<Arrival> arrivals;
  signalfd_siginfo info;
  while (::read(fd, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    arrivals.push_back(
        {static_cast<int>(info.ssi_signo), info.ssi_code, static_cast<pid_t>(info.ssi_pid)});
  }
  return arrivals;
}

void CloseAllBut(int keep_low, int keep_high) {
  if (keep_low > keep_high) std::swap(keep_low, keep_high);
  if (keep_low > 0) ::close_range(0, keep_low - 1, 0);
  if (keep_high > keep_low + 1) ::close_range(keep_low + 1, keep_high - 1, 0);
  ::close_range(keep_high + 1, ~0U, 0);
}

// The witness holds only its end of the pipe, so that an output pipe gets its end of file, and ends
// when the recorder does.
[[noreturn]] void Witness(const sigset_t& set, int reports, pid_t recorder) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != recorder) ::_exit(0);
  const int fd = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) ::_exit(1);
  CloseAllBut(fd, reports);
  while (true) {
    pollfd polls[] = {{fd, POLLIN, 0}, {reports, 0, 0}};
    if (::poll(polls, 2, -1) < 0 && errno != EINTR) ::_exit(1);
    if (polls[1].revents != 0) ::_exit(0);
    signalfd_siginfo info;
    while (::read(fd, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      const Arrival arrival{static_cast<int>(info.ssi_signo), info.ssi_code,
                            static_cast<pid_t>(info.ssi_pid)};
      if (::write(reports, &arrival, sizeof(arrival)) < 0) ::_exit(0);
    }
  }
}

}  // namespace

void SignalRouter::CountRequest(const Arrival& arrival, int times) {
  // A program that signals its own group does not address the recorder.
  if (RequestsEnd(arrival.signal) && arrival.sender != group_.target) requests_to_end_ += times;
}

// Ctrl-C and similar signals go to the whole foreground group. When the terminal goes away, the
// kernel signals only the session's leader, and the group when the leader has ended.
bool SignalRouter::TerminalSignaledTarget(const Arrival& arrival) const {
  if (arrival.code != SI_KERNEL) return false;
  return arrival.signal == SIGINT || arrival.signal == SIGQUIT ||
         (arrival.signal == SIGHUP && !group_.recorder_leads_session);
}

void SignalRouter::AtRecorder(const Arrival& arrival, uint64_t now_ns) {
  if (IsSwitch(arrival)) {
    ++switch_requests_;
  } else if (WasIgnored(arrival) && arrival.code == SI_KERNEL) {
    return;
  } else if (TerminalSignaledTarget(arrival)) {
    CountRequest(Arrival{arrival.signal, arrival.code, -1}, 1);
  } else {
    pending_.push_back({arrival, now_ns});
  }
}

void SignalRouter::AtWitness(const Arrival& arrival, uint64_t now_ns) {
  if (IsSwitch(arrival)) return;
  if (arrival.code != SI_KERNEL) witnessed_.push_back({arrival, now_ns});
}

std::vector<pid_t> SignalRouter::Senders() const {
  std::vector<pid_t> senders;
  for (const Timed& entry : pending_) senders.push_back(entry.arrival.sender);
  return senders;
}

std::vector<int> SignalRouter::Due(uint64_t now_ns, bool target_in_group, bool others_run) {
  std::vector<int> forward;
  const uint64_t patience_ns = others_run ? kLoadedNs : kWitnessNs;
  const auto is_due = [&](const Timed& entry) { return now_ns - entry.time_ns >= patience_ns; };
  while (true) {
    const auto first = std::find_if(pending_.begin(), pending_.end(), is_due);
    if (first == pending_.end()) break;
    const Arrival arrival = first->arrival;
    const auto is_same = [&](const Timed& entry) {
      return entry.arrival.signal == arrival.signal && entry.arrival.sender == arrival.sender;
    };
    // `timeout` signals its child and then the group: one signal for the recorder, received twice.
    const auto count = static_cast<int>(std::count_if(pending_.begin(), pending_.end(), is_same));
    const auto to_group =
        static_cast<int>(std::count_if(witnessed_.begin(), witnessed_.end(), is_same));
    const bool is_meant = to_group == 0 || !WasIgnored(arrival);
    const bool reached_target = to_group > 0 && target_in_group;
    if (is_meant) CountRequest(arrival, to_group > 0 ? to_group : count);
    if (is_meant && !reached_target) forward.insert(forward.end(), count, arrival.signal);
    std::erase_if(pending_, is_same);
    std::erase_if(witnessed_, is_same);
  }
  // Signals that reached only the witness expire after a while.
  std::erase_if(witnessed_, [&](const Timed& entry) {
    return pending_.empty() && now_ns - entry.time_ns >= 4 * kWitnessNs;
  });
  return forward;
}

// A blocked signal reaches the descriptor even if it is ignored.
Result<SignalSource> SignalSource::Create() {
  SignalSource source;
  sigemptyset(&source.set_);
  for (int signal : kForwarded) {
    const bool is_of_keyboard = signal == SIGINT || signal == SIGQUIT;
    const bool is_ignored = IsIgnored(signal);
    if (is_of_keyboard && is_ignored) source.ignored_ |= uint64_t{1} << signal;
    if (is_of_keyboard || !is_ignored) sigaddset(&source.set_, signal);
  }
  if (::sigprocmask(SIG_BLOCK, &source.set_, nullptr) != 0) {
    return SystemError("sigprocmask", errno);
  }
  source.signal_fd_.reset(::signalfd(-1, &source.set_, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!source.signal_fd_) return SystemError("signalfd", errno);

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return SystemError("pipe", errno);
  source.witness_reports_.reset(ends[0]);
  UniqueFd reports(ends[1]);
  const pid_t recorder = ::getpid();
  source.witness_ = ::fork();
  if (source.witness_ < 0) return SystemError("fork", errno);
  if (source.witness_ == 0) Witness(source.set_, reports.get(), recorder);
  return source;
}

SignalSource::SignalSource(SignalSource&& other) noexcept
    : set_(other.set_),
      ignored_(other.ignored_),
      signal_fd_(std::move(other.signal_fd_)),
      witness_reports_(std::move(other.witness_reports_)),
      witness_(std::exchange(other.witness_, -1)) {}

SignalSource::~SignalSource() {
  if (witness_ < 0) return;
  ::kill(witness_, SIGKILL);
  while (::waitpid(witness_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::vector<Arrival> SignalSource::ReadArrivals() { return ReadSignalFd(signal_fd_.get()); }

std::vector<Arrival> SignalSource::ReadWitnessed() {
  std::vector<Arrival> arrivals;
  Arrival arrival;
  while (::read(witness_reports_.get(), &arrival, sizeof(arrival)) ==
         static_cast<ssize_t>(sizeof(arrival))) {
    arrivals.push_back(arrival);
  }
  return arrivals;
}

bool SignalSource::WitnessOrAnyRuns(const std::vector<pid_t>& senders) const {
  return IsRunnable(witness_) || std::any_of(senders.begin(), senders.end(), IsRunnable);
}

}  // namespace xpu
