#include "cupti_inject/handshake.h"

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace xpu::inject {
namespace {

constexpr uint64_t kMaxCapacityBytes = uint64_t{1} << 32;

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool ParseSecret(const char* text, uint8_t* secret) {
  for (size_t i = 0; i < wire::kSecretBytes; ++i) {
    const int high = DigitOf(text[2 * i]);
    if (high < 0) return false;  // also the end of the text
    const int low = DigitOf(text[2 * i + 1]);
    if (low < 0) return false;
    secret[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

bool ParseSession(const char* text, uint64_t* session) {
  const size_t digits = std::strlen(text);
  if (digits < 1 || digits > 16) return false;
  *session = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int digit = DigitOf(text[i]);
    if (digit < 0) return false;
    *session = *session << 4 | static_cast<uint64_t>(digit);
  }
  return true;
}

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { Set(-1); }
  void Set(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }
  int get() const { return fd_; }
  int Release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

bool WaitUntilReadable(int fd, uint64_t deadline_ns) {
  while (true) {
    const uint64_t now_ns = MonotonicNs();
    if (now_ns >= deadline_ns) return false;
    pollfd entry{fd, POLLIN, 0};
    const int ready = poll(&entry, 1, static_cast<int>((deadline_ns - now_ns) / 1'000'000 + 1));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool ConnectSocket(int fd, const ConnectionString& connection_string, uint64_t deadline_ns) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, connection_string.socket_name,
              connection_string.socket_name_bytes);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                           connection_string.socket_name_bytes);
  while (connect(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) {
    // EAGAIN: its queue is full. A unix socket connects at once or not at all.
    if ((errno != EAGAIN && errno != EINTR) || MonotonicNs() >= deadline_ns) return false;
    SleepNs(5'000'000);
  }
  return true;
}

// The name of an abstract socket is anybody's to take when its owner is gone.
bool PeerIsTrusted(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == 0 || peer.uid == geteuid());
}

// `secret`: nullptr after an attach.
bool SendHello(int fd, const uint8_t* secret, uint64_t instance, uint64_t free_address_bytes) {
  wire::Hello hello{};
  hello.version = wire::kVersion;
  hello.namespace_pid = static_cast<uint32_t>(getpid());
  hello.instance = instance;
  hello.free_address_bytes = free_address_bytes;
  hello.attached = secret == nullptr ? 1 : 0;
  if (secret != nullptr) std::memcpy(hello.secret, secret, sizeof(hello.secret));
  return send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(hello));
}

struct Descriptors {
  Descriptor ring;
  Descriptor arena;
};

// What is more than the two is closed.
void TakeDescriptors(msghdr& message, Descriptors& descriptors) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      if (descriptors.ring.get() < 0) {
        descriptors.ring.Set(fd);
      } else if (descriptors.arena.get() < 0) {
        descriptors.arena.Set(fd);
      } else {
        close(fd);
      }
    }
  }
}

bool ReceiveReply(int fd, uint64_t deadline_ns, wire::HelloReply* reply, Descriptors& descriptors) {
  size_t received = 0;
  while (received < sizeof(*reply)) {
    if (!WaitUntilReadable(fd, deadline_ns)) return false;
    iovec content{reinterpret_cast<std::byte*>(reply) + received, sizeof(*reply) - received};
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (n < 0) continue;
    TakeDescriptors(message, descriptors);
    received += static_cast<size_t>(n);
  }
  return true;
}

// Unless it is sealed, shrinking it would kill the program.
bool IsSealed(int memfd, uint64_t bytes) {
  const int seals = fcntl(memfd, F_GET_SEALS);
  struct stat status {};
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(memfd, &status) == 0 &&
         static_cast<uint64_t>(status.st_size) >= bytes;
}

bool IsRing(int memfd, uint64_t capacity_bytes) {
  return std::has_single_bit(capacity_bytes) && capacity_bytes >= wire::kMaxMessageBytes &&
         capacity_bytes <= kMaxCapacityBytes &&
         IsSealed(memfd, wire::kHeaderBytes + capacity_bytes);
}

