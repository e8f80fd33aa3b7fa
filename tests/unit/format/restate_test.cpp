// Every `restate_bytes` the tables start afresh and live processes and mappings are written again,
// so that the rest of a file can be read without what is before it.
#include <gtest/gtest.h>

#include "filled.h"
#include "format/block.h"

namespace xpu::test {
namespace {

ProcessEvent Process(CaptureWriter& writer, uint64_t time_ns, uint32_t pid, const char* name) {
  ProcessEvent event;
  event.time_ns = time_ns;
  event.pid = event.tid = pid;
  event.name = writer.InternString(name);
  return event;
}

Mapping Library(CaptureWriter& writer, uint64_t time_ns, uint32_t pid) {
  Mapping mapping;
  mapping.time_ns = time_ns;
  mapping.pid = mapping.tid = pid;
  mapping.start_address = 0x7f0000000000;
  mapping.size_bytes = 0x1000;
  mapping.path = writer.InternString("/lib/libx.so");
  mapping.build_id = writer.InternString("\x01\x02");
  return mapping;
}

CpuSample Sample(CaptureWriter& writer, uint64_t time_ns, uint32_t pid) {
  CpuSample sample;
  sample.time_ns = time_ns;
  sample.pid = sample.tid = pid;
  const Frame frames[] = {{FrameKind::kUser, 0x7f0000000010}, {FrameKind::kUser, 0x7f0000000020}};
  sample.stack = writer.InternStack(frames);
  return sample;
}

// The file header and the blocks from the one with this sequence number on.
std::vector<std::byte> WithoutBlocksBefore(std::vector<std::byte> bytes, uint64_t sequence) {
  const size_t first = FindBlockMagic(bytes, 0);
  for (size_t at = first; at < bytes.size(); at = FindBlockMagic(bytes, at + 1)) {
    const auto header = ParseBlockHeader(std::span(bytes).subspan(at));
    if (!header || header->sequence < sequence) continue;
    bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(first),
                bytes.begin() + static_cast<ptrdiff_t>(at));
    break;
  }
  return bytes;
}

TEST(Restate, TheSecondPartStandsAlone) {
  const MemoryFile file;
  auto writer = CaptureWriter::Create(file.Writer(), "test", {.restate_bytes = 1});
  ASSERT_TRUE(writer.ok());
  Alive alive;
  writer->SetLiveState(&alive);
  alive.processes = {{Process(*writer, 1, 10, "app"), "app"}};
  alive.mappings = {Library(*writer, 3, 10)};
  ASSERT_TRUE(writer->Write(Process(*writer, 1, 10, "app")).ok());
  ASSERT_TRUE(writer->Write(Process(*writer, 2, 11, "gone")).ok());
  ASSERT_TRUE(writer->Write(Library(*writer, 3, 10)).ok());
  ASSERT_TRUE(writer->Write(Library(*writer, 4, 11)).ok());
  ProcessEvent exit = Process(*writer, 5, 11, "");
  exit.kind = ProcessEventKind::kExit;
  ASSERT_TRUE(writer->Write(exit).ok());
  const StackId before = Sample(*writer, 6, 10).stack;
  ASSERT_TRUE(writer->Write(Sample(*writer, 6, 10)).ok());
  ASSERT_TRUE(writer->Flush().ok());
  const CpuSample after = Sample(*writer, 7, 10);
  EXPECT_GT(after.stack, before);  // ids go on upwards
  ASSERT_TRUE(writer->Write(after).ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(writer->events_written(), 7u);  // restated ones are not counted

  const auto second_part = WithoutBlocksBefore(file.Bytes(), 2);
  CaptureReader reader = MustRead(second_part);
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.has_value());
  ASSERT_EQ(batch->process_events.size(), 1u);
  EXPECT_TRUE(batch->process_events[0].restated);
  EXPECT_EQ(batch->process_events[0].kind, ProcessEventKind::kExisting);
  EXPECT_EQ(batch->process_events[0].time_ns, 1u);
  EXPECT_EQ(batch->process_events[0].pid, 10u);
  EXPECT_EQ(reader.String(batch->process_events[0].name), "app");
  ASSERT_EQ(batch->mappings.size(), 1u);
  EXPECT_TRUE(batch->mappings[0].restated);
  EXPECT_EQ(batch->mappings[0].time_ns, 3u);
  EXPECT_EQ(reader.String(batch->mappings[0].path), "/lib/libx.so");
  EXPECT_EQ(reader.String(batch->mappings[0].build_id), "\x01\x02");
  ASSERT_EQ(batch->cpu_samples.size(), 1u);
  EXPECT_EQ(StackText(reader, batch->cpu_samples[0].stack), "u7f0000000010;u7f0000000020;");
  EXPECT_EQ(reader.problems().references_lost, 0u);
  EXPECT_EQ(reader.problems().blocks_damaged, 1u);
  EXPECT_EQ(reader.problems().events_lost, 6u);
}

TEST(Restate, NotBeforeItIsDue) {
  const MemoryFile file;
  auto writer = CaptureWriter::Create(file.Writer(), "test", {.restate_bytes = 1 << 20});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Write(Process(*writer, 1, 10, "app")).ok());
  const StackId before = Sample(*writer, 2, 10).stack;
  ASSERT_TRUE(writer->Flush().ok());
  EXPECT_EQ(Sample(*writer, 3, 10).stack, before);
  ASSERT_TRUE(writer->Write(Sample(*writer, 3, 10)).ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_EQ(ReadLines(file.Bytes()).blocks.at(1).size(), 1u);
}

// Who keeps an id asks for this number before using it again.
TEST(Restate, TheNumberOfTheTablesSaysWhetherIdsHold) {
  const MemoryFile file, next_file;
  auto writer = CaptureWriter::Create(file.Writer(), "test", {.restate_bytes = 1 << 20});
  ASSERT_TRUE(writer.ok());
  const uint64_t number = writer->TablesNumber();
  const StackId stack = Sample(*writer, 1, 10).stack;
  ASSERT_TRUE(writer->Write(Sample(*writer, 1, 10)).ok());
  ASSERT_TRUE(writer->Flush().ok());
  ASSERT_EQ(writer->TablesNumber(), number);
  CpuSample kept;
  kept.stack = stack;
  ASSERT_TRUE(writer->Write(kept).ok());

  auto next = writer->NextPart(std::make_unique<FdOutput>(next_file.Writer(), "next"));
  ASSERT_TRUE(next.ok());
  EXPECT_GT(next->TablesNumber(), number);
  ASSERT_TRUE(writer->Close().ok());
  const auto bytes = file.Bytes();
  CaptureReader reader = MustRead(bytes);
  ASSERT_TRUE(reader.Next().has_value());
  const auto batch = reader.Next();
  ASSERT_TRUE(batch.has_value());
  EXPECT_FALSE(reader.Stack(batch->cpu_samples.at(0).stack).empty());

  const MemoryFile other;
  auto restarting = CaptureWriter::Create(other.Writer(), "test", {.restate_bytes = 1});
  ASSERT_TRUE(restarting.ok());
  const uint64_t before = restarting->TablesNumber();
  ASSERT_TRUE(restarting->Write(Sample(*restarting, 1, 10)).ok());
  ASSERT_TRUE(restarting->Flush().ok());
  EXPECT_GT(restarting->TablesNumber(), before);
}

// More live state than `restate_bytes`, than a block even, is stated once at a time.
TEST(Restate, ALargeStateIsRestatedOnceAtATime) {
  const MemoryFile file;
  auto writer =
      CaptureWriter::Create(file.Writer(), "test", {.block_bytes = 1000, .restate_bytes = 1});
  ASSERT_TRUE(writer.ok());
  // One block each, and each of them makes the state due: 1 + 2 + ... restated processes.
  constexpr uint32_t kProcesses = 200;
  Alive alive;
  writer->SetLiveState(&alive);
  for (uint32_t pid = 1; pid <= kProcesses; ++pid) {
    const std::string name = std::string(2000, 'n') + std::to_string(pid);
    const ProcessEvent event = Process(*writer, pid, pid, name.c_str());
    ASSERT_TRUE(writer->Write(event).ok());
    alive.processes.emplace_back(event, name);
  }
  ASSERT_TRUE(writer->Write(Sample(*writer, 1, 10)).ok());
  ASSERT_TRUE(writer->Write(Sample(*writer, 2, 10)).ok());
  ASSERT_TRUE(writer->Close().ok());
  uint64_t restated = 0;
  const auto bytes = file.Bytes();
  CaptureReader reader = MustRead(bytes);
  while (const auto batch = reader.Next()) {
    for (const ProcessEvent& event : batch->process_events) restated += event.restated ? 1 : 0;
  }
  EXPECT_LE(restated, uint64_t{kProcesses} * (kProcesses + 1));
  EXPECT_GE(restated, kProcesses);
  EXPECT_EQ(reader.problems().references_lost, 0u);
}

}  // namespace
}  // namespace xpu::test
