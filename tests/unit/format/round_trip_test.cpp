#include <gtest/gtest.h>

#include "filled.h"
#include "format/block.h"
#include "format/message.h"

namespace xpu::test {
namespace {

TEST(RoundTrip, EveryFieldOfEveryKind) {
  const ReadBack back = ReadLines(FilledCapture(1, 1).bytes);
  ASSERT_EQ(back.blocks.size(), 1u);
  EXPECT_EQ(back.blocks[0], ExpectedRows(0, 1));
  EXPECT_EQ(back.problems.blocks_read, 1u);
  EXPECT_EQ(back.problems.references_lost, 0u);
}

TEST(RoundTrip, ManyRowsInManyBlocks) {
  constexpr uint32_t kRows = 200;
  const ReadBack back = ReadLines(FilledCapture(5, kRows).bytes);
  ASSERT_EQ(back.blocks.size(), 5u);
  for (uint32_t block = 0; block < 5; ++block) {
    EXPECT_EQ(back.blocks[block], ExpectedRows(block * kRows, (block + 1) * kRows));
  }
  EXPECT_EQ(back.problems.blocks_damaged, 0u);
  EXPECT_EQ(back.problems.events_lost, 0u);
  EXPECT_EQ(back.problems.unknown_events, 0u);
  EXPECT_EQ(back.problems.bytes_skipped, 0u);
  EXPECT_EQ(back.problems.references_lost, 0u);
  EXPECT_FALSE(back.problems.header_damaged);
  EXPECT_FALSE(back.problems.cut);
}

// A block that holds no event of a kind, columns that are all zero, ids that are none.
TEST(RoundTrip, EventsOfZeros) {
  const MemoryFile file;
  auto writer = CaptureWriter::Create(file.Writer(), "test");
  ASSERT_TRUE(writer.ok());
  Kernel kernel;
  ASSERT_TRUE(writer->Write(kernel).ok());
  kernel.stream_id = 7;
  ASSERT_TRUE(writer->Write(kernel).ok());
  ASSERT_TRUE(writer->Close().ok());
  const auto bytes = file.Bytes();
  CaptureReader reader = MustRead(bytes);
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.has_value());
  ASSERT_EQ(batch->kernels.size(), 2u);
  EXPECT_EQ(CountEvents(*batch), 2u);
  EXPECT_EQ(batch->kernels[0].stream_id, 0u);
  EXPECT_EQ(batch->kernels[1].stream_id, 7u);
  EXPECT_EQ(reader.String(batch->kernels[0].name), "");
  EXPECT_EQ(reader.problems().references_lost, 0u);
}

// Their columns take no bytes, and a reader reads only as many events as there are bytes.
TEST(RoundTrip, EqualEventsAreAllRead) {
  constexpr uint64_t kEvents = 1'000'000;
  const MemoryFile file;
  auto writer = CaptureWriter::Create(file.Writer(), "test");
  ASSERT_TRUE(writer.ok());
  for (uint64_t i = 0; i < kEvents; ++i) ASSERT_TRUE(writer->Write(Kernel{}).ok());
  ASSERT_TRUE(writer->Close().ok());
  const auto bytes = file.Bytes();
  CaptureReader reader = MustRead(bytes);
  uint64_t events = 0;
  while (const auto batch = reader.Next()) events += batch->kernels.size();
  EXPECT_EQ(events, kEvents);
}

TEST(RoundTrip, NothingWrittenIsNoBlock) {
  const MemoryFile file;
  auto writer = CaptureWriter::Create(file.Writer(), "test");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Flush().ok());
  ASSERT_TRUE(writer->Close().ok());
  const auto bytes = file.Bytes();
  EXPECT_EQ(bytes.size(), writer->bytes_written());
  CaptureReader reader = MustRead(bytes);
  EXPECT_FALSE(reader.Next().has_value());
  EXPECT_FALSE(reader.Next().has_value());
  EXPECT_FALSE(reader.problems().cut);
}

