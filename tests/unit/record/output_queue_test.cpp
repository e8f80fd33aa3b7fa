// An output that takes nothing for a while, that fails, that never comes back.
#include "record/output/output_queue.h"

#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "format/events.h"
#include "format/reader.h"
#include "format/writer.h"

namespace xpu {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;
constexpr BlockCounts kCounts{.blocks = 1, .bytes = kBlockBytes, .events = 7, .given_events = 5};

std::string Block(char letter) { return std::string(kBlockBytes, letter); }

class OutputQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    ASSERT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    reader_.reset(ends_[0]);
    capacity_ = static_cast<size_t>(::fcntl(ends_[0], F_GETPIPE_SZ));
  }
  OutputQueue Queue(uint64_t limit_bytes, uint64_t patience_ns = 50'000'000) {
    return OutputQueue(UniqueFd(ends_[1]), "pipe",
                       {.limit_bytes = limit_bytes, .patience_ns = patience_ns});
  }
  std::string ReadAll() {
    std::string all;
    char bytes[4096];
    for (ssize_t n = 1; n > 0;) {
      n = ::read(reader_.get(), bytes, sizeof(bytes));
      if (n > 0) all.append(bytes, static_cast<size_t>(n));
    }
    return all;
  }

  int ends_[2] = {-1, -1};
  UniqueFd reader_;
  size_t capacity_ = 0;
};

TEST_F(OutputQueueTest, BlocksWaitForASlowReaderAndKeepTheirOrder) {
  OutputQueue queue = Queue(uint64_t{64} << 20, 10'000'000'000);
  ASSERT_TRUE(queue.Begin("header").ok());
  std::string expected = "header";
  for (int i = 0; i < 40; ++i) {  // far more than a pipe holds
    expected += Block(static_cast<char>('A' + i));
    ASSERT_TRUE(queue.Write(Block(static_cast<char>('A' + i)), kCounts).ok());
  }
  std::string got;
  std::thread reader([&] { got = ReadAll(); });
  EXPECT_TRUE(queue.Close().ok());
  reader.join();
  EXPECT_EQ(got, expected);
  EXPECT_EQ(queue.TakeLost().blocks, 0u);
}

TEST_F(OutputQueueTest, TheQueueIsBoundedAndNothingElseIsLost) {
  OutputQueue queue = Queue(4 * kBlockBytes, 10'000'000'000);
  int accepted = 0;
  Status status = Ok();
  while (accepted < 100 && (status = queue.Write(Block('x'), kCounts)).ok()) ++accepted;
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kBusy);
  // What the pipe has taken is no longer waiting.
  EXPECT_GE(accepted, 4);
  EXPECT_LE(accepted, 5 + static_cast<int>(capacity_ / kBlockBytes));
  EXPECT_EQ(queue.TakeLost().blocks, 0u);
  std::string got;
  std::thread reader([&] { got = ReadAll(); });
  EXPECT_TRUE(queue.Close().ok());
  reader.join();
  EXPECT_EQ(got.size(), static_cast<size_t>(accepted) * kBlockBytes);
}

TEST_F(OutputQueueTest, AReaderThatNeverReadsIsGivenUp) {
  OutputQueue queue = Queue(uint64_t{64} << 20);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(queue.Write(Block('x'), kCounts).ok());
  const Status closed = queue.Close();
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().message.substr(0, 37), "pipe: accepted no data for 0 s: its l");
  const BlockCounts lost = queue.TakeLost();
  const uint64_t taken = capacity_ / kBlockBytes;
  EXPECT_EQ(lost.blocks, 8 - taken);
  EXPECT_EQ(lost.given_events, 5 * lost.blocks);
  EXPECT_EQ(lost.bytes, kBlockBytes * lost.blocks);
}

TEST_F(OutputQueueTest, AfterAFailureEverythingIsLostUntilItIsReported) {
  OutputQueue queue = Queue(uint64_t{64} << 20);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(queue.Write(Block('x'), kCounts).ok());
  int in_the_pipe = 0;
  while (static_cast<size_t>(in_the_pipe) < capacity_) {
    ASSERT_EQ(::ioctl(reader_.get(), FIONREAD, &in_the_pipe), 0);
  }
  reader_.reset();  // EPIPE
  Status status = Ok();
  BlockCounts accepted{.blocks = 8};
  do {  // refused where the other thread's turn comes late
    status = queue.Write(Block('y'), kCounts);
    if (status.ok()) ++accepted.blocks;
  } while (status.ok() || status.error().kind == ErrorKind::kBusy);
  EXPECT_EQ(status.error().message, "pipe: write: Broken pipe");
  EXPECT_EQ(queue.TakeLost().blocks, accepted.blocks - capacity_ / kBlockBytes);
  EXPECT_FALSE(queue.Close().ok() && queue.TakeLost().blocks > 0);
}

// With a writer: what it counts as lost is what the file lacks, and the rest is complete.
TEST(OutputQueueOfACapture, EventsAreInTheFileOrCounted) {
  ::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  auto output = std::make_unique<OutputQueue>(
      UniqueFd(ends[1]), "pipe", OutputQueue::Options{.limit_bytes = size_t{128} << 10});
  OutputQueue& queue = *output;
  auto writer =
      CaptureWriter::Create(std::move(output), {.block_bytes = 16 << 10, .compression_level = -50});
  ASSERT_TRUE(writer.ok());
  constexpr uint64_t kSamples = 60000;
  std::string bytes;
  std::thread drain;
  uint64_t noise = 1;
  for (uint64_t i = 0; i < kSamples; ++i) {
    CpuSample sample;
    noise = noise * 6364136223846793005 + 1;  // so that nothing compresses
    sample.time_ns = noise;
    sample.pid = static_cast<uint32_t>(noise >> 40);
    const Frame frame{FrameKind::kUser, i / 1000};
    sample.stack = writer->InternStack({&frame, 1});
    sample.weight = i + 1;
    (void)writer->Write(sample);
    if (i != kSamples / 2) continue;
    EXPECT_GT(writer->events_lost(), 0u);  // nobody reads yet
    drain = std::thread([&] {
      char piece[4096];
      for (ssize_t n = 1; n > 0;) {
        n = ::read(reader.get(), piece, sizeof(piece));
        if (n > 0) bytes.append(piece, static_cast<size_t>(n));
      }
    });
  }
  queue.WaitForRoom();  // what is left is not refused
  const uint64_t lost = writer->events_lost();
  EXPECT_TRUE(writer->Close().ok());
  EXPECT_EQ(writer->events_lost(), lost);
  drain.join();
  auto capture = CaptureReader::FromBytes(std::as_bytes(std::span(bytes)), "pipe");
  ASSERT_TRUE(capture.ok());
  uint64_t read = 0;
  while (const auto batch = capture->Next()) {
    for (const CpuSample& sample : batch->cpu_samples) {
      ++read;
      ASSERT_EQ(capture->Node(sample.stack).frame.address, (sample.weight - 1) / 1000);
    }
  }
  EXPECT_EQ(read, writer->events_written());
  EXPECT_EQ(read + writer->events_lost(), kSamples);
  EXPECT_EQ(capture->problems().blocks_damaged, 0u);
  EXPECT_EQ(capture->problems().references_lost, 0u);
}

}  // namespace
}  // namespace xpu
