#include "report/base/terminal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "report/base/text.h"

namespace xpu {
namespace {

constexpr size_t kDefaultRows = 24;
// More than any screen holds, however few lines it is.
constexpr size_t kScreenBytes = size_t{64} << 10;

size_t RowsOfScreen() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
  return known ? size.ws_row : kDefaultRows;
}

bool IsInPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view directories = path == nullptr ? "" : path;
  while (!directories.empty()) {
    const size_t end = std::min(directories.find(':'), directories.size());
    const std::string file = Format("{}/{}", directories.substr(0, end), program);
    if (end > 0 && ::access(file.c_str(), X_OK) == 0) return true;
    directories.remove_prefix(std::min(end + 1, directories.size()));
  }
  return false;
}

// The environment, and what less needs for our text: colors, no clearing of the screen, no
// wrapped tables, out at once when it fits. Under sudo it must not start programs or write files.
std::vector<std::string> PagerEnvironment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  if (std::getenv("LESS") == nullptr) environment.emplace_back("LESS=FRSX");
  const bool raised = std::getenv("SUDO_UID") != nullptr || ::geteuid() != ::getuid();
  if (raised && std::getenv("LESSSECURE") == nullptr) environment.emplace_back("LESSSECURE=1");
  return environment;
}

// Signals that this process ignores while the pager has the terminal are not ignored there.
bool Spawn(const std::string& command, int input_fd, pid_t& child) {
  std::vector<std::string> environment = PagerEnvironment();
  std::vector<char*> pointers;
  pointers.reserve(environment.size() + 1);
  for (std::string& entry : environment) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  std::string script = command;
  std::array<char*, 4> arguments = {const_cast<char*>("sh"), const_cast<char*>("-c"), script.data(),
                                    nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, input_fd, STDIN_FILENO);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  for (const int signal : {SIGPIPE, SIGINT, SIGQUIT}) ::sigaddset(&defaults, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int error =
      ::posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments.data(), pointers.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error == 0;
}

constexpr std::chrono::milliseconds kPatience(1'000);
constexpr std::chrono::milliseconds kEvery(200);
constexpr size_t kWidth = 79;
constexpr std::string_view kEraseLine = "\r\x1b[K";

}  // namespace

std::optional<Pager> Pager::ForTerminal() {
  if (::isatty(STDOUT_FILENO) != 1) return std::nullopt;
  const char* command = std::getenv("XPU_PAGER");
  if (command == nullptr) command = std::getenv("PAGER");
  if (command == nullptr && IsInPath("less")) command = "less";
  if (command == nullptr || *command == '\0' || std::string_view(command) == "cat") {
    return std::nullopt;
  }
  return Pager(command, RowsOfScreen());
}

Pager::Pager(std::string command, size_t screen_rows)
    : command_(std::move(command)), rows_left_(screen_rows) {}

Pager::Pager(Pager&& other) noexcept
    : command_(std::move(other.command_)),
      rows_left_(other.rows_left_),
      can_start_(other.can_start_),
      pipe_(std::move(other.pipe_)),
      child_(std::exchange(other.child_, -1)) {}

Pager& Pager::operator=(Pager&& other) noexcept {
  Finish();
  command_ = std::move(other.command_);
  rows_left_ = other.rows_left_;
  can_start_ = other.can_start_;
  pipe_ = std::move(other.pipe_);
  child_ = std::exchange(other.child_, -1);
  return *this;
}

int Pager::FdFor(std::string_view text) {
  if (pipe_) return pipe_.get();
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  // The prompt of the shell takes one row.
  const bool fits = lines < rows_left_ && text.size() < kScreenBytes;
  if (!fits && std::exchange(can_start_, false)) Start();
  if (fits) rows_left_ -= lines;
  return pipe_ ? pipe_.get() : STDOUT_FILENO;
}

void Pager::Start() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  if (!Spawn(command_, read_end.get(), child_)) {
    child_ = -1;
    return;
  }
  for (const int signal : {SIGINT, SIGQUIT}) std::signal(signal, SIG_IGN);
  pipe_ = std::move(write_end);
}

bool Pager::Finish() {
  constexpr int kCannotRun = 126;  // and 127: not found
  pipe_.reset();
  if (child_ < 0) return true;
  int status = 0;
  while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  child_ = -1;
  for (const int signal : {SIGINT, SIGQUIT}) std::signal(signal, SIG_DFL);
  return !WIFEXITED(status) || WEXITSTATUS(status) < kCannotRun;
}

Progress::Progress() : Progress(::isatty(STDERR_FILENO) == 1 ? STDERR_FILENO : -1, kPatience) {}

Progress::Progress(int fd, std::chrono::milliseconds patience) : fd_(fd) {
  if (fd_ < 0) return;
  try {
    thread_ = std::thread([this, patience] { Run(patience); });
  } catch (const std::system_error&) {
    // At the limit of processes: without a word.
  }
}

void Progress::Begin(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  done_ = all_ = 0;
}

void Progress::Set(uint64_t done, uint64_t all) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  all_ = all;
}

void Progress::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Progress::Run(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  for (auto wait = patience; !changed_.wait_for(lock, wait, [this] { return stopped_; });) {
    Show();
    wait = kEvery;
  }
  if (shown_) (void)WriteAll(fd_, kEraseLine, "stderr").ok();
}

void Progress::Show() {
  if (what_.empty()) return;
  std::string line = "xpu-report: " + what_;
  if (all_ > 0) {
    const double share = static_cast<double>(done_) / static_cast<double>(all_);
    AppendFormat(line, " ({:.0f} %)", 100 * (share < 1 ? share : 1));
  }
  shown_ = true;
  (void)WriteAll(fd_, std::string(kEraseLine) + ToWidth(line, kWidth), "stderr").ok();
}

}  // namespace xpu
