#include "cupti_inject/handshake.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cupti_inject/lock.h"
#include "fake_recorder.h"

namespace xpu::inject {
namespace {

constexpr uint64_t kInstance = 0x1122334455667788;
constexpr uint64_t kPatience = 10'000'000'000;  // far more than an answer takes
constexpr uint64_t kShort = 200'000'000;

ptrdiff_t OpenDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(Handshake, GivesTheRing) {
  TestRing ring(64 << 10);
  const FakeRecorder recorder(&ring);
  const auto before = OpenDescriptors();
  MappedRing mapped;
  ASSERT_TRUE(Connect(recorder.connection_string(), kInstance, kPatience, &mapped));
  EXPECT_EQ(mapped.capacity_bytes, 64u << 10);
  ASSERT_NE(mapped.header, nullptr);
  mapped.header->heartbeat.store(42);
  EXPECT_EQ(ring.header().heartbeat.load(), 42u);
  // The data is there twice.
  auto* data = reinterpret_cast<std::byte*>(mapped.header) + wire::kHeaderBytes;
  data[5] = std::byte{99};
  EXPECT_EQ(data[(64 << 10) + 5], std::byte{99});
  Unmap(mapped);
  while (recorder.connections() == 0) SleepNs(1'000'000);
  EXPECT_EQ(recorder.last_hello().version, wire::kVersion);
  EXPECT_EQ(recorder.last_hello().instance, kInstance);
  EXPECT_EQ(recorder.last_hello().free_address_bytes, FreeAddressBytes());
  EXPECT_EQ(recorder.last_hello().attached, 0U);
  EXPECT_EQ(recorder.last_hello().namespace_pid, static_cast<uint32_t>(getpid()));
  // The recorder's side of the connection closes on its own thread.
  for (int i = 0; i < 5000 && OpenDescriptors() != before; ++i) SleepNs(1'000'000);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(Handshake, AnAttachShakesHandsOverAConnectionThatIsThere) {
  TestRing ring(64 << 10);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  const wire::HelloReply reply{wire::kVersion, 1, ring.capacity_bytes(), 0};
  const int fds[] = {ring.memfd()};
  SendReply(ends[1], reply, sizeof(reply), fds, 1);
  MappedRing mapped;
  ASSERT_TRUE(ShakeHands(ends[0], kInstance, kPatience, &mapped));
  wire::Hello hello{};
  ASSERT_EQ(recv(ends[1], &hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(hello)));
  EXPECT_EQ(hello.attached, 1U);
  EXPECT_EQ(hello.instance, kInstance);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(hello.secret), sizeof(hello.secret)),
            std::string(sizeof(hello.secret), '\0'));
  Unmap(mapped);
  WakeDescriptor peer;
  peer.Hold(ends[0]);
  EXPECT_TRUE(peer.IsHeard());
  close(ends[1]);
  EXPECT_FALSE(peer.IsHeard());
  EXPECT_FALSE(ShakeHands(ends[0], kInstance, kPatience, &mapped));
}

TEST(Handshake, AWaitEndsWithWhatIsWaitedFor) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  WakeDescriptor wake;
  wake.Hold(ends[0]);
  int looks = 0;
  wake.WaitUntil(kForever / 2, [&] { return ++looks == 3; });
  EXPECT_EQ(looks, 3);
  wake.WaitUntil(1, [&] { return ++looks == 0; });  // time is up
  close(ends[1]);
}

TEST(Handshake, NothingIsWaitedForWithoutARecorder) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  WakeDescriptor wake;
  wake.WaitUntil(kForever / 2, [] { return false; });
  wake.Hold(ends[0]);
  close(ends[1]);
  wake.WaitUntil(kForever / 2, [] { return false; });
}

// Far more than anything maps, sanitizers included.
TEST(Handshake, WhatALimitOfAddressSpaceLeaves) {
  constexpr rlim_t kLimit = rlim_t{1} << 50, kMost = rlim_t{1} << 47;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit limited{kLimit, before.rlim_max};
  if (before.rlim_max < kLimit || setrlimit(RLIMIT_AS, &limited) != 0) {
    GTEST_SKIP() << "limited already";
  }
  const uint64_t left = FreeAddressBytes();
  setrlimit(RLIMIT_AS, &before);
  EXPECT_LT(left, kLimit);
  EXPECT_GT(left, kLimit - kMost);
}

TEST(Handshake, WrongSecretIsRefused) {
  TestRing ring(64 << 10);
  const FakeRecorder recorder(&ring);
  ConnectionString connection_string = recorder.connection_string();
  connection_string.secret[15] ^= 1;
  MappedRing mapped;
  EXPECT_FALSE(Connect(connection_string, kInstance, kPatience, &mapped));
  EXPECT_EQ(mapped.header, nullptr);
}

TEST(Handshake, NobodyListens) {
  ConnectionString connection_string{};
  ASSERT_TRUE(ParseConnectionString("xpu-nobody-is-here:000102030405060708090a0b0c0d0eff:1",
                                    &connection_string));
  MappedRing mapped;
  const uint64_t begin = MonotonicNs();
  EXPECT_FALSE(Connect(connection_string, kInstance, kPatience, &mapped));
  EXPECT_LT(MonotonicNs() - begin, kPatience);
}

class BadAnswer : public ::testing::TestWithParam<Answer> {};

