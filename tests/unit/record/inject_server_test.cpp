// The handshake, with the injected library's own client on the other side.
#include "record/gpu/inject_server.h"

#include <cstring>
#include <thread>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cupti_inject/handshake.h"
#include "format/base/text.h"
#include "tests/unit/durations.h"

namespace xpu {
namespace {

using test::kSecond;

inject::ConnectionString ConnectionStringOf(const InjectServer& server) {
  inject::ConnectionString connection{};
  EXPECT_TRUE(inject::ParseConnectionString(server.EnvironmentValue().c_str(), &connection));
  return connection;
}

// Answers until a library has connected, at most `tries` times.
InjectArrivals AcceptOne(InjectServer& server, int tries = 200) {
  InjectArrivals all;
  for (int i = 0; i < tries && all.peers.empty() && all.refusals.empty(); ++i) {
    pollfd poll_fd{server.fd(), POLLIN, 0};
    ::poll(&poll_fd, 1, 5);
    all = server.Accept(0);
  }
  return all;
}

TEST(InjectServer, ConnectsAndHandsOverARing) {
  auto server = InjectServer::Listen();
  ASSERT_TRUE(server.ok());
  const inject::ConnectionString connection = ConnectionStringOf(*server);
  EXPECT_EQ(connection.session, server->session());
  inject::MappedRing ring;
  bool connected = false;
  std::thread client(
      [&] { connected = inject::Connect(connection, 0xabcdef, 5 * kSecond, &ring); });
  InjectArrivals arrivals = AcceptOne(*server);
  client.join();
  ASSERT_TRUE(connected);
  ASSERT_EQ(arrivals.peers.size(), 1u);
  InjectPeer& peer = arrivals.peers[0];
  EXPECT_EQ(peer.pid, ::getpid());
  EXPECT_EQ(peer.namespace_pid, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(peer.instance, 0xabcdefu);
  EXPECT_EQ(ring.capacity_bytes, wire::kDefaultCapacityBytes);
  // Both see the same memory.
  ring.header->counters[wire::kCounterMarkers][0] = 99;
  EXPECT_EQ(peer.ring.ReadCounters()[wire::kCounterMarkers], 99u);
  inject::Unmap(ring);
}

TEST(InjectServer, TwoServersDiffer) {
  auto a = InjectServer::Listen();
  auto b = InjectServer::Listen();
  EXPECT_NE(a->EnvironmentValue(), b->EnvironmentValue());
  EXPECT_NE(a->session(), b->session());
}

TEST(InjectServer, AWrongSecretGetsNothing) {
  auto server = InjectServer::Listen();
  inject::ConnectionString connection = ConnectionStringOf(*server);
  connection.secret[15] ^= 1;
  inject::MappedRing ring;
  bool connected = true;
  std::thread client([&] { connected = inject::Connect(connection, 1, kSecond, &ring); });
  InjectArrivals arrivals = AcceptOne(*server, 20);
  client.join();
  EXPECT_FALSE(connected);
  EXPECT_TRUE(arrivals.peers.empty());
  EXPECT_TRUE(arrivals.refusals.empty());
}

UniqueFd ConnectRaw(const InjectServer& server) {
  const std::string value = server.EnvironmentValue();
  const std::string name = value.substr(0, value.find(':'));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  return fd;
}

wire::Hello HelloFor(const InjectServer& server) {
  wire::Hello hello{};
  hello.version = wire::kVersion;
  std::memcpy(hello.secret, ConnectionStringOf(server).secret, sizeof(hello.secret));
  return hello;
}

TEST(InjectServer, AnotherVersionIsRefusedAndReported) {
  auto server = InjectServer::Listen();
  const UniqueFd fd = ConnectRaw(*server);
  wire::Hello hello = HelloFor(*server);
  hello.version = 77;
  ASSERT_EQ(::send(fd.get(), &hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(hello)));
  const InjectArrivals arrivals = server->Accept(0);
  ASSERT_EQ(arrivals.refusals.size(), 1u);
  EXPECT_EQ(arrivals.refusals[0].pid, ::getpid());
  EXPECT_EQ(arrivals.refusals[0].reason,
            Format("the injected library has protocol version 77, xpu-record has version {}",
                   wire::kVersion));
  wire::HelloReply reply{};
  ASSERT_EQ(::recv(fd.get(), &reply, sizeof(reply), 0), static_cast<ssize_t>(sizeof(reply)));
  EXPECT_EQ(reply.accepted, 0u);
}

// The capacity of its ring; 0: it is refused, for its lack of room.
uint64_t CapacityWithFree(uint64_t free_address_bytes) {
  auto server = InjectServer::Listen();
  const UniqueFd fd = ConnectRaw(*server);
  wire::Hello hello = HelloFor(*server);
  hello.free_address_bytes = free_address_bytes;
  EXPECT_EQ(::send(fd.get(), &hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(hello)));
  const InjectArrivals arrivals = server->Accept(0);
  if (arrivals.peers.empty()) {
    EXPECT_NE(arrivals.refusals.at(0).reason.find("RLIMIT_AS"), std::string::npos);
    return 0;
  }
  return arrivals.peers[0].ring.capacity_bytes();
}

TEST(InjectServer, AddressSpaceIsTheProgramsFirst) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  EXPECT_EQ(CapacityWithFree(0), wire::kDefaultCapacityBytes);  // no limit
  EXPECT_EQ(CapacityWithFree(1), 0u);
  EXPECT_EQ(CapacityWithFree(512 * kMiB - 1), 0u);
  EXPECT_EQ(CapacityWithFree(512 * kMiB), 8 * kMiB);
  EXPECT_EQ(CapacityWithFree(1024 * kMiB), wire::kDefaultCapacityBytes);
  EXPECT_EQ(CapacityWithFree(UINT64_MAX), wire::kDefaultCapacityBytes);
}

TEST(InjectServer, AdoptedConnectionNeedsNoSecretAndIsKeptUntilHangUp) {
  auto server = InjectServer::Listen();
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd library(ends[1]);
  server->Adopt(UniqueFd(ends[0]), ::getpid(), 0);
  EXPECT_TRUE(server->IsExpecting());
  wire::Hello hello{};
  hello.version = wire::kVersion;
  hello.instance = 5;
  ASSERT_EQ(::send(library.get(), &hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(hello)));
  InjectArrivals arrivals = AcceptOne(*server);
  ASSERT_EQ(arrivals.peers.size(), 1u);
  EXPECT_TRUE(arrivals.peers[0].is_attached);
  EXPECT_EQ(arrivals.peers[0].pid, ::getpid());
  EXPECT_FALSE(server->IsExpecting());
  wire::HelloReply reply{};
  ASSERT_EQ(::recv(library.get(), &reply, sizeof(reply), 0), static_cast<ssize_t>(sizeof(reply)));
  EXPECT_EQ(reply.accepted, 1u);
  server->Accept(100 * kSecond);  // others are forgotten after a while
  char byte;
  EXPECT_EQ(::recv(library.get(), &byte, 1, MSG_DONTWAIT), -1);
  server->HangUp(5);
  EXPECT_EQ(::recv(library.get(), &byte, 1, MSG_DONTWAIT), 0);
}

TEST(InjectServer, AdoptedConnectionsThatNeverAnswerAreRefusals) {
  auto server = InjectServer::Listen();
  UniqueFd libraries[2];
  for (int i = 0; i < 2; ++i) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    server->Adopt(UniqueFd(ends[0]), 70 + i, 0);
    libraries[i].reset(ends[1]);
  }
  const UniqueFd stranger = ConnectRaw(*server);
  EXPECT_TRUE(server->Accept(0).refusals.empty());
  libraries[0].reset();  // the process has ended
  const InjectArrivals arrivals = server->Accept(0);
  ASSERT_EQ(arrivals.refusals.size(), 1u);
  EXPECT_EQ(arrivals.refusals[0].pid, 70);
  EXPECT_NE(arrivals.refusals[0].reason.find("it ended"), std::string::npos);
  const auto given_up = server->GiveUpExpected();
  ASSERT_EQ(given_up.size(), 1u);
  EXPECT_EQ(given_up[0].pid, 71);
  EXPECT_FALSE(server->IsExpecting());
}

TEST(InjectServer, AHelloInPieces) {
  auto server = InjectServer::Listen();
  const UniqueFd fd = ConnectRaw(*server);
  const wire::Hello hello = HelloFor(*server);
  ASSERT_EQ(::send(fd.get(), &hello, 10, 0), 10);
  EXPECT_TRUE(server->Accept(0).peers.empty());
  const auto rest = static_cast<ssize_t>(sizeof(hello) - 10);
  ASSERT_EQ(::send(fd.get(), reinterpret_cast<const char*>(&hello) + 10, rest, 0), rest);
  EXPECT_EQ(server->Accept(0).peers.size(), 1u);
}

TEST(InjectServer, SilentConnectionsAreNotWaitedFor) {
  auto server = InjectServer::Listen();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(ConnectRaw(*server));
  EXPECT_TRUE(server->Accept(0).peers.empty());
  // They do not keep others out.
  const UniqueFd fd = ConnectRaw(*server);
  const wire::Hello hello = HelloFor(*server);
  ASSERT_EQ(::send(fd.get(), &hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(hello)));
  EXPECT_EQ(server->Accept(0).peers.size(), 1u);
  // After a while they are hung up on.
  server->Accept(10 * kSecond);
  char byte = 0;
  EXPECT_EQ(::recv(silent.back().get(), &byte, 1, 0), 0);
}

TEST(InjectServer, ARefusedProcessGetsNoRing) {
  auto server = InjectServer::Listen();
  const UniqueFd fd = ConnectRaw(*server);
  const wire::Hello hello = HelloFor(*server);
  ASSERT_EQ(::send(fd.get(), &hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(hello)));
  const InjectArrivals arrivals = server->Accept(0, [&](pid_t pid, uint64_t instance) {
    EXPECT_EQ(pid, ::getpid());
    EXPECT_EQ(instance, hello.instance);
    return std::string("one too many");
  });
  EXPECT_TRUE(arrivals.peers.empty());
  ASSERT_EQ(arrivals.refusals.size(), 1u);
  EXPECT_EQ(arrivals.refusals[0].reason, "one too many");
  wire::HelloReply reply{};
  ASSERT_EQ(::recv(fd.get(), &reply, sizeof(reply), 0), static_cast<ssize_t>(sizeof(reply)));
  EXPECT_EQ(reply.accepted, 0u);
}

// One that connects faster than it is answered does not keep the recorder.
TEST(InjectServer, ConnectionsAtOnceAreLimited) {
  auto server = InjectServer::Listen();
  std::vector<UniqueFd> many;
  for (int i = 0; i < 100; ++i) {
    many.push_back(ConnectRaw(*server));
    const wire::Hello hello = HelloFor(*server);
    ASSERT_EQ(::send(many.back().get(), &hello, sizeof(hello), 0),
              static_cast<ssize_t>(sizeof(hello)));
  }
  EXPECT_EQ(server->Accept(0).peers.size(), 64u);
  EXPECT_EQ(server->Accept(0).peers.size(), 36u);
}

TEST(InjectServer, ClosedConnectionsAreForgotten) {
  auto server = InjectServer::Listen();
  ConnectRaw(*server).reset();
  EXPECT_TRUE(server->Accept(0).peers.empty());
}

}  // namespace
}  // namespace xpu
