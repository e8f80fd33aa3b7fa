#include "fake_recorder.h"

#include <new>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace xpu::inject {
namespace {

constexpr char kSecretText[] = "000102030405060708090a0b0c0d0eff";

}  // namespace

void SendReply(int connection, const wire::HelloReply& reply, size_t bytes, const int* fds,
               size_t fd_count) {
  iovec content{const_cast<wire::HelloReply*>(&reply), bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  if (fd_count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
  }
  sendmsg(connection, &message, MSG_NOSIGNAL);
}

TestRing::TestRing(uint64_t capacity_bytes, bool sealed)
    : memfd_(memfd_create("test-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING)),
      capacity_bytes_(capacity_bytes) {
  const auto once = static_cast<off_t>(wire::kHeaderBytes + capacity_bytes);
  EXPECT_EQ(ftruncate(memfd_.get(), once), 0);
  if (sealed) {
    EXPECT_EQ(fcntl(memfd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  }
  void* space = mmap(nullptr, wire::kHeaderBytes + 2 * capacity_bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* base = static_cast<std::byte*>(space);
  mmap(base, wire::kHeaderBytes + capacity_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
       memfd_.get(), 0);
  mmap(base + once, capacity_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd_.get(),
       wire::kHeaderBytes);
  header_ = new (base) wire::RingHeader{};
  header_->version = wire::kVersion;
  header_->capacity_bytes = capacity_bytes;
  data_ = base + wire::kHeaderBytes;
}

TestRing::~TestRing() { munmap(header_, wire::kHeaderBytes + 2 * capacity_bytes_); }

std::vector<Received> TestRing::Drain() {
  std::vector<Received> messages;
  header_->heartbeat.fetch_add(1);
  uint64_t tail = header_->tail.load();
  while (tail != header_->head.load(std::memory_order_acquire)) {
    std::byte* place = data_ + (tail & (capacity_bytes_ - 1));
    auto* shared = reinterpret_cast<wire::MessageHeader*>(place);
    const uint32_t word = shared->size_and_state.load(std::memory_order_acquire);
    if ((word & wire::kReady) == 0) break;
    const uint32_t size = word & ~wire::kReady;
    messages.push_back({shared->kind, {place, place + size}});
    std::memset(static_cast<void*>(place), 0, size);
    tail += size;
    header_->tail.store(tail, std::memory_order_release);
  }
  return messages;
}

FakeRecorder::FakeRecorder(TestRing* ring, Answer answer) : ring_(ring), answer_(answer) {
  static std::atomic<int> number{0};
  name_ = "xpu-test-" + std::to_string(getpid()) + "-" + std::to_string(++number);
  stop_.reset(eventfd(0, EFD_CLOEXEC));
  socket_.reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name_.data(), name_.size());
  EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size())),
            0);
  EXPECT_EQ(listen(socket_.get(), 8), 0);
  thread_ = std::thread([this] { Serve(); });
}

FakeRecorder::~FakeRecorder() {
  const uint64_t one = 1;
  EXPECT_EQ(write(stop_.get(), &one, sizeof(one)), 8);
  thread_.join();
}

std::string FakeRecorder::Environment() const {
  return name_ + ":" + kSecretText + ":0123456789abcdef";
}

ConnectionString FakeRecorder::connection_string() const {
  ConnectionString connection_string{};
  EXPECT_TRUE(ParseConnectionString(Environment().c_str(), &connection_string));
  return connection_string;
}

void FakeRecorder::Serve() {
  std::vector<UniqueFd> silent;  // kept open: the client must not see a hang-up
  while (true) {
    pollfd entries[] = {{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    poll(entries, 2, -1);
    if (entries[1].revents != 0) return;
    UniqueFd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) continue;
    AnswerOne(connection.get());
    if (answer_ == Answer::kNothing || answer_ == Answer::kHalf) {
      silent.push_back(std::move(connection));
    }
  }
}

void FakeRecorder::AnswerOne(int connection) {
  wire::Hello hello{};
  if (recv(connection, &hello, sizeof(hello), MSG_WAITALL) != sizeof(hello)) return;
  hello_ = hello;
  wire::HelloReply reply{wire::kVersion, 1, ring_ == nullptr ? 0 : ring_->capacity_bytes(), 0};
  const int fds[] = {ring_ == nullptr ? -1 : ring_->memfd(), stop_.get()};
  size_t fd_count = 1;
  size_t bytes = sizeof(reply);
  const ConnectionString own = connection_string();
  const bool known = std::memcmp(hello.secret, own.secret, sizeof(hello.secret)) == 0;
  if (!known || answer_ == Answer::kRefuse) reply.accepted = 0;
  if (reply.accepted == 0 || answer_ == Answer::kNoDescriptor) fd_count = 0;
  if (answer_ == Answer::kTwoDescriptors) fd_count = 2;
  if (answer_ == Answer::kWrongVersion) reply.version = wire::kVersion + 1;
  if (answer_ == Answer::kHalf) bytes /= 2;
  if (answer_ != Answer::kNothing && answer_ != Answer::kHangUp) {
    SendReply(connection, reply, bytes, fds, fd_count);
  }
  connections_.fetch_add(1);
}

}  // namespace xpu::inject
