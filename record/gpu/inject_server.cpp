#include "record/gpu/inject_server.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/send_files.h"
#include "format/base/text.h"
#include "record/kernel/kernel_features.h"
#include "record/kernel/own_limits.h"

namespace xpu {
namespace {

constexpr int kPeerPidFd = 77;  // since Linux 6.5

Status FillRandom(void* bytes, size_t size) {
  if (::getrandom(bytes, size, 0) != static_cast<ssize_t>(size)) {
    return SystemError("getrandom", errno);
  }
  return Ok();
}

std::string Hexadecimal(std::span<const uint8_t> bytes) {
  return ToHex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Takes the same time for all inputs, so that the secret cannot be guessed byte by byte.
bool SameSecret(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  uint8_t difference = a.size() != b.size();
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

pid_t PeerPid(int connection) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0
             ? credentials.pid
             : 0;
}

// The peer waits for the reply, so its pid cannot have been reused.
UniqueFd OpenPidfd(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

UniqueFd PeerPidfd(int connection, pid_t pid) {
  int fd = -1;
  socklen_t size = sizeof(fd);
  if (MayUse(KernelFeature::kPeerPidfd) &&
      ::getsockopt(connection, SOL_SOCKET, kPeerPidFd, &fd, &size) == 0) {
    return UniqueFd(fd);
  }
  return OpenPidfd(pid);
}

// Sends one message with the descriptors of the ring and the arena; -1 leaves a descriptor out.
bool SendReply(int connection, const wire::HelloReply& reply, int ring = -1, int arena = -1) {
  const int memfds[] = {ring, arena};
  return SendWithFiles(connection, &reply, sizeof(reply),
                       std::span(memfds).first(ring < 0    ? 0
                                               : arena < 0 ? 1
                                                           : 2));
}

// In a process with a limited address space the library maps at most a quarter of what is free: the
// ring, 16 MiB of unwind tables, 25 MiB of its own, and the 64 MiB that the C library reserves for
// the allocations of one more thread (128 until it has aligned them).
constexpr uint64_t kLeastFreeBytes = uint64_t{512} << 20;

// The ring is mapped twice, and its file must not exceed the largest file that is allowed.
uint64_t CapacityFor(uint64_t free_bytes) {
  constexpr uint64_t kShare = 32;
  const uint64_t largest_bytes = LargestFileBytes();
  uint64_t capacity = wire::kDefaultCapacityBytes;
  while (free_bytes != 0 && 2 * capacity > free_bytes / kShare) capacity /= 2;
  while (wire::kHeaderBytes + capacity > largest_bytes && capacity > wire::kPageBytes) {
    capacity /= 2;
  }
  return capacity;
}

Error NoRoom(uint64_t free_bytes) {
  return Error{ErrorKind::kInvalid,
               Format("its limit leaves {} MiB of address space, too little for the injected "
                      "library: raise it by {} MiB (RLIMIT_AS, 'ulimit -v')",
                      free_bytes >> 20, (kLeastFreeBytes - free_bytes + (1 << 20) - 1) >> 20),
               {}};
}

}  // namespace

Result<InjectServer> InjectServer::Listen(uint32_t settings) {
  InjectServer server;
  server.settings_ = settings;
  std::array<uint8_t, 8> name;
  XPU_RETURN_IF_ERROR(FillRandom(name.data(), name.size()));
  XPU_RETURN_IF_ERROR(FillRandom(server.secret_.data(), server.secret_.size()));
  XPU_RETURN_IF_ERROR(FillRandom(&server.session_, sizeof(server.session_)));
  server.name_ = "xpu-" + Hexadecimal(name);
  server.socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!server.socket_) return SystemError("unix socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, server.name_.data(), server.name_.size());  // an abstract name
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + server.name_.size());
  if (::bind(server.socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    return SystemError("unix socket: bind", errno);
  }
  if (::listen(server.socket_.get(), 128) != 0) return SystemError("unix socket: listen", errno);
  server.epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!server.epoll_) return SystemError("epoll_create", errno);
  server.Listen(server.socket_.get());
  return server;
}

// If epoll cannot take the descriptor, the connection is tested at the next poll.
void InjectServer::Listen(int fd) const {
  epoll_event event{};
  event.events = EPOLLIN;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

// Reads and discards pending bytes. Returns false after a hangup.
bool InjectServer::IsThere(const Pending& welcomed) {
  char bytes[16];
  const ssize_t n = ::recv(welcomed.connection.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

std::string InjectServer::EnvironmentValue() const {
  return Format("{}:{}:{:016x}", name_, Hexadecimal(secret_), session_);
}

InjectArrivals InjectServer::Accept(uint64_t now_ns, const Objection& objection) {
  InjectArrivals arrivals;
  for (size_t i = 0; i < kMaxAtOnce; ++i) {
    UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) break;
    if (pending_.size() >= kMaxPending) {
      // Anybody may connect, as often as he likes; those that were adopted stay.
      const auto oldest = std::find_if(pending_.begin(), pending_.end(), [](const Pending& other) {
        return other.attached_pid == 0;
      });
      if (oldest == pending_.end()) break;
      pending_.erase(oldest);
    }
    Listen(connection.get());
    pending_.push_back({.connection = std::move(connection), .since_ns = now_ns});
  }
  std::erase_if(welcomed_, [&](const Pending& welcomed) {
    const bool may_stay = welcomed.attached_pid != 0;
    return !IsThere(welcomed) || (!may_stay && now_ns - welcomed.since_ns > kPatienceNs);
  });
  std::erase_if(pending_, [&](Pending& pending) {
    if (Answer(pending, objection, arrivals)) return true;
    if (now_ns - pending.since_ns <= kPatienceNs) return false;
    if (pending.attached_pid != 0) {
      arrivals.refusals.push_back({pending.attached_pid, "the library in it does not answer"});
    }
    return true;
  });
  return arrivals;
}

void InjectServer::Adopt(UniqueFd connection, pid_t pid, uint64_t now_ns) {
  Listen(connection.get());
  pending_.push_back(
      {.connection = std::move(connection), .since_ns = now_ns, .attached_pid = pid});
}

std::vector<InjectRefusal> InjectServer::GiveUpExpected() {
  std::vector<InjectRefusal> refusals;
  for (const Pending& pending : std::exchange(pending_, {})) {
    if (pending.attached_pid == 0) continue;
    refusals.push_back(
        {pending.attached_pid, "the recording ended before the library in it could answer"});
  }
  return refusals;
}

void InjectServer::HangUp(uint64_t instance) {
  std::erase_if(welcomed_, [&](const Pending& welcomed) {
    return welcomed.attached_pid != 0 && welcomed.instance == instance;
  });
}

bool InjectServer::HasAdopted(pid_t pid) const {
  return std::any_of(welcomed_.begin(), welcomed_.end(), [&](const Pending& welcomed) {
    return welcomed.attached_pid != 0 && (pid == 0 || welcomed.attached_pid == pid);
  });
}

bool InjectServer::IsConnected(uint64_t instance) const {
  return std::any_of(welcomed_.begin(), welcomed_.end(), [&](const Pending& welcomed) {
    return welcomed.attached_pid != 0 && welcomed.instance == instance;
  });
}

// Returns true when the connection needs no further handling.
bool InjectServer::Answer(Pending& pending, const Objection& objection, InjectArrivals& arrivals) {
  const int connection = pending.connection.get();
  wire::Hello hello{};
  // The Hello is sent in one piece. Peeking leaves an incomplete one for the next call.
  const ssize_t n = ::recv(connection, &hello, sizeof(hello), MSG_PEEK | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  const bool is_attached = pending.attached_pid != 0;
  if (n <= 0) {  // hung up
    if (is_attached) {
      arrivals.refusals.push_back(
          {pending.attached_pid, "it ended before the library in it could answer"});
    }
    return true;
  }
  if (n < static_cast<ssize_t>(sizeof(hello))) return false;
  // Closing a connection with unread bytes would reset it.
  if (::recv(connection, &hello, sizeof(hello), MSG_DONTWAIT) != n) return true;

  const pid_t pid = is_attached ? pending.attached_pid : PeerPid(connection);
  const wire::HelloReply refusal{wire::kVersion, 0, 0, 0};
  if (!is_attached && !SameSecret(hello.secret, secret_)) {
    SendReply(connection, refusal);  // sent for another recording, so it is not a loss of this one
    return true;
  }
  const std::string why = objection ? objection(pid, hello.instance) : std::string();
  auto peer = why.empty() ? Welcome(pending, hello, pid)
                          : Result<InjectPeer>(Error{ErrorKind::kInvalid, why, {}});
  if (peer.ok()) {
    arrivals.peers.push_back(*std::move(peer));
    pending.instance = hello.instance;
    if (is_attached || welcomed_.size() < kMaxPending) welcomed_.push_back(std::move(pending));
  } else {
    SendReply(connection, refusal);
    arrivals.refusals.push_back({pid, peer.error().message});
  }
  return true;
}

Result<InjectPeer> InjectServer::Welcome(const Pending& pending, const wire::Hello& hello,
                                         pid_t pid) {
  const int connection = pending.connection.get();
  const bool is_attached = pending.attached_pid != 0;
  if (hello.version != wire::kVersion) {
    return Error{ErrorKind::kInvalid,
                 Format("the injected library has protocol version {}, xpu-record has version {}",
                        hello.version, wire::kVersion),
                 {}};
  }
  UniqueFd pidfd = is_attached ? OpenPidfd(pid) : PeerPidfd(connection, pid);
  if (!pidfd) return SystemError("pidfd of the program", errno);
  const uint64_t free_bytes = hello.free_address_bytes;
  if (free_bytes != 0 && free_bytes < kLeastFreeBytes) return NoRoom(free_bytes);
  XPU_ASSIGN_OR_RETURN(RingReader ring, RingReader::Create(CapacityFor(free_bytes), settings_));
  ring.header().patience_ns = kRecorderPatienceNs;
  ring.header().gate.store(gate_, std::memory_order_relaxed);
  ring.header().device_buffers = device_buffers_;
  ring.header().hang_ns = hang_ns_;
  ring.header().sample_period_bits = sample_period_bits_;
  ring.header().sample_buffer_bytes = sample_buffer_bytes_;
  capture_range_.copy(ring.header().capture_range, wire::kCaptureRangeBytes);
  const wire::HelloReply reply{wire::kVersion, 1, ring.capacity_bytes(), arena_bytes_};
  if (!SendReply(connection, reply, ring.memfd(), arena_memfd_)) {
    return SystemError("answering the injected library", errno);
  }
  return InjectPeer{.pid = pid,
                    .namespace_pid = hello.namespace_pid,
                    .instance = hello.instance,
                    .pidfd = std::move(pidfd),
                    .ring = std::move(ring),
                    .is_attached = is_attached};
}

}  // namespace xpu