TEST(RoundTrip, TextsAndStacksAreStoredOnce) {
  const MemoryFile file;
  auto writer = CaptureWriter::Create(file.Writer(), "test");
  ASSERT_TRUE(writer.ok());
  const std::vector<Frame> deep = {
      {FrameKind::kUser, 3}, {FrameKind::kUser, 2}, {FrameKind::kUser, 1}};
  const StackId id = writer->InternStack(deep);
  EXPECT_EQ(writer->InternStack(deep), id);
  EXPECT_EQ(writer->InternStack({}), StackId{});
  const StackId caller = writer->InternStack(std::span(deep).subspan(1));
  EXPECT_LT(caller, id);
  EXPECT_EQ(writer->InternString("name"), writer->InternString("name"));
  EXPECT_EQ(writer->InternString(""), StringId{});
  CpuSample sample;
  sample.stack = id;
  ASSERT_TRUE(writer->Write(sample).ok());
  ASSERT_TRUE(writer->Close().ok());
  const auto bytes = file.Bytes();
  CaptureReader reader = MustRead(bytes);
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(reader.Stack(batch->cpu_samples.at(0).stack), deep);
  EXPECT_EQ(reader.stack_bound(), 5u);  // none, lost, three frames
}

// Blocks close by themselves near the size asked for, and never beyond the largest.
TEST(RoundTrip, BlocksHaveTheSizeAskedFor) {
  constexpr size_t kBlockBytes = 64 << 10;
  constexpr uint32_t kCalls = 100'000;
  const MemoryFile file;
  auto writer = CaptureWriter::Create(file.Writer(), "test", {.block_bytes = kBlockBytes});
  ASSERT_TRUE(writer.ok());
  for (uint32_t i = 0; i < kCalls; ++i) {
    ApiCall call;
    call.correlation_id = i;
    call.start_ns = NumberOf("start", i) >> 40;
    ASSERT_TRUE(writer->Write(call).ok());
  }
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(writer->events_written(), kCalls);
  const auto bytes = file.Bytes();
  std::vector<uint32_t> raw_sizes;
  for (size_t at = FindBlockMagic(bytes, 0); at < bytes.size();) {
    const auto header = ParseBlockHeader(std::span(bytes).subspan(at));
    ASSERT_TRUE(header.has_value());
    raw_sizes.push_back(header->raw_bytes);
    at += kBlockHeaderBytes + header->stored_bytes;
  }
  ASSERT_GT(raw_sizes.size(), 4u);
  for (size_t i = 1; i + 1 < raw_sizes.size(); ++i) {  // the first block is a guess
    EXPECT_GT(raw_sizes[i], kBlockBytes * 3 / 4) << i;
    EXPECT_LT(raw_sizes[i], kBlockBytes * 5 / 4) << i;
  }
}

TEST(RoundTrip, LongTextsAndDeepStacks) {
  const MemoryFile file;
  auto writer = CaptureWriter::Create(file.Writer(), "test");
  ASSERT_TRUE(writer.ok());
  constexpr size_t kMegabyte = size_t{1} << 20;
  const auto text = [](char c, size_t size) { return std::string(size, c); };
  RecordingInfo info;
  info.recorder_version = writer->InternString(text('a', kMegabyte));
  info.host_name = writer->InternString(text('b', kMegabyte));
  info.kernel_release = writer->InternString(text('c', kMegabyte));
  info.machine = writer->InternString(text('d', kMegabyte));
  info.command_line = writer->InternString(text('e', kMegabyte));
  info.settings = writer->InternString(text('f', 2 * kMegabyte));
  ASSERT_TRUE(writer->Write(info).ok());
  std::vector<Frame> frames;
  for (uint64_t i = 0; i < 5000; ++i) frames.push_back({FrameKind::kUser, i});
  CpuSample sample;
  sample.stack = writer->InternStack(frames);
  ASSERT_TRUE(writer->Write(sample).ok());
  ASSERT_TRUE(writer->Close().ok());

  const auto bytes = file.Bytes();
  CaptureReader reader = MustRead(bytes);
  EventBatch all;
  while (auto batch = reader.Next()) {
    if (!batch->recording_info.empty()) all.recording_info = batch->recording_info;
    if (!batch->cpu_samples.empty()) all.cpu_samples = batch->cpu_samples;
  }
  EXPECT_EQ(reader.problems().references_lost, 0u);
  ASSERT_EQ(all.recording_info.size(), 1u);
  EXPECT_EQ(reader.String(all.recording_info[0].recorder_version), text('a', kMegabyte));
  EXPECT_EQ(reader.String(all.recording_info[0].command_line), text('e', kMegabyte));
  EXPECT_EQ(reader.String(all.recording_info[0].settings), text('f', kMegabyte));  // cut
  ASSERT_EQ(all.cpu_samples.size(), 1u);
  const std::vector<Frame> innermost(frames.begin(), frames.begin() + 2048);
  EXPECT_EQ(reader.Stack(all.cpu_samples[0].stack), innermost);
}

}  // namespace
}  // namespace xpu::test
