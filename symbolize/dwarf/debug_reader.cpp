#include "symbolize/dwarf/debug_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <malloc.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "format/base/file.h"
#include "symbolize/dwarf/file_source.h"
#include "symbolize/dwarf/reader_confinement.h"
#include "symbolize/dwarf/reader_messages.h"

namespace xpu {
namespace dwarf {
namespace {

constexpr int kSocket = 0;
constexpr uint32_t kMostAddresses = 1 << 26;

struct Greeted {
  ReaderGreeting greeting;
  std::array<UniqueFd, 2> files;
};

bool ReceiveGreeting(Greeted& greeted) {
  iovec part{.iov_base = &greeted.greeting, .iov_len = sizeof(greeted.greeting)};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t n = -1;
  while ((n = ::recvmsg(kSocket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL)) < 0 && errno == EINTR) {
  }
  if (n != sizeof(greeted.greeting) || greeted.greeting.magic != ReaderGreeting::kMagic) {
    return false;
  }
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  const size_t count = greeted.greeting.has_alternate != 0 ? 2 : 1;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(count * sizeof(int))) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
    greeted.files[i].reset(fd);
  }
  return true;
}

std::unique_ptr<DwarfFile> Open(UniqueFd fd, const char* name) {
  if (!fd) return nullptr;
  RegularFile file;
  file.fd = std::move(fd);
  if (::fstat(file.fd.get(), &file.info) != 0) return nullptr;
  auto opened = DwarfFile::Open(std::move(file), name);
  return opened.ok() ? std::move(opened).value() : nullptr;
}

std::string NoText(const char* operation, int error_number) {
  const Error error = SystemError(operation, error_number);
  return (error.kind == ErrorKind::kPermission ? kIsRefused : kIsNoText) + error.message;
}

// Of the process whose root this now is. Nothing but a regular file is opened, and no link in place
// of one: who names it may have made it.
std::string TextOf(const std::string& path) {
  const auto refuse = [](const char* why) { return kIsNoText + std::string(why); };
  struct stat info {};
  if (::fstatat(AT_FDCWD, path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return NoText("stat", errno);
  }
  // Before it is opened: to open a device may do something.
  if (!S_ISREG(info.st_mode)) return refuse("not a regular file");
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  const UniqueFd fd(::openat(AT_FDCWD, path.c_str(), kFlags));
  if (!fd) return NoText("open", errno);
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return refuse("not a regular file");
  if (static_cast<uint64_t>(info.st_size) > kMostTextBytes) return refuse("too large");
  std::string text(kMostTextBytes + 2, kIsText);
  size_t size = 1;
  while (size < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return NoText("read", errno);
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  if (size == text.size()) return refuse("too large");
  text.resize(size);
  return text.find('\0') == std::string::npos ? text : refuse("not a text");
}

// False: the process may not change its root, and that one is another.
bool EnterRoot(const UniqueFd& root) {
  struct stat wanted {};
  struct stat own {};
  if (::fstat(root.get(), &wanted) != 0 || !S_ISDIR(wanted.st_mode)) return false;
  if (::fchdir(root.get()) == 0 && ::chroot(".") == 0) return true;
  return ::stat("/", &own) == 0 && own.st_dev == wanted.st_dev && own.st_ino == wanted.st_ino &&
         ::chdir("/") == 0;
}

// Empty: it has no debug information.
std::string Answer(FileSource* source, const ReaderRequest& request,
                   const std::vector<uint64_t>& addresses) {
  if (request.question == ReaderQuestion::kText) {
    const char* path = reinterpret_cast<const char*>(addresses.data());
    return TextOf(std::string(path, strnlen(path, addresses.size() * sizeof(uint64_t))));
  }
  if (request.question == ReaderQuestion::kFunctions) {
    return Encode(source == nullptr ? std::vector<SourceFunction>()
                                    : source->FunctionsAt(addresses));
  }
  return Encode(source == nullptr ? FrameLists(addresses.size()) : source->FramesAt(addresses));
}

// The other process ends this one when it takes too long; without it, a signal does. 0: no limits.
void LimitTime(unsigned cpu_seconds, unsigned seconds) {
  const itimerval of_cpu{.it_interval = {}, .it_value = {static_cast<time_t>(cpu_seconds), 0}};
  ::setitimer(ITIMER_PROF, &of_cpu, nullptr);
  ::alarm(seconds);
}

int AnswerAll(FileSource* source, const ReaderGreeting& greeting) {
  const bool reads_texts = greeting.reads_texts != 0;
  ReaderRequest request;
  while (true) {
    LimitTime(0, 0);
    if (!ReadExactly(kSocket, &request, sizeof(request))) return 0;
    LimitTime(greeting.cpu_seconds + 1, greeting.seconds + 1);
    if (request.count > kMostAddresses) return 1;
    if ((request.question == ReaderQuestion::kText) != reads_texts) return 1;
    std::vector<uint64_t> addresses(request.count);
    if (!ReadExactly(kSocket, addresses.data(), addresses.size() * sizeof(uint64_t))) return 1;
    const std::string bytes = Answer(source, request, addresses);
    const ReaderReply reply{.bytes = bytes.size()};
    const std::string_view begin(reinterpret_cast<const char*>(&reply), sizeof(reply));
    if (!WriteAll(kSocket, begin, "socket").ok() || !WriteAll(kSocket, bytes, "socket").ok()) {
      return 1;
    }
  }
}

}  // namespace
}  // namespace dwarf

bool IsDebugReader(int argc, char** argv) {
  return argc == 1 && std::strcmp(argv[0], kDebugReaderName) == 0;
}

int RunDebugReader() {
  using namespace dwarf;
  // An index grows by pieces.
  ::mallopt(M_TOP_PAD, 4 << 20);
  // Also what the program that started it left open in all its children.
  ::syscall(SYS_close_range, 3, ~0U, 0);
  Greeted greeted;
  if (!ReceiveGreeting(greeted)) return 1;
  const bool reads_texts = greeted.greeting.reads_texts != 0;
  if (reads_texts && !EnterRoot(greeted.files[0])) return 3;
  if (!ConfineReader(greeted.greeting).empty()) return 2;
  LimitTime(greeted.greeting.cpu_seconds + 1, greeted.greeting.seconds + 1);
  if (reads_texts) return AnswerAll(nullptr, greeted.greeting);
  auto file = Open(std::move(greeted.files[0]), "file");
  auto alternate = Open(std::move(greeted.files[1]), "alternate file");
  if (alternate == nullptr) alternate = DwarfFile::Empty();
  std::unique_ptr<FileSource> source;
  if (file != nullptr) source = std::make_unique<FileSource>(std::move(file), std::move(alternate));
  return AnswerAll(source.get(), greeted.greeting);
}

}  // namespace xpu
