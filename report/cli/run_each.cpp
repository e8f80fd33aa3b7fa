#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <map>
#include <new>
#include <set>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/base/check.h"
#include "format/base/file.h"
#include "format/base/handle.h"
#include "format/base/text.h"
#include "report/base/terminal.h"
#include "report/cli/run.h"
#include "report/model/load.h"

namespace xpu {
namespace {

namespace fs = std::filesystem;

// Exit statuses by which a process reports on its capture.
constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kLostData = 3;

struct Reader {
  pid_t pid = 0;
  size_t capture = 0;
  UniqueFd output;   // its standard error
  std::string text;  // what came from there
};

class Readers {
 public:
  Readers(const ReportOptions& options, std::vector<std::string> outputs)
      : options_(options), outputs_(std::move(outputs)) {}

  Status Run(ReportOutcome& outcome);

 private:
  Status Start(size_t capture);
  [[noreturn]] void Read(size_t capture) const;
  void Wait();
  void End(Reader& reader);

  const ReportOptions& options_;
  const std::vector<std::string> outputs_;
  std::vector<Reader> running_;
  size_t ended_ = 0;
  size_t lost_data_ = 0;
  std::map<size_t, std::string> left_out_;  // by capture: why
};

void Readers::Read(size_t capture) const {
  // Nobody would read what it makes.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ReportOptions one = options_;
  one.each = false;
  one.captures = {options_.captures[capture]};
  one.output = outputs_[capture];
  int status = kFailed;
  try {
    ReportOutcome outcome;
    const Status done = RunReport(one, outcome);
    if (done.ok()) {
      status = outcome.data_lost ? kLostData : kDone;
    } else {
      (void)WriteAll(STDERR_FILENO, done.error().message, "stderr").ok();
    }
  } catch (const std::bad_alloc&) {
    (void)WriteAll(STDERR_FILENO, "out of memory", "stderr").ok();
  }
  ::_exit(status);
}

Status Readers::Start(size_t capture) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return SystemError("pipe2", errno, {});
  UniqueFd read_end(ends[0]);
  const UniqueFd write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return SystemError("fork", errno, {});
  if (pid == 0) {
    ::dup2(write_end.get(), STDERR_FILENO);
    Read(capture);
  }
  running_.push_back({pid, capture, std::move(read_end), {}});
  return Ok();
}

// Until at least one has ended.
void Readers::Wait() {
  std::vector<pollfd> polled;
  for (const Reader& reader : running_) polled.push_back({reader.output.get(), POLLIN, 0});
  if (::poll(polled.data(), polled.size(), -1) < 0) {
    XPU_CHECK(errno == EINTR);
    return;
  }
  for (size_t i = running_.size(); i-- > 0;) {
    if (polled[i].revents == 0) continue;
    std::array<char, 4096> bytes;
    const ssize_t n = ::read(running_[i].output.get(), bytes.data(), bytes.size());
    if (n > 0) {
      running_[i].text.append(bytes.data(), static_cast<size_t>(n));
    } else {
      End(running_[i]);
      running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
    }
  }
}

void Readers::End(Reader& reader) {
  int status = 0;
  while (::waitpid(reader.pid, &status, 0) < 0 && errno == EINTR) {
  }
  ++ended_;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == kLostData) ++lost_data_;
  if (code == kDone || code == kLostData) return;
  const std::string& path = options_.captures[reader.capture];
  std::string why = reader.text.empty() ? path : reader.text;
  if (WIFSIGNALED(status)) {
    why = Format("{}: its reader was killed by signal {}", path, WTERMSIG(status));
  }
  left_out_[reader.capture] = std::move(why);
}

Status Readers::Run(ReportOutcome& outcome) {
  const size_t captures = options_.captures.size();
  const size_t most = std::max(1u, std::thread::hardware_concurrency());
  Progress progress;
  progress.Begin(Format("writing the tables of {} captures", captures));
  for (size_t next = 0; next < captures || !running_.empty(); progress.Set(ended_, captures)) {
    if (next < captures && running_.size() < most) {
      XPU_RETURN_IF_ERROR(Start(next++));
    } else {
      Wait();
    }
  }
  progress.Stop();
  for (const auto& [capture, why] : left_out_) outcome.notes += Format("left out: {}\n", why);
  if (lost_data_ != 0) {
    outcome.data_lost = true;
    outcome.notes += Format("{} of {} captures lost data: see table loss\n", lost_data_, captures);
  }
  if (left_out_.empty()) return Ok();
  return Error{ErrorKind::kInvalid,
               Format("{} of {} captures were left out", left_out_.size(), captures),
               {}};
}

std::string WithoutExtension(const fs::path& path) {
  return path.extension() == ".xpu" ? path.stem().string() : path.filename().string();
}

}  // namespace

Result<std::vector<std::string>> NamesOfEach(const std::vector<std::string>& captures) {
  std::map<std::string, size_t> count;
  for (const std::string& capture : captures) ++count[WithoutExtension(capture)];
  std::vector<std::string> names;
  std::set<std::string> used;
  for (const std::string& capture : captures) {
    const fs::path path = fs::path(capture).lexically_normal();
    std::string name = WithoutExtension(path);
    if (count[name] > 1) {
      std::string directories = path.parent_path().relative_path().string();
      std::replace(directories.begin(), directories.end(), '/', '-');
      if (!directories.empty()) name = directories + "-" + name;
    }
    if (!used.insert(name).second) {
      return Error{ErrorKind::kUsage, Format("{}: another capture has the same name", capture),
                   "name each capture only once"};
    }
    names.push_back(std::move(name));
  }
  return names;
}

Status RunEach(const ReportOptions& options, ReportOutcome& outcome) {
  ReportOptions files = options;  // those in directories instead of these
  files.captures.clear();
  for (const std::string& path : options.captures) {
    XPU_ASSIGN_OR_RETURN(const std::vector<std::string> at, CapturesAt(path));
    files.captures.insert(files.captures.end(), at.begin(), at.end());
  }
  XPU_ASSIGN_OR_RETURN(std::vector<std::string> names, NamesOfEach(files.captures));
  const std::string end = options.value == "sqlite" ? ".sqlite" : "";
  std::vector<std::string> outputs;
  for (const std::string& name : names) {
    outputs.push_back((fs::path(options.output) / (name + end)).string());
  }
  if (::mkdir(options.output.c_str(), 0777) != 0 && errno != EEXIST) {
    return SystemError(Format("{}: mkdir", options.output), errno, {});
  }
  return Readers(files, std::move(outputs)).Run(outcome);
}

}  // namespace xpu
