// A recording that goes on in another capture, and one that lost blocks: what a reader needs is
// repeated.
#include "record/session/rotation.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "format/reader.h"
#include "record/sink/part_snapshot.h"

namespace xpu {
namespace {

constexpr InstanceId kLibraryInstance{7};

constexpr uint64_t kAll = UINT64_MAX;

// Accepts as many blocks as `left` says.
class Gate : public BlockOutput {
 public:
  explicit Gate(std::string* bytes, uint64_t* left) : bytes_(bytes), left_(left) {}
  Status Begin(std::string_view header) override {
    *bytes_ += header;
    return Ok();
  }
  Status Write(std::string_view block, const BlockCounts&) override {
    if (*left_ == 0) return Error{ErrorKind::kBusy, "closed", {}};
    if (*left_ != kAll) --*left_;
    *bytes_ += block;
    return Ok();
  }
  Status Close() override { return Ok(); }

 private:
  std::string* bytes_;
  uint64_t* left_;
};

// All that a capture holds, the restated apart.
struct Content {
  std::unique_ptr<CaptureReader> reader;
  EventBatch news;
  EventBatch restated;

  std::string Text(StringId id) const { return std::string(reader->String(id)); }
};

Content Read(const std::string& bytes) {
  Content content;
  auto reader = CaptureReader::FromBytes(std::as_bytes(std::span(bytes)), "test");
  EXPECT_TRUE(reader.ok());
  content.reader = std::make_unique<CaptureReader>(*std::move(reader));
  while (auto batch = content.reader->Next()) {
    EventBatch& all = batch->restated ? content.restated : content.news;
    VisitLists(all, [&](std::string_view name, auto& list) {
      VisitLists(*batch, [&](std::string_view other, auto& more) {
        if constexpr (std::is_same_v<decltype(list), decltype(more)>) {
          if (name == other) list.insert(list.end(), more.begin(), more.end());
        }
      });
    });
  }
  EXPECT_EQ(content.reader->problems().references_lost, 0u);
  return content;
}

class PartsTest : public testing::Test {
 protected:
  PartsTest() {
    auto writer = CaptureWriter::Create(std::make_unique<Gate>(&first_, &blocks_left_));
    sink_.emplace(*std::move(writer));
    sink_->AddObserver(&processes_);
    sink_->SetLiveState(&processes_);
  }

