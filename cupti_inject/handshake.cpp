#include "cupti_inject/handshake.h"

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cupti_inject/lock.h"

namespace xpu::inject {
namespace {

constexpr uint64_t kMaxCapacityBytes = uint64_t{1} << 32;

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

bool ConnectSocket(int fd, const Invitation& invitation, uint64_t deadline_ns) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, invitation.socket_name, invitation.socket_name_bytes);
  const auto size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + invitation.socket_name_bytes);
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

bool SendHello(int fd, const Invitation& invitation, uint64_t instance) {
  wire::Hello hello{};
  hello.version = wire::kVersion;
  hello.namespace_pid = static_cast<uint32_t>(getpid());
  hello.instance = instance;
  std::memcpy(hello.secret, invitation.secret, sizeof(hello.secret));
  return send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(hello));
}

// The first descriptor goes to `memfd`, any other is closed.
void TakeDescriptors(msghdr& message, Descriptor& memfd) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      if (memfd.get() < 0) {
        memfd.Set(fd);
      } else {
        close(fd);
      }
    }
  }
}

bool ReceiveReply(int fd, uint64_t deadline_ns, wire::HelloReply* reply, Descriptor& memfd) {
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
    TakeDescriptors(message, memfd);
    received += static_cast<size_t>(n);
  }
  return true;
}

bool IsRing(int memfd, uint64_t capacity_bytes) {
  if (!std::has_single_bit(capacity_bytes) || capacity_bytes < wire::kHeaderBytes ||
      capacity_bytes < wire::kMaxMessageBytes || capacity_bytes > kMaxCapacityBytes) {
    return false;
  }
  // Unless it is sealed, shrinking it would kill the program.
  const int seals = fcntl(memfd, F_GET_SEALS);
  struct stat status {};
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(memfd, &status) == 0 &&
         static_cast<uint64_t>(status.st_size) >= wire::kHeaderBytes + capacity_bytes;
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
  *ring = {header, capacity_bytes};
  if (header->version == wire::kVersion && header->capacity_bytes == capacity_bytes) return true;
  Unmap(*ring);
  *ring = {};
  return false;
}

}  // namespace

bool Connect(const Invitation& invitation, uint64_t instance, uint64_t timeout_ns,
             MappedRing* ring) {
  const uint64_t deadline_ns = MonotonicNs() + timeout_ns;
  const Descriptor socket_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket_fd.get() < 0 || !ConnectSocket(socket_fd.get(), invitation, deadline_ns) ||
      !PeerIsTrusted(socket_fd.get()) || !SendHello(socket_fd.get(), invitation, instance)) {
    return false;
  }
  wire::HelloReply reply{};
  Descriptor memfd;
  return ReceiveReply(socket_fd.get(), deadline_ns, &reply, memfd) &&
         reply.version == wire::kVersion && reply.accepted == 1 && memfd.get() >= 0 &&
         IsRing(memfd.get(), reply.capacity_bytes) &&
         MapRing(memfd.get(), reply.capacity_bytes, ring);
}

void Unmap(const MappedRing& ring) {
  if (ring.header != nullptr) {
    munmap(ring.header, wire::kHeaderBytes + 2 * ring.capacity_bytes);
  }
}

}  // namespace xpu::inject
