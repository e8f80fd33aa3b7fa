#include "symbolize/debuginfod.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/base/handle.h"
#include "format/base/text.h"
#include "symbolize/file_finder.h"

namespace xpu {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMaxAnswerBytes = 4096;
// The program ends by itself this much earlier than it is killed, because only then it removes the
// part of a file that it has received. It looks at its time once a second.
constexpr milliseconds kCleanUpTime{2'000};

milliseconds Since(Clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
}

// What the program writes, until it ends or `limit` has passed.
std::string ReadAnswer(int fd, milliseconds limit) {
  const auto start = Clock::now();
  std::string answer;
  std::array<char, 512> buffer{};
  while (answer.size() < kMaxAnswerBytes) {
    const milliseconds left = limit - Since(start);
    if (left.count() <= 0) return {};
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(left.count()));
    if (ready == 0 || (ready < 0 && errno != EINTR)) return {};
    if (ready < 0) continue;
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    answer.append(buffer.data(), static_cast<size_t>(n));
  }
  return answer;
}

// The environment with a limit of seconds, unless the user's own is smaller.
std::vector<std::string> EnvironmentWithLimit(milliseconds limit) {
  constexpr std::string_view kName = "DEBUGINFOD_MAXTIME=";
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit - kCleanUpTime);
  int64_t most = std::max<int64_t>(seconds.count(), 1);
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(kName)) {
      all.emplace_back(*entry);
    } else if (const int64_t own = std::atol(*entry + kName.size()); own > 0) {
      most = std::min(most, own);
    }
  }
  all.push_back(Format("{}{}", kName, most));
  return all;
}

pid_t Spawn(const std::string& program, const std::string& what, const std::string& build_id,
            milliseconds limit, int out) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // A group of its own, so that what it starts ends with it.
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::array<std::string, 3> arguments = {program, what, build_id};
  std::array<char*, 4> argv = {arguments[0].data(), arguments[1].data(), arguments[2].data(),
                               nullptr};
  std::vector<std::string> environment = EnvironmentWithLimit(limit);
  std::vector<char*> entries;
  for (std::string& entry : environment) entries.push_back(entry.data());
  entries.push_back(nullptr);
  pid_t pid = -1;
  // It inherits that: a file that becomes too large is an error to it, not its end.
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  const int error =
      ::posix_spawnp(&pid, program.c_str(), &actions, &attributes, argv.data(), entries.data());
  std::signal(SIGXFSZ, before);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return error == 0 ? pid : -1;
}

}  // namespace

std::optional<std::string> Debuginfod::Ask(const std::string& what, const std::string& build_id,
                                           milliseconds limit) const {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const pid_t pid = Spawn(options_.program, what, build_id, limit, out.get());
  out.reset();
  if (pid < 0) return std::nullopt;
  const rlimit bytes{options_.most_bytes, options_.most_bytes};
  ::prlimit(pid, RLIMIT_FSIZE, &bytes, nullptr);
  std::string answer = ReadAnswer(in.get(), limit);
  ::kill(-pid, SIGKILL);  // it has ended, or its time has
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  answer.erase(std::min(answer.find('\n'), answer.size()));
  return answer;
}

std::string Debuginfod::Find(std::string_view what, std::string_view build_id,
                             std::string_view name) {
  const std::scoped_lock lock(mutex_);
  const milliseconds left = options_.time_limit - used_;
  const auto give_up = [&](const std::string& line) {
    gave_up_ = true;
    if (options_.problem) options_.problem(line);
  };
  if (gave_up_) return {};
  const bool is_short = used_.count() > 0 && left < kCleanUpTime;
  if (is_short || left.count() <= 0) {
    give_up("debuginfod: the time limit is reached; the remaining files are not requested");
    return {};
  }
  if (options_.progress) {
    options_.progress(Format("debuginfod: requesting {} of {}", what, name));
  }
  const auto start = Clock::now();
  const std::optional<std::string> path = Ask(std::string(what), ToHex(build_id), left);
  used_ += Since(start);
  if (!path) {
    give_up(
        Format("debuginfod: cannot run {}: install it (debuginfod, elfutils)", options_.program));
  }
  return path.value_or(std::string());
}

}  // namespace xpu
