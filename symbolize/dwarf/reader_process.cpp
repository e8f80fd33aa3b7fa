#include "symbolize/dwarf/reader_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/base/own_program.h"
#include "format/base/scheduler_times.h"
#include "format/base/send_files.h"
#include "format/base/text.h"
#include "symbolize/dwarf/debug_reader.h"

namespace xpu::dwarf {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// A file of 150 MB takes a second at most when all its units are asked for. Slow disks may take
// 30 ms for each megabyte; a damaged small file has to give up sooner than anybody wonders.
constexpr milliseconds kLeastPatience{1500};
constexpr uint64_t kBytesPerMillisecond = 32 << 10;
constexpr milliseconds kMostPatience{120'000};
// Of the patience: when an answer is due though the child has waited for a CPU most of the time.
constexpr int kMostStretch = 8;
// What is mapped, inflated, and indexed.
constexpr uint64_t kLeastMemory = uint64_t{1} << 30;
constexpr uint64_t kMemoryPerByte = 16;

milliseconds PatienceWith(uint64_t file_bytes) {
  return std::min(kMostPatience, kLeastPatience + milliseconds(file_bytes / kBytesPerMillisecond));
}

}  // namespace

std::unique_ptr<ReaderProcess> ReaderProcess::Start(const RegularFile& file, int alternate,
                                                    std::string name) {
  std::unique_ptr<ReaderProcess> reader(new ReaderProcess(std::move(name)));
  reader->patience_ = PatienceWith(static_cast<uint64_t>(file.info.st_size));
  if (!reader->Spawn()) {
    reader->failure_ =
        SystemError(Format("{}: starting the process that reads its lines", reader->name_), errno)
            .message;
  } else if (!reader->Greet(file, alternate)) {
    reader->Fail("it does not accept requests");
  }
  return reader;
}

std::unique_ptr<ReaderProcess> ReaderProcess::StartForTexts(int root, uid_t user, gid_t group,
                                                            std::string name) {
  std::unique_ptr<ReaderProcess> reader(new ReaderProcess(std::move(name)));
  reader->patience_ = kLeastPatience;
  ReaderGreeting greeting;
  greeting.reads_texts = 1;
  greeting.user = user;
  greeting.group = group;
  greeting.memory_bytes = kLeastMemory;
  if (!reader->Spawn() || !reader->Greet(greeting, std::span(&root, 1))) {
    reader->Fail("it was not started");
  }
  return reader;
}

bool ReaderProcess::Spawn() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  socket_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  char name[sizeof(kDebugReaderName)];
  std::memcpy(name, kDebugReaderName, sizeof(name));
  char* arguments[] = {name, nullptr};
  char* environment[] = {nullptr};
  const int error = StartOwnProgram(theirs.get(), arguments, environment, &child_);
  if (error == 0) return true;
  child_ = -1;
  socket_.reset();
  errno = error;
  return false;
}

bool ReaderProcess::Greet(const RegularFile& file, int alternate) {
  ReaderGreeting greeting;
  greeting.has_alternate = alternate >= 0 ? 1 : 0;
  greeting.user = file.info.st_uid;
  greeting.group = file.info.st_gid;
  greeting.memory_bytes = kLeastMemory + kMemoryPerByte * static_cast<uint64_t>(file.info.st_size);
  const int fds[] = {file.fd.get(), alternate};
  return Greet(greeting, std::span(fds).first(alternate >= 0 ? 2 : 1));
}

bool ReaderProcess::Greet(ReaderGreeting greeting, std::span<const int> fds) {
  greeting.becomes_user = ::geteuid() == 0 ? 1 : 0;
  greeting.cpu_seconds = static_cast<uint32_t>((patience_.count() + 999) / 1000);
  greeting.seconds = kMostStretch * greeting.cpu_seconds;
  return SendWithFiles(socket_.get(), &greeting, sizeof(greeting), fds);
}

nanoseconds ReaderProcess::TimeQueued() const {
  return nanoseconds(ReadSchedulerTimes(Format("/proc/{}", child_)).queued_ns);
}

ReaderProcess::Time ReaderProcess::Due() const {
  const Time due = asked_ + patience_;
  if (steady_clock::now() < due) return due;
  return std::min(due + (TimeQueued() - queued_before_), asked_ + kMostStretch * patience_);
}

bool ReaderProcess::Wait(short events) {
  while (true) {
    // Looked at once more when it is due: this thread may have waited for a CPU, too.
    const auto left = std::max(milliseconds(0), ceil<milliseconds>(Due() - steady_clock::now()));
    pollfd place{.fd = socket_.get(), .events = events, .revents = 0};
    const int ready = ::poll(&place, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready == 0 ? left.count() == 0 : errno != EINTR) return false;
  }
}

