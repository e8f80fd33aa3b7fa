// Disks that are full, pipes that close: what is lost is counted, what follows is whole.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "filled.h"

namespace xpu::test {
namespace {

std::vector<std::byte> FileContent(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(content));
  return {bytes.begin(), bytes.end()};
}

// Writes the rows; the status of the last write that failed.
Status TryRows(CaptureWriter& writer, uint32_t begin, uint32_t end) {
  Status status = Ok();
  const auto note = [&status](Status one) {
    if (!one.ok()) status = std::move(one);
  };
  for (uint32_t row = begin; row < end; ++row) {
    EventBatch kinds;
    VisitLists(kinds, [&]<typename Event>(const char*, std::vector<Event>&) {
      note(writer.Write(Filled<Event>(row, writer)));
    });
  }
  note(writer.Flush());
  return status;
}

void Replace(int fd, const char* path) {
  const UniqueFd other(::open(path, O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(other);
  ASSERT_GE(::dup3(other.get(), fd, O_CLOEXEC), 0);
}

uint64_t CountLines(const ReadBack& back) {
  uint64_t lines = 0;
  for (const auto& block : back.blocks) lines += block.size();
  return lines;
}

TEST(WriteFailure, HeaderOnAFullDisk) {
  auto writer =
      CaptureWriter::Create(UniqueFd(::open("/dev/full", O_WRONLY | O_CLOEXEC)), "out.xpu");
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().message, "out.xpu: write: No space left on device");
}

TEST(WriteFailure, DiskFullForAWhile) {
  const MemoryFile file;
  UniqueFd fd = file.Writer();
  const int number = fd.get();
  const UniqueFd keep(::fcntl(number, F_DUPFD_CLOEXEC, 0));
  auto writer = CaptureWriter::Create(std::move(fd), "out.xpu");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(TryRows(*writer, 0, 1).ok());
  const uint64_t bytes_before = writer->bytes_written();

  Replace(number, "/dev/full");
  const Status failed = TryRows(*writer, 1, 3);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "out.xpu: write: No space left on device");
  EXPECT_EQ(writer->events_written(), kKinds);
  EXPECT_EQ(writer->events_lost(), 2 * kKinds);
  EXPECT_EQ(writer->bytes_written(), bytes_before);

  ASSERT_GE(::dup3(keep.get(), number, O_CLOEXEC), 0);
  // Row 1 again: its texts were defined in the block that was lost.
  ASSERT_TRUE(TryRows(*writer, 1, 2).ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(writer->events_written(), 2 * kKinds);
  EXPECT_EQ(writer->events_lost(), 2 * kKinds);

  const ReadBack back = ReadLines(file.Bytes());
  ASSERT_EQ(back.blocks.size(), 2u);
  EXPECT_EQ(back.blocks[0], ExpectedRows(0, 1));
  EXPECT_EQ(back.blocks[1], ExpectedRows(1, 2));
  EXPECT_EQ(back.problems.references_lost, 0u);
  EXPECT_EQ(back.problems.blocks_damaged, 0u);
  EXPECT_EQ(back.problems.events_lost, 0u);  // the recorder's ledger tells them
}

// A limit on the file's size cuts a block in the middle, as a full disk does.
TEST(WriteFailure, BlockWrittenHalfWay) {
  const std::string path = testing::TempDir() + "xpu_format_half_test.xpu";
  auto writer = CaptureWriter::Create(
      UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)), "out.xpu");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(TryRows(*writer, 0, 2).ok());

  struct rlimit old {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit low { .rlim_cur = writer->bytes_written() + 500, .rlim_max = old.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  const Status failed = TryRows(*writer, 2, 4);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, old_handler);

  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "out.xpu: write: File too large");
  EXPECT_EQ(writer->events_lost(), 2 * kKinds);
  {
    const ReadBack back = ReadLines(FileContent(path));
    EXPECT_EQ(back.blocks.size(), 1u);
    EXPECT_TRUE(back.problems.cut);
    EXPECT_EQ(back.problems.bytes_skipped, 500u);
  }
  ASSERT_TRUE(TryRows(*writer, 4, 6).ok());
  ASSERT_TRUE(writer->Close().ok());
  const ReadBack back = ReadLines(FileContent(path));
  ASSERT_EQ(back.blocks.size(), 2u);
  EXPECT_EQ(back.blocks[0], ExpectedRows(0, 2));
  // The processes and mappings of the lost block are repeated once a block could be
  // written: with the next one.
  EXPECT_EQ(back.blocks[1], ExpectedRows(4, 6));
  EXPECT_EQ(back.problems.bytes_skipped, 500u);
  EXPECT_EQ(back.problems.references_lost, 0u);
  EXPECT_FALSE(back.problems.cut);
  std::remove(path.c_str());
}