bool MapRing(int memfd, uint64_t capacity_bytes, MappedRing* ring) {
  const size_t once = wire::kHeaderBytes + capacity_bytes;
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  void* space = mmap(nullptr, once + capacity_bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return false;
  auto* base = static_cast<std::byte*>(space);
  if (mmap(base, once, kProtection, MAP_SHARED | MAP_FIXED, memfd, 0) == MAP_FAILED ||
      mmap(base + once, capacity_bytes, kProtection, MAP_SHARED | MAP_FIXED, memfd,
           wire::kHeaderBytes) == MAP_FAILED) {
    munmap(space, once + capacity_bytes);
    return false;
  }
  auto* header = reinterpret_cast<wire::RingHeader*>(base);
  ring->header = header;
  ring->capacity_bytes = capacity_bytes;
  if (header->version == wire::kVersion && header->capacity_bytes == capacity_bytes) return true;
  Unmap(*ring);
  *ring = {};
  return false;
}

// A part of it where the program's address space is limited: the tables begin at the start.
void MapArena(int memfd, uint64_t bytes, uint64_t free_address_bytes, MappedRing* ring) {
  constexpr uint64_t kLeastBytes = uint64_t{16} << 20;
  constexpr uint64_t kShare = 16;  // of what is free
  if (memfd < 0 || !IsSealed(memfd, bytes)) return;
  for (; bytes >= wire::kPageBytes; bytes /= 8) {
    const bool is_much = free_address_bytes != 0 && bytes > free_address_bytes / kShare;
    if (is_much && bytes > kLeastBytes) continue;
    if (is_much) return;
    void* memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, memfd, 0);
    if (memory != MAP_FAILED) {
      ring->arena = static_cast<const std::byte*>(memory);
      ring->arena_bytes = bytes;
      return;
    }
    if (bytes <= kLeastBytes) return;
  }
}

// What follows once there is a connection.
bool AskForRing(int connection, const uint8_t* secret, uint64_t instance, uint64_t deadline_ns,
                MappedRing* ring) {
  const uint64_t free_address_bytes = FreeAddressBytes();
  wire::HelloReply reply{};
  Descriptors descriptors;
  if (!SendHello(connection, secret, instance, free_address_bytes) ||
      !ReceiveReply(connection, deadline_ns, &reply, descriptors)) {
    return false;
  }
  const int memfd = descriptors.ring.get();
  if (reply.version != wire::kVersion || reply.accepted != 1 || memfd < 0 ||
      !IsRing(memfd, reply.capacity_bytes) || !MapRing(memfd, reply.capacity_bytes, ring)) {
    return false;
  }
  MapArena(descriptors.arena.get(), reply.arena_bytes, free_address_bytes, ring);
  return true;
}

}  // namespace

bool ParseConnectionString(const char* text, ConnectionString* connection_string) {
  if (text == nullptr) return false;
  const char* colon = std::strchr(text, ':');
  if (colon == nullptr || colon == text) return false;
  const auto name_bytes = static_cast<size_t>(colon - text);
  // One byte of sun_path is the leading zero of an abstract name.
  if (name_bytes > sizeof(connection_string->socket_name) - 1) return false;
  std::memcpy(connection_string->socket_name, text, name_bytes);
  connection_string->socket_name_bytes = name_bytes;
  const char* secret = colon + 1;
  if (!ParseSecret(secret, connection_string->secret)) return false;
  const char* session = secret + 2 * wire::kSecretBytes;
  return *session == ':' && ParseSession(session + 1, &connection_string->session);
}

uint64_t FreeAddressBytes() {
  constexpr uint64_t kUnknownLimit = 1;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return kUnknownLimit;
  char text[64];
  const ssize_t n = read(fd, text, sizeof(text));
  close(fd);
  uint64_t pages = 0;
  for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; ++i) {
    pages = pages * 10 + static_cast<uint64_t>(text[i] - '0');
  }
  const uint64_t used = pages * wire::kPageBytes;
  return used == 0 || used >= limit.rlim_cur ? kUnknownLimit : limit.rlim_cur - used;
}

void WakeDescriptor::Hold(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

void WakeDescriptor::Ring() const {
  const char byte = 0;
  if (fd_ >= 0) send(fd_, &byte, sizeof(byte), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool WakeDescriptor::IsHeard() const {
  // It sends nothing any more: what can be read is the end.
  pollfd entry{fd_, POLLIN, 0};
  return fd_ >= 0 && poll(&entry, 1, 0) == 0;
}

bool Connect(const ConnectionString& connection_string, uint64_t instance, uint64_t timeout_ns,
             MappedRing* ring, WakeDescriptor* wake) {
  const uint64_t deadline_ns = MonotonicNs() + timeout_ns;
  Descriptor socket_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket_fd.get() < 0 || !ConnectSocket(socket_fd.get(), connection_string, deadline_ns) ||
      !PeerIsTrusted(socket_fd.get()) ||
      !AskForRing(socket_fd.get(), connection_string.secret, instance, deadline_ns, ring)) {
    return false;
  }
  if (wake != nullptr) wake->Hold(socket_fd.Release());
  return true;
}

bool ShakeHands(int connection, uint64_t instance, uint64_t timeout_ns, MappedRing* ring) {
  return AskForRing(connection, nullptr, instance, MonotonicNs() + timeout_ns, ring);
}

void Unmap(const MappedRing& ring) {
  if (ring.header != nullptr) {
    munmap(ring.header, wire::kHeaderBytes + 2 * ring.capacity_bytes);
  }
  if (ring.arena != nullptr) munmap(const_cast<std::byte*>(ring.arena), ring.arena_bytes);
}

}  // namespace xpu::inject