  void WriteDefinitions() {
    RecordingInfo info;
    info.host_name = sink_->Intern("host");
    info.recording = 99;
    info.part = 1;
    sink_->Write(info);
    ProcessEvent process;
    process.time_ns = 5;
    process.pid = process.tid = 10;
    process.name = sink_->Intern("app");
    sink_->Write(process);
    Mapping mapping;
    mapping.time_ns = 6;
    mapping.pid = mapping.tid = 10;
    mapping.start_address = 0x1000;
    mapping.size_bytes = 0x1000;
    mapping.path = sink_->Intern("/lib/a.so");
    sink_->Write(mapping);
    SampleSource source;
    source.source = 1;
    source.name = sink_->Intern("cpu-clock");
    sink_->Write(source);
    Probe probe;
    probe.probe = 1;
    probe.function = sink_->Intern("malloc");
    sink_->Write(probe);
    GpuProcess gpu;
    gpu.instance = kLibraryInstance;
    gpu.time_ns = 7;
    sink_->Write(gpu);
    gpu.time_ns = 8;
    gpu.state = InjectState::kActive;
    gpu.cupti_path = sink_->Intern("libcupti.so");
    sink_->Write(gpu);
    for (uint64_t at = 1; at <= 6; ++at) {
      ClockPair pair;
      pair.instance = kLibraryInstance;
      pair.clock_ns = at;
      sink_->Write(pair);
    }
    CallbackName name;
    name.instance = kLibraryInstance;
    name.callback_id = 211;
    name.name = sink_->Intern("cudaLaunchKernel");
    sink_->Write(name);
    Device device;
    device.instance = kLibraryInstance;
    device.name = sink_->Intern("GPU");
    sink_->Write(device);
    GraphNode node;
    node.instance = kLibraryInstance;
    node.node_id = 3;
    sink_->Write(node);
    RankInfo rank;
    rank.instance = kLibraryInstance;
    rank.rank = 5;
    sink_->Write(rank);
    // Processes 7 and 8 are in containers, 9 has left its.
    for (const auto& [pid, id] : {std::pair{7, "old"}, std::pair{7, "new"}, std::pair{8, "b"},
                                  std::pair{9, "c"}, std::pair{9, ""}}) {
      ContainerInfo container;
      container.pid = static_cast<uint32_t>(pid);
      container.id = sink_->Intern(id);
      sink_->Write(container);
    }
    for (const uint32_t number : {0, 1, 1}) {
      NvtxSchemaEntry entry;
      entry.instance = kLibraryInstance;
      entry.schema = 9;
      entry.entry = number;
      entry.name = sink_->Intern("bytes");
      sink_->Write(entry);
    }
    RecordingSwitch off;
    off.time_ns = 20;
    off.cause = sink_->Intern("SIGUSR2");
    sink_->Write(off);
  }
  NvtxEvent Nvtx(NvtxKind kind, std::string_view text = {}, uint64_t range = 0) {
    NvtxEvent event;
    event.instance = kLibraryInstance;
    event.kind = kind;
    event.tid = 10;
    event.range = range;
    event.text = sink_->Intern(text);
    return event;
  }
  StackId PythonStack(uint32_t code) {
    const Frame frame{FrameKind::kPython, PythonFrame{.code = code}.Bits()};
    return sink_->Intern({&frame, 1});
  }
  void WriteSample(StackId stack, StackId python = {}) {
    CpuSample sample;
    sample.pid = 10;
    sample.stack = stack;
    sample.python_stack = python;
    sink_->Write(sample);
  }
  OccurringCode TakeHits(HitFiles& hits) {
    processes_.ApplyNotes();
    return hits.Take();
  }
  CaptureWriter BeginSecond() {
    auto ended = sink_->BeginPart(std::make_unique<Gate>(&second_, &blocks_left_), 2);
    EXPECT_TRUE(ended.ok());
    return *std::move(ended);
  }