// Blocks that fail while they fill, not at a flush: every event is either written or lost.
TEST(WriteFailure, CountsAreExact) {
  const MemoryFile file;
  UniqueFd fd = file.Writer();
  const int number = fd.get();
  const UniqueFd keep(::fcntl(number, F_DUPFD_CLOEXEC, 0));
  auto writer = CaptureWriter::Create(std::move(fd), "out.xpu", {.block_bytes = 2000});
  ASSERT_TRUE(writer.ok());
  Alive alive;
  alive.processes = {{ProcessEvent{}, "app"}};
  writer->SetLiveState(&alive);
  uint64_t given = 0;
  uint64_t failures = 0;
  for (uint32_t row = 0; row < 60; ++row) {
    if (row % 20 == 5) Replace(number, "/dev/full");
    if (row % 20 == 15) {
      ASSERT_GE(::dup3(keep.get(), number, O_CLOEXEC), 0);
    }
    failures += TryRows(*writer, row, row + 1).ok() ? 0 : 1;
    given += kKinds;
  }
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(failures, 30u);
  EXPECT_EQ(writer->events_written() + writer->events_lost(), given);
  EXPECT_EQ(writer->events_lost(), 30 * kKinds);
  const ReadBack back = ReadLines(file.Bytes());
  // Processes and mappings are there more than once: the writer restates them after a loss.
  uint64_t others = 0;
  for (const auto& block : back.blocks) {
    others += static_cast<uint64_t>(
        std::count_if(block.begin(), block.end(), [](const std::string& line) {
          return !line.starts_with("process_events ") && !line.starts_with("mappings ");
        }));
  }
  EXPECT_EQ(others, writer->events_written() / kKinds * (kKinds - 2));
  EXPECT_GT(CountLines(back), writer->events_written());
  EXPECT_EQ(back.problems.references_lost, 0u);
}

TEST(WriteFailure, Pipes) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read_end(ends[0]);
  std::vector<std::byte> received;
  std::thread consumer([&received, &read_end] {
    std::byte buffer[4096];
    for (ssize_t n = 0; (n = ::read(read_end.get(), buffer, sizeof(buffer))) > 0;) {
      received.insert(received.end(), buffer, buffer + n);
    }
  });
  auto writer = CaptureWriter::Create(UniqueFd(ends[1]), "pipe");
  ASSERT_TRUE(writer.ok());
  WriteRows(*writer, 0, 300);
  ASSERT_TRUE(writer->Close().ok());
  consumer.join();
  EXPECT_EQ(received.size(), writer->bytes_written());
  const ReadBack back = ReadLines(received);
  EXPECT_EQ(CountLines(back), 300 * kKinds);
  EXPECT_EQ(back.problems.bytes_skipped, 0u);
}

TEST(WriteFailure, PipeThatCloses) {
  const auto old_handler = std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  auto writer = CaptureWriter::Create(UniqueFd(ends[1]), "pipe");
  ASSERT_TRUE(writer.ok());
  UniqueFd(ends[0]).reset();
  const Status failed = TryRows(*writer, 0, 1);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "pipe: write: Broken pipe");
  EXPECT_EQ(writer->events_lost(), kKinds);
  std::signal(SIGPIPE, old_handler);
}

TEST(WriteFailure, CloseReportsTheLastBlock) {
  const MemoryFile file;
  UniqueFd fd = file.Writer();
  const int number = fd.get();
  auto writer = CaptureWriter::Create(std::move(fd), "out.xpu");
  ASSERT_TRUE(writer.ok());
  WriteRows(*writer, 0, 1);
  Replace(number, "/dev/full");
  const Status status = writer->Close();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "out.xpu: write: No space left on device");
  EXPECT_EQ(writer->events_lost(), kKinds);
}

}  // namespace
}  // namespace xpu::test