TEST_P(BadAnswer, IsRefusedInTimeAndLeavesNothingOpen) {
  TestRing ring(64 << 10);
  const FakeRecorder recorder(&ring, GetParam());
  MappedRing mapped;
  const uint64_t begin = MonotonicNs();
  EXPECT_FALSE(Connect(recorder.connection_string(), kInstance, kShort, &mapped));
  EXPECT_LT(MonotonicNs() - begin, 20 * kShort);  // not for ever; the machine may be busy
  EXPECT_EQ(mapped.header, nullptr);
}

INSTANTIATE_TEST_SUITE_P(All, BadAnswer,
                         ::testing::Values(Answer::kNothing, Answer::kHalf, Answer::kRefuse,
                                           Answer::kNoDescriptor, Answer::kWrongVersion,
                                           Answer::kHangUp));

TEST(Handshake, StoppedRecorderWhoseQueueIsFull) {
  // Nobody accepts: the backlog takes a few connections, then connect() says EAGAIN.
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "xpu-test-full-" + std::to_string(getpid());
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener.get(), 0), 0);
  const UniqueFd first(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(first.get(), reinterpret_cast<sockaddr*>(&address), size), 0);

  ConnectionString connection_string{};
  ASSERT_TRUE(ParseConnectionString((name + ":000102030405060708090a0b0c0d0eff:1").c_str(),
                                    &connection_string));
  MappedRing mapped;
  const uint64_t begin = MonotonicNs();
  EXPECT_FALSE(Connect(connection_string, kInstance, kShort, &mapped));
  EXPECT_GE(MonotonicNs() - begin, kShort);
  EXPECT_LT(MonotonicNs() - begin, 20 * kShort);
}

TEST(Handshake, MoreDescriptorsThanOneAreClosed) {
  TestRing ring(64 << 10);
  const FakeRecorder recorder(&ring, Answer::kTwoDescriptors);
  const auto before = OpenDescriptors();
  MappedRing mapped;
  ASSERT_TRUE(Connect(recorder.connection_string(), kInstance, kPatience, &mapped));
  Unmap(mapped);
  while (recorder.connections() == 0) SleepNs(1'000'000);
  for (int i = 0; i < 5000 && OpenDescriptors() != before; ++i) SleepNs(1'000'000);
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(Handshake, RingThatCouldShrinkIsRefused) {
  TestRing ring(64 << 10, /*sealed=*/false);
  const FakeRecorder recorder(&ring);
  MappedRing mapped;
  EXPECT_FALSE(Connect(recorder.connection_string(), kInstance, kPatience, &mapped));
}

TEST(Handshake, RingSmallerThanAMessageIsRefused) {
  TestRing ring(32 << 10);
  const FakeRecorder recorder(&ring);
  MappedRing mapped;
  EXPECT_FALSE(Connect(recorder.connection_string(), kInstance, kPatience, &mapped));
}

TEST(Handshake, RingThatSaysAnotherSizeIsRefused) {
  TestRing ring(64 << 10);
  ring.header().capacity_bytes = 128 << 10;
  const FakeRecorder recorder(&ring);
  MappedRing mapped;
  EXPECT_FALSE(Connect(recorder.connection_string(), kInstance, kPatience, &mapped));
}

// ---- the connection string

constexpr char kSecret[] = "000102030405060708090A0b0c0d0eff";

TEST(ConnectionString, WellFormed) {
  ConnectionString connection_string{};
  const std::string text = std::string("xpu-12ab:") + kSecret + ":fedcba9876543210";
  ASSERT_TRUE(ParseConnectionString(text.c_str(), &connection_string));
  EXPECT_EQ(std::string(connection_string.socket_name, connection_string.socket_name_bytes),
            "xpu-12ab");
  const uint8_t secret[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255};
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(connection_string.secret), 16),
            std::string(reinterpret_cast<const char*>(secret), 16));
  EXPECT_EQ(connection_string.session, 0xfedcba9876543210u);
}

TEST(ConnectionString, ShortSession) {
  ConnectionString connection_string{};
  ASSERT_TRUE(
      ParseConnectionString((std::string("n:") + kSecret + ":7").c_str(), &connection_string));
  EXPECT_EQ(connection_string.session, 7u);
}

TEST(ConnectionString, LongestName) {
  ConnectionString connection_string{};
  const std::string tail = std::string(":") + kSecret + ":1";
  EXPECT_TRUE(ParseConnectionString((std::string(107, 'n') + tail).c_str(), &connection_string));
  EXPECT_EQ(connection_string.socket_name_bytes, 107u);
  EXPECT_FALSE(ParseConnectionString((std::string(108, 'n') + tail).c_str(), &connection_string));
}

TEST(ConnectionString, AbsentOrMalformed) {
  ConnectionString connection_string{};
  EXPECT_FALSE(ParseConnectionString(nullptr, &connection_string));
  const std::string secret = kSecret;
  for (const std::string& text : {
           std::string(),
           std::string(":"),
           std::string("name"),
           "name:" + secret,
           "name:" + secret + ":",
           ":" + secret + ":1",
           "name:" + secret.substr(1) + ":1",
           "name:" + secret + "0:1",
           "name:" + secret.substr(2) + "0g:1",
           "name:" + secret + ":g",
           "name:" + secret + ":1 ",
           "name:" + secret + ":0x1",
           "name:" + secret + ":12345678901234567",
           "name:" + secret + ";1",
       }) {
    EXPECT_FALSE(ParseConnectionString(text.c_str(), &connection_string)) << text;
  }
}

TEST(ConnectionString, EveryCutIsRefused) {
  ConnectionString connection_string{};
  const std::string whole = std::string("name:") + kSecret + ":1";
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(ParseConnectionString(whole.substr(0, length).c_str(), &connection_string))
        << length;
  }
}

}  // namespace
}  // namespace xpu::inject