  std::string first_, second_;
  uint64_t blocks_left_ = kAll;
  ProcessTable processes_;
  std::optional<EventSink> sink_;
};

TEST_F(PartsTest, TheNextPartBeginsWithTheCurrentState) {
  WriteDefinitions();
  CaptureWriter ended = BeginSecond();
  ASSERT_TRUE(ended.Close().ok());
  sink_->Close(RecordingEnd{});
  const Content first = Read(first_);
  EXPECT_TRUE(first.restated.devices.empty());
  const Content second = Read(second_);
  const EventBatch& again = second.restated;
  ASSERT_EQ(again.recording_info.size(), 1u);
  EXPECT_EQ(again.recording_info[0].recording, 99u);
  EXPECT_EQ(again.recording_info[0].part, 2u);
  EXPECT_NE(again.recording_info[0].start_ns, 0u);
  EXPECT_EQ(second.Text(again.recording_info[0].host_name), "host");
  ASSERT_EQ(again.process_events.size(), 1u);
  EXPECT_TRUE(again.process_events[0].restated);
  EXPECT_EQ(second.Text(again.process_events[0].name), "app");
  ASSERT_EQ(again.mappings.size(), 1u);
  EXPECT_EQ(second.Text(again.mappings[0].path), "/lib/a.so");
  EXPECT_EQ(again.sample_sources.size(), 1u);
  EXPECT_EQ(again.probes.size(), 1u);
  ASSERT_EQ(again.gpu_processes.size(), 1u);  // as it is, not as it was
  EXPECT_EQ(again.gpu_processes[0].time_ns, 8u);
  EXPECT_EQ(second.Text(again.gpu_processes[0].cupti_path), "libcupti.so");
  ASSERT_EQ(again.clock_pairs.size(), PartSnapshot::kClockPairs);
  EXPECT_EQ(again.clock_pairs.back().clock_ns, 6u);
  ASSERT_EQ(again.callback_names.size(), 1u);
  EXPECT_EQ(second.Text(again.callback_names[0].name), "cudaLaunchKernel");
  EXPECT_EQ(again.devices.size(), 1u);
  EXPECT_EQ(again.graph_nodes.size(), 1u);
  ASSERT_EQ(again.rank_infos.size(), 1u);
  EXPECT_EQ(again.rank_infos[0].rank, 5);
  ASSERT_EQ(again.container_infos.size(), 2u);
  EXPECT_EQ(second.Text(again.container_infos[0].id), "new");
  EXPECT_EQ(again.container_infos[1].pid, 8u);
  ASSERT_EQ(again.nvtx_schema_entries.size(), 2u);  // each once
  EXPECT_EQ(again.nvtx_schema_entries[1].entry, 1u);
  EXPECT_EQ(second.Text(again.nvtx_schema_entries[1].name), "bytes");
  ASSERT_EQ(again.recording_switches.size(), 1u);
  EXPECT_FALSE(again.recording_switches[0].is_on);
  // Nothing of it is news.
  EXPECT_EQ(sink_->events_written(), 1u);
  EXPECT_EQ(second.news.recording_end.size(), 1u);
}

TEST_F(PartsTest, AProcessThatHasEndedIsForgotten) {
  WriteDefinitions();
  sink_->Write(Nvtx(NvtxKind::kPush, "step"));
  sink_->Write(Nvtx(NvtxKind::kCategory, "io"));
  sink_->Forget(kLibraryInstance);
  sink_->ForgetContainer(7);
  BeginSecond();
  sink_->Close(RecordingEnd{});
  const EventBatch again = Read(second_).restated;
  ASSERT_EQ(again.container_infos.size(), 1u);
  EXPECT_EQ(again.container_infos[0].pid, 8u);
  EXPECT_TRUE(again.devices.empty() && again.gpu_processes.empty() && again.clock_pairs.empty() &&
              again.graph_nodes.empty() && again.nvtx_events.empty() && again.rank_infos.empty() &&
              again.nvtx_schema_entries.empty());
  EXPECT_EQ(again.probes.size(), 1u);
}

TEST_F(PartsTest, RangesThatAreOpenAndNames) {
  sink_->Write(Nvtx(NvtxKind::kDomain, "domain"));
  sink_->Write(Nvtx(NvtxKind::kPush, "epoch"));
  sink_->Write(Nvtx(NvtxKind::kPush, "step"));
  sink_->Write(Nvtx(NvtxKind::kPop));
  sink_->Write(Nvtx(NvtxKind::kPop));
  sink_->Write(Nvtx(NvtxKind::kPop));  // one too many
  sink_->Write(Nvtx(NvtxKind::kPush, "second epoch"));
  sink_->Write(Nvtx(NvtxKind::kStart, "one", 1));
  sink_->Write(Nvtx(NvtxKind::kStart, "two", 2));
  sink_->Write(Nvtx(NvtxKind::kEnd, "", 1));
  sink_->Write(Nvtx(NvtxKind::kMark, "mark"));
  BeginSecond();
  sink_->Close(RecordingEnd{});
  const Content second = Read(second_);
  std::vector<std::string> texts;
  for (const NvtxEvent& event : second.restated.nvtx_events)
    texts.push_back(second.Text(event.text));
  EXPECT_EQ(texts, (std::vector<std::string>{"domain", "second epoch", "two"}));
}

TEST_F(PartsTest, PythonCodesAreDefinedInEachPartThatUsesThem) {
  const uint32_t one = sink_->Define({.name = "one", .path = "a.py", .line_table = ""});
  const uint32_t two = sink_->Define({.name = "two", .path = "a.py", .line_table = ""});
  WriteSample({}, PythonStack(one));
  BeginSecond();
  WriteSample({}, PythonStack(two));
  WriteSample({}, PythonStack(two));
  sink_->Close(RecordingEnd{});
  const Content second = Read(second_);
  ASSERT_EQ(second.news.python_codes.size(), 1u);
  EXPECT_EQ(second.news.python_codes[0].code, two);
  EXPECT_EQ(second.Text(second.news.python_codes[0].name), "two");
}

TEST_F(PartsTest, EachPartHasItsOwnCodeAndLosses) {
  HitFiles hits(processes_);
  sink_->AddObserver(&hits);
  WriteDefinitions();
  const Frame frames[] = {{FrameKind::kKernel, 0xffff800000000010}, {FrameKind::kUser, 0x1010}};
  WriteSample(sink_->Intern(frames));
  sink_->losses().Add(LossKind::kSampleRingFull, 3);
  CaptureWriter ended = BeginSecond();
  const OccurringCode of_first = TakeHits(hits);
  const auto kernel_of_first = sink_->TakeKernelAddresses();
  const Frame other{FrameKind::kUser, 0x1020};
  WriteSample(sink_->Intern({&other, 1}));
  sink_->losses().Add(LossKind::kSampleRingFull, 4);
  const OccurringCode of_second = TakeHits(hits);
  ASSERT_TRUE(ended.Close().ok());
  sink_->Close(RecordingEnd{});

  EXPECT_EQ(kernel_of_first, (std::vector<uint64_t>{0xffff800000000010}));
  ASSERT_EQ(of_first.files.size(), 1u);
  EXPECT_EQ(of_first.files[0].offsets, (std::vector<uint64_t>{0xf, 0x10}));
  EXPECT_TRUE(sink_->TakeKernelAddresses().empty());
  ASSERT_EQ(of_second.files.size(), 1u);
  EXPECT_EQ(of_second.files[0].offsets, (std::vector<uint64_t>{0x1f, 0x20}));
  const Content first = Read(first_);
  ASSERT_EQ(first.news.losses.size(), 1u);
  EXPECT_EQ(first.news.losses[0].count, 3u);
  const Content second = Read(second_);
  ASSERT_EQ(second.news.losses.size(), 1u);
  EXPECT_EQ(second.news.losses[0].count, 4u);
}

// What dropped blocks defined is defined again after them.
TEST_F(PartsTest, DroppedDefinitionsAreRepeated) {
  blocks_left_ = 0;
  WriteDefinitions();
  const uint32_t code = sink_->Define({.name = "code", .path = "a.py", .line_table = ""});
  sink_->Flush();
  EXPECT_EQ(sink_->losses().total(LossKind::kOutputStalled), 27u);
  EXPECT_FALSE(sink_->failure());  // nothing is broken
  blocks_left_ = kAll;
  sink_->Flush();
  WriteSample({}, PythonStack(code));
  sink_->Close(RecordingEnd{});
  const Content content = Read(first_);
  EXPECT_EQ(content.restated.recording_info.size(), 1u);
  EXPECT_EQ(content.restated.callback_names.size(), 1u);
  EXPECT_EQ(content.restated.devices.size(), 1u);
  EXPECT_EQ(content.news.python_codes.size(), 1u);
  uint64_t lost = 0;
  for (const Loss& loss : content.news.losses) lost += loss.count;
  EXPECT_EQ(lost, 27u);
}

// The process ends between the two losses.
TEST_F(PartsTest, DefinitionsAreRepeatedUntilTheOutputAcceptsThem) {
  blocks_left_ = 0;
  WriteDefinitions();
  sink_->Flush();
  sink_->Forget(kLibraryInstance);
  WriteSample({});
  blocks_left_ = 2;  // the sample and the losses; not what is repeated after them
  sink_->Flush();
  EXPECT_EQ(blocks_left_, 0u);
  blocks_left_ = kAll;
  WriteSample({});
  sink_->Close(RecordingEnd{});
  const Content content = Read(first_);
  EXPECT_EQ(content.news.cpu_samples.size(), 2u);
  EXPECT_EQ(content.restated.callback_names.size(), 1u);
  EXPECT_EQ(content.restated.devices.size(), 1u);
}

TEST_F(PartsTest, DroppedDefinitionsAreRepeatedAtTheEndIfNothingElseComes) {
  blocks_left_ = 0;
  WriteDefinitions();
  sink_->Flush();
  blocks_left_ = kAll;
  sink_->Close(RecordingEnd{});
  const Content content = Read(first_);
  EXPECT_EQ(content.restated.callback_names.size(), 1u);
  EXPECT_EQ(content.news.recording_end.size(), 1u);
}

}  // namespace
}  // namespace xpu