bool ReaderProcess::Send(const void* bytes, size_t size) {
  for (const char* at = static_cast<const char*>(bytes); size > 0;) {
    if (!Wait(POLLOUT)) return false;
    const ssize_t n = ::send(socket_.get(), at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool ReaderProcess::Receive(void* bytes, size_t size) {
  for (char* at = static_cast<char*>(bytes); size > 0;) {
    if (!Wait(POLLIN)) return false;
    const ssize_t n = ::recv(socket_.get(), at, size, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

const std::string* ReaderProcess::Ask(ReaderQuestion question,
                                      std::span<const uint64_t> addresses) {
  if (child_ < 0) return nullptr;
  asked_ = steady_clock::now();
  queued_before_ = TimeQueued();
  const ReaderRequest request{.question = question,
                              .count = static_cast<uint32_t>(addresses.size())};
  ReaderReply reply;
  const bool is_answered = Send(&request, sizeof(request)) &&
                           Send(addresses.data(), addresses.size_bytes()) &&
                           Receive(&reply, sizeof(reply));
  if (is_answered && reply.bytes <= kMostReplyBytes) {
    auto bytes = std::make_unique<std::string>(reply.bytes, '\0');
    if (Receive(bytes->data(), bytes->size())) {
      return replies_.emplace_back(std::move(bytes)).get();
    }
  }
  Fail(steady_clock::now() >= Due() ? Format("no answer within {} ms", patience_.count())
                                    : std::string());
  return nullptr;
}

std::vector<std::vector<SourceFrame>> ReaderProcess::FramesAt(std::span<const uint64_t> addresses) {
  if (const std::string* reply = Ask(ReaderQuestion::kFrames, addresses)) {
    if (auto frames = DecodeFrames(*reply, addresses.size())) return *std::move(frames);
    Fail("its answer is damaged");
  }
  return std::vector<std::vector<SourceFrame>>(addresses.size());
}

std::vector<SourceFunction> ReaderProcess::FunctionsAt(std::span<const uint64_t> addresses) {
  if (const std::string* reply = Ask(ReaderQuestion::kFunctions, addresses)) {
    if (auto functions = DecodeFunctions(*reply)) return *std::move(functions);
    Fail("its answer is damaged");
  }
  return {};
}

Result<std::string> ReaderProcess::TextOf(const std::string& path) {
  if (path.size() >= kMostPathBytes || path.find('\0') != std::string::npos) {
    return Error{ErrorKind::kInvalid, Format("{}: not a path", path), {}};
  }
  std::vector<uint64_t> words(path.size() / sizeof(uint64_t) + 1);
  std::memcpy(words.data(), path.data(), path.size());
  const std::string* reply = Ask(ReaderQuestion::kText, words);
  if (reply == nullptr) return Error{ErrorKind::kSystem, failure_, {}};
  std::string text = std::move(*replies_.back());
  replies_.pop_back();
  if (!text.empty() && text.front() == kIsText && text.size() - 1 <= kMostTextBytes) {
    return text.substr(1);
  }
  const bool is_refused = text.starts_with(kIsRefused);
  return Error{is_refused ? ErrorKind::kPermission : ErrorKind::kNotFound,
               Format("{}: {}", path, text.empty() ? "no answer" : text.substr(1, 200)),
               {}};
}

// What the child says of itself is how it ended.
void ReaderProcess::Fail(std::string why) {
  const std::string ended = End();
  failure_ =
      Format("{}: the process that reads its lines failed: {}", name_, why.empty() ? ended : why);
}

std::string ReaderProcess::End() {
  if (child_ < 0) return "it was not started";
  socket_.reset();
  int status = 0;
  pid_t ended = 0;
  // One that failed has ended, or does; one that reads from a server that is gone ends with it, and
  // is not waited for.
  for (int tries = 0; tries < 200 && ended == 0; ++tries) {
    if (tries == 10) ::kill(child_, SIGKILL);
    while ((ended = ::waitpid(child_, &status, WNOHANG)) < 0 && errno == EINTR) {
    }
    if (ended == 0) ::usleep(tries < 20 ? 200 : 5000);
  }
  child_ = -1;
  if (ended <= 0) return "it does not exit";
  if (WIFSIGNALED(status)) return Format("signal {}", WTERMSIG(status));
  return Format("status {}", WEXITSTATUS(status));
}

ReaderProcess::~ReaderProcess() {
  if (child_ < 0) return;
  ::kill(child_, SIGKILL);
  static_cast<void>(End());
}

}  // namespace xpu::dwarf
