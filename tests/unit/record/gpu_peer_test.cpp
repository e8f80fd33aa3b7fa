// From messages in the ring to events in a capture, and what goes wrong on the way to the ledger.
#include "record/gpu/gpu_peer.h"

#include <gtest/gtest.h>

#include "cupti_inject/cupti_abi.h"
#include "record/base/clock.h"
#include "tests/unit/record/peer_testing.h"

namespace xpu {
namespace {

using test::kInstance;

class GpuPeerTest : public test::PeerTest {
 protected:
  bool SendName(uint32_t id, std::string_view text) {
    wire::NameMessage message{};
    message.name_id = id;
    message.text_bytes = static_cast<uint32_t>(text.size());
    return producer_.Send(wire::MessageKind::kName, message, text.data(), text.size());
  }
  void SendKernel(uint32_t correlation_id, uint32_t name_id) {
    SendKernel(correlation_id, name_id, correlation_id * 10, correlation_id * 10 + 5);
  }
  void SendKernel(uint32_t correlation_id, uint32_t name_id, uint64_t start_ns, uint64_t end_ns) {
    cupti::Kernel record{};
    record.kind = cupti::kKindConcurrentKernel;
    record.correlation_id = correlation_id;
    record.start_ns = start_ns;
    record.end_ns = end_ns;
    wire::ActivityMessage message{};
    message.name_id = name_id;
    message.record_size_bytes = sizeof(record);
    ASSERT_TRUE(producer_.Send(wire::MessageKind::kActivity, message, &record, sizeof(record)));
    producer_.Count(wire::kCounterActivities);
  }
  void SendCallbackName(uint32_t id, std::string_view text) {
    wire::CallbackNameMessage message{};
    message.domain = 1;
    message.callback_id = id;
    message.text_bytes = static_cast<uint32_t>(text.size());
    ASSERT_TRUE(
        producer_.Send(wire::MessageKind::kCallbackName, message, text.data(), text.size()));
  }
  void SendCall(uint32_t callback_id, uint32_t correlation_id, int32_t result = 0,
                uint32_t graph_nodes = 0) {
    wire::ApiCallMessage message{};
    message.domain = 1;
    message.callback_id = callback_id;
    message.correlation_id = correlation_id;
    message.tid = 77;
    message.start_ns = 1000;
    message.end_ns = 2000;
    message.return_value = result;
    message.graph_nodes = graph_nodes;
    ASSERT_TRUE(producer_.Send(wire::MessageKind::kApiCall, message));
    producer_.Count(wire::kCounterCalls);
  }
  void SendDetail(wire::DetailKind kind, uint64_t number, std::string_view text) {
    wire::DetailMessage message{};
    message.detail = kind;
    message.number = number;
    message.text_bytes = static_cast<uint32_t>(text.size());
    ASSERT_TRUE(producer_.Send(wire::MessageKind::kDetail, message, text.data(), text.size()));
  }
};

TEST_F(GpuPeerTest, MessagesBecomeEvents) {
  MakePeer();
  ASSERT_TRUE(SendName(1, "_Z3foov"));
  SendKernel(5, 1);
  SendKernel(6, 0);
  SendCallbackName(307, "cuLaunchKernel");
  SendCall(307, 5, 3);
  wire::ClockPairMessage pair{};
  pair.before_ns = 10;
  pair.cupti_ns = 20;
  pair.after_ns = 30;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kClockPair, pair));
  SendDetail(wire::DetailKind::kCuptiPath, 130001, "/lib/libcupti.so.13");
  SendDetail(wire::DetailKind::kDriverVersion, 13000, "");
  producer_.SetState(wire::State::kFinished);
  peer_->Drain(*sink_);
  EXPECT_EQ(sink_->losses().total(), 0u);

  const EventBatch events = Events();
  ASSERT_EQ(events.kernels.size(), 2u);
  EXPECT_EQ(events.kernels[0].instance, InstanceId{kInstance});
  EXPECT_EQ(events.kernels[0].correlation_id, 5u);
  EXPECT_EQ(events.kernels[0].start_ns, 50u);
  EXPECT_EQ(Text(events.kernels[0].name), "_Z3foov");
  EXPECT_EQ(Text(events.kernels[1].name), "");
  ASSERT_EQ(events.api_calls.size(), 1u);
  EXPECT_EQ(events.api_calls[0].domain, ApiDomain::kDriver);
  EXPECT_EQ(events.api_calls[0].callback_id, 307u);
  EXPECT_EQ(events.api_calls[0].correlation_id, 5u);
  EXPECT_EQ(events.api_calls[0].tid, 77u);
  EXPECT_EQ(events.api_calls[0].start_ns, 1000u);
  EXPECT_EQ(events.api_calls[0].end_ns, 2000u);
  EXPECT_EQ(events.api_calls[0].return_value, 3);
  ASSERT_EQ(events.callback_names.size(), 1u);
  EXPECT_EQ(Text(events.callback_names[0].name), "cuLaunchKernel");
  ASSERT_EQ(events.clock_pairs.size(), 1u);
  EXPECT_EQ(events.clock_pairs[0].before_ns, 10u);
  EXPECT_EQ(events.clock_pairs[0].clock_ns, 20u);
  EXPECT_EQ(events.clock_pairs[0].after_ns, 30u);
  ASSERT_EQ(events.gpu_processes.size(), 2u);
  EXPECT_EQ(events.gpu_processes[0].state, InjectState::kConnected);
  EXPECT_EQ(events.gpu_processes[0].pid, 4711u);
  EXPECT_EQ(events.gpu_processes[0].namespace_pid, 1u);
  EXPECT_EQ(events.gpu_processes[1].state, InjectState::kFinished);
  EXPECT_EQ(events.gpu_processes[1].cupti_version, 130001u);
  EXPECT_EQ(events.gpu_processes[1].driver_version, 13000u);
  EXPECT_EQ(Text(events.gpu_processes[1].cupti_path), "/lib/libcupti.so.13");
}

// The report finds them in the records: they are reported at the end, and not stored again.
TEST_F(GpuPeerTest, WorkWithoutATimeIsCounted) {
  MakePeer();
  SendKernel(1, 0, 0, 0);
  SendKernel(2, 0, 20, 19);
  SendKernel(3, 0, 20, 20);
  cupti::Synchronization wait{};  // CUPTI gives those of events none
  wait.kind = cupti::kKindSynchronization;
  wire::ActivityMessage message{};
  message.record_size_bytes = sizeof(wait);
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kActivity, message, &wait, sizeof(wait)));
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kInvalidTime), 2u);
  EXPECT_EQ(sink_->losses().total(), 2u);
  const EventBatch events = Events();
  EXPECT_EQ(events.kernels.size(), 3u);
  EXPECT_TRUE(events.losses.empty());
}

TEST_F(GpuPeerTest, DeviceRecordsAreAlsoKeptRaw) {
  MakePeer();
  cupti::Device record{};
  record.kind = cupti::kKindDevice;
  record.device_id = 3;
  record.uuid[15] = 9;
  ASSERT_TRUE(SendName(1, "NVIDIA H200"));
  wire::ActivityMessage message{};
  message.name_id = 1;
  message.record_size_bytes = sizeof(record);
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kActivity, message, &record, sizeof(record)));
  peer_->Drain(*sink_);
  const EventBatch events = Events();
  ASSERT_EQ(events.devices.size(), 1u);
  EXPECT_EQ(events.devices[0].device_id, 3u);
  EXPECT_EQ(Text(events.devices[0].name), "NVIDIA H200");
  EXPECT_EQ(Text(events.devices[0].uuid), std::string(15, '\0') + '\x09');
  ASSERT_EQ(events.raw_activities.size(), 1u);
  EXPECT_EQ(events.raw_activities[0].kind, cupti::kKindDevice);
  EXPECT_EQ(Text(events.raw_activities[0].bytes),
            std::string(reinterpret_cast<const char*>(&record), sizeof(record)));
  EXPECT_EQ(Text(events.raw_activities[0].name), "NVIDIA H200");
}

TEST_F(GpuPeerTest, MessagesThatDoNotFitAreCounted) {
  MakePeer();
  wire::ActivityMessage activity{};
  activity.record_size_bytes = 100;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kActivity, activity, "short", 5));
  activity.record_size_bytes = 0xffffffff;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kActivity, activity));
  wire::NameMessage name{};
  name.text_bytes = 9;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kName, name, "12345678", 8));
  wire::ApiCallMessage call{};
  call.domain = 7;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kApiCall, call));
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kApiCall, wire::NameMessage{}));  // too short
  ASSERT_TRUE(producer_.Send(static_cast<wire::MessageKind>(99), wire::NameMessage{}));
  SendDetail(static_cast<wire::DetailKind>(99), 0, "x");
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kWireInvalid), 7u);
  EXPECT_EQ(sink_->losses().total(), 7u);
}

TEST_F(GpuPeerTest, NameThatWasNotSent) {
  MakePeer();
  SendKernel(1, 42);
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kWireInvalid), 1u);
  EXPECT_EQ(Events().kernels.size(), 1u);
}

TEST_F(GpuPeerTest, CountersBecomeLosses) {
  MakePeer();
  producer_.Count(wire::kCounterActivitiesDropped, 3);
  producer_.Count(wire::kCounterCallsDropped, 4);
  producer_.Count(wire::kCounterOthersDropped, 5);
  producer_.Count(wire::kCounterCuptiDropped, 6);
  producer_.Count(wire::kCounterCallsLost, 8);
  producer_.Count(wire::kCounterWalksDropped, 9);
  producer_.Count(wire::kCounterPythonDropped, 10);
  peer_->Drain(*sink_);
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kCallLost), 8u);
  EXPECT_EQ(Lost(LossKind::kLaunchRingFull), 19u);
  EXPECT_EQ(sink_->losses().details(LossKind::kLaunchRingFull),
            std::vector<std::string>{"only the Python frames of others"});
  EXPECT_EQ(Lost(LossKind::kWireRingFull), 12u);
  EXPECT_EQ(Lost(LossKind::kCuptiDropped), 6u);
  producer_.Count(wire::kCounterCuptiDropped, 1);
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kCuptiDropped), 7u);
}

// Hangs begin an hour ago, so that calls can have begun before they were seen.
constexpr uint64_t kHourNs = uint64_t{3600} * 1'000'000'000;

TEST_F(GpuPeerTest, WorkWithoutATimeIsLostOnceTheGpuGoesOn) {
  MakePeer();
  SendKernel(1, 0, 0, 0);
  SendDetail(wire::DetailKind::kHang, MonotonicNs() - kHourNs, "");
  SendKernel(2, 0, 0, 0);
  SendKernel(3, 0);
  SendKernel(4, 0, 0, 0);
  peer_->Drain(*sink_);
  EXPECT_EQ(peer_->TakeHang(),
            "nothing has ended on the GPU for 3600.0 s, and what was unfinished then has no time\n"
            "hint: xpu-report shows it while it is being recorded");
  EXPECT_EQ(peer_->TakeHang(), "");
  EXPECT_EQ(Lost(LossKind::kHangTimesLost), 0u);
  SendDetail(wire::DetailKind::kHang, 0, "");
  SendDetail(wire::DetailKind::kHang, 0, "");
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kHangTimesLost), 2u);
}

TEST_F(GpuPeerTest, TheGpuGoesOnWhenACallHasWaitedForIt) {
  struct Case {
    uint64_t began_ago_ns;
    int32_t result;
    uint64_t lost;
  };
  for (const Case& one : {Case{kHourNs, 0, 1}, Case{kHourNs, 700, 0}, Case{0, 0, 0}}) {
    MakePeer();
    const uint64_t now_ns = MonotonicNs();
    const uint64_t lost_before = Lost(LossKind::kHangTimesLost);
    SendDetail(wire::DetailKind::kHang, now_ns - kHourNs, "");
    SendKernel(1, 0, 0, 0);
    wire::ApiCallMessage call{};
    call.domain = 1;
    call.start_ns = now_ns - one.began_ago_ns;
    call.end_ns = now_ns + kHourNs;
    call.return_value = one.result;
    ASSERT_TRUE(producer_.Send(wire::MessageKind::kApiCall, call));
    peer_->Drain(*sink_);
    EXPECT_EQ(Lost(LossKind::kHangTimesLost) - lost_before, one.lost);
  }
}

TEST_F(GpuPeerTest, ALibraryThatWaitsForTheGpuAtTheEndIsCounted) {
  MakePeer();
  producer_.SetState(wire::State::kStartsCupti);
  peer_->Drain(*sink_);
  EXPECT_FALSE(peer_->has_cuda());
  EXPECT_FALSE(peer_->waits_for_gpu()) << "it may just have begun";
  peer_->Finish(*sink_, GpuPeer::End::kLeft);
  EXPECT_EQ(sink_->losses().details(LossKind::kGpuNotFinished),
            std::vector<std::string>{"process 4711: a thread of it stays busy in the CUDA driver "
                                     "until the GPU has finished"});
}

TEST_F(GpuPeerTest, ADormantLibraryReportsWhy) {
  MakePeer();
  SendDetail(wire::DetailKind::kDormantReason, 0, "another tool holds CUPTI");
  producer_.SetState(wire::State::kDormant);
  peer_->Drain(*sink_);
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kInjectDormant), 1u);
  EXPECT_EQ(sink_->losses().details(LossKind::kInjectDormant),
            std::vector<std::string>{"another tool holds CUPTI"});
  EXPECT_EQ(peer_->TakeNews(), "process 4711: another tool holds CUPTI\n");
  const EventBatch events = Events();
  EXPECT_EQ(events.gpu_processes.back().state, InjectState::kDormant);
  EXPECT_EQ(Text(events.gpu_processes.back().detail), "another tool holds CUPTI");
  ASSERT_EQ(events.losses.size(), 1u);
  EXPECT_EQ(Text(events.losses[0].name), "inject_dormant");
  EXPECT_EQ(events.losses[0].pid, 4711u);
  EXPECT_EQ(events.losses[0].instance, InstanceId{kInstance});
}

TEST_F(GpuPeerTest, AProgramThatGaveUpTheRecorderIsReported) {
  MakePeer();
  producer_.SetState(wire::State::kAbandoned);
  peer_->Drain(*sink_);
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kInjectDormant), 1u);
  EXPECT_EQ(sink_->losses().details(LossKind::kInjectDormant),
            std::vector<std::string>{
                "xpu-record read nothing for 30 s, or a second while another one attached"});
  EXPECT_EQ(Events().gpu_processes.back().state, InjectState::kDormant);
}

TEST_F(GpuPeerTest, KilledProcessOwesTheRecordsOfItsLaunches) {
  MakePeer();
  SendCallbackName(307, "cuLaunchKernel");
  SendCallbackName(17, "cuCtxSynchronize");
  for (uint32_t id = 1; id <= 5; ++id) SendCall(307, id);
  SendCall(307, 6, 700);  // failed: no record follows
  SendCall(17, 7);        // no GPU work
  SendKernel(2, 0);
  SendKernel(3, 0);
  producer_.SetState(wire::State::kActive);
  peer_->Finish(*sink_, GpuPeer::End::kOfProcess);
  EXPECT_EQ(Lost(LossKind::kCuptiNotDelivered), 3u);
  EXPECT_EQ(Lost(LossKind::kWireTorn), 0u);
}

TEST_F(GpuPeerTest, CallsThatBuildGraphsAreOwedNothing) {
  MakePeer();
  SendCallbackName(307, "cuLaunchKernel");
  SendCallbackName(500, "cuGraphAddMemcpyNode");
  SendCallbackName(514, "cuGraphLaunch");
  SendCall(307, 1, 0, 1);  // captured
  SendCall(500, 2, 0, 1);
  SendCall(500, 3);
  SendCall(514, 4);
  producer_.SetState(wire::State::kActive);
  peer_->Finish(*sink_, GpuPeer::End::kOfProcess);
  EXPECT_EQ(Lost(LossKind::kCuptiNotDelivered), 1u);
  EXPECT_EQ(Lost(LossKind::kProcessOutlived), 0u);
  const EventBatch events = Events();
  ASSERT_EQ(events.api_calls.size(), 4u);
  EXPECT_EQ(events.api_calls[0].graph_nodes, 1u);
  ASSERT_EQ(events.losses.size(), 1u);
  // The calls of this test began when the machine had been up for a microsecond.
  EXPECT_EQ(Text(events.losses[0].detail).find("process 4711: begun in its last "), 0u);
}

TEST_F(GpuPeerTest, ProcessThatOutlivesTheRecordingIsCounted) {
  MakePeer();
  producer_.SetState(wire::State::kActive);
  peer_->Finish(*sink_, GpuPeer::End::kOutlived);
  EXPECT_EQ(Lost(LossKind::kProcessOutlived), 1u);
  EXPECT_EQ(sink_->losses().total(), 1u);
}

TEST_F(GpuPeerTest, ProcessThatCouldNotTakeItsRingIsCounted) {
  MakePeer();
  peer_->Finish(*sink_, GpuPeer::End::kOfProcess);
  EXPECT_EQ(Lost(LossKind::kProcessNotReached), 1u);
  EXPECT_EQ(sink_->losses().total(), 1u);
}

TEST_F(GpuPeerTest, AProcessWithoutMessages) {
  MakePeer();
  header_->attached.store(1);
  peer_->Finish(*sink_, GpuPeer::End::kOfProcess);
  EXPECT_EQ(sink_->losses().total(), 0u);
}

TEST_F(GpuPeerTest, GraphNodesBecomeEvents) {
  MakePeer();
  wire::GraphNodeMessage message{};
  message.time_ns = 5;
  message.node_id = uint64_t{2} << 32 | 7;
  message.original_node_id = uint64_t{1} << 32 | 7;
  message.graph_id = 2;
  message.node_type = 1;
  message.change = 1;
  message.tid = 77;
  message.correlation_id = 8;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kGraphNode, message));
  peer_->Drain(*sink_);
  const EventBatch events = Events();
  ASSERT_EQ(events.graph_nodes.size(), 1u);
  const GraphNode& node = events.graph_nodes[0];
  EXPECT_EQ(node.instance.value, kInstance);
  EXPECT_EQ(node.time_ns, 5u);
  EXPECT_EQ(node.change, GraphNodeChange::kCloned);
  EXPECT_EQ(node.node_id, 0x200000007u);
  EXPECT_EQ(node.original_node_id, 0x100000007u);
  EXPECT_EQ(node.graph_id, 2u);
  EXPECT_EQ(node.node_type, 1u);
  EXPECT_EQ(node.tid, 77u);
  EXPECT_EQ(node.correlation_id, 8u);
}

TEST_F(GpuPeerTest, NvtxBecomesEvents) {
  MakePeer();
  wire::NvtxMessage message{};
  message.time_ns = 5;
  message.range = 9;
  message.payload = 77;
  message.tid = 4712;
  message.domain = 2;
  message.category = 3;
  message.color = 0xff00ff00;
  message.kind = wire::NvtxKind::kStart;
  message.payload_type = 2;
  message.text_bytes = 4;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kNvtx, message, "step", 4));
  peer_->Drain(*sink_);
  const EventBatch events = Events();
  ASSERT_EQ(events.nvtx_events.size(), 1u);
  const NvtxEvent& event = events.nvtx_events[0];
  EXPECT_EQ(event.instance.value, kInstance);
  EXPECT_EQ(event.time_ns, 5u);
  EXPECT_EQ(event.kind, NvtxKind::kStart);
  EXPECT_EQ(event.tid, 4712u);
  EXPECT_EQ(event.domain, 2u);
  EXPECT_EQ(event.range, 9u);
  EXPECT_EQ(Text(event.text), "step");
  EXPECT_EQ(event.category, 3u);
  EXPECT_EQ(event.color, 0xff00ff00u);
  EXPECT_EQ(event.payload_type, NvtxPayload::kInt64);
  EXPECT_EQ(event.payload, 77u);
}

TEST_F(GpuPeerTest, InvalidNvtxMessagesAreCounted) {
  MakePeer();
  wire::NvtxMessage message{};
  message.kind = static_cast<wire::NvtxKind>(8);
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kNvtx, message));
  message.kind = wire::NvtxKind::kMark;
  message.payload_type = 8;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kNvtx, message));
  message.payload_type = 0;
  message.text_bytes = 100;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kNvtx, message, "short", 5));
  message.text_bytes = 5;
  message.payload_bytes = 100;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kNvtx, message, "short", 5));
  const std::string large(wire::kMaxPayloadBytes + 8, 'x');
  message.text_bytes = 0;
  message.payload_bytes = static_cast<uint32_t>(large.size());
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kNvtx, message, large.data(), large.size()));
  wire::NvtxSchemaEntryMessage entry{};
  entry.entry = wire::kMaxSchemaEntries;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kNvtxSchemaEntry, entry));
  entry.entry = 0;
  entry.text_bytes = 9;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kNvtxSchemaEntry, entry));
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kWireInvalid), 7u);
  EXPECT_EQ(Events().nvtx_events.size(), 0u);
  EXPECT_EQ(Events().nvtx_schema_entries.size(), 0u);
}

TEST_F(GpuPeerTest, PayloadsAndTheirSchemasBecomeEvents) {
  MakePeer();
  wire::NvtxSchemaEntryMessage entry{};
  entry.schema = 77;
  entry.type = 18;
  entry.flags = 2;
  entry.offset_bytes = 8;
  entry.array_length = 3;
  entry.value = 4;
  entry.size_bytes = 16;
  entry.domain = 5;
  entry.entry = 1;
  entry.text_bytes = 5;
  entry.is_enumeration = 1;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kNvtxSchemaEntry, entry, "bytes", 5));
  wire::NvtxMessage message{};
  message.kind = wire::NvtxKind::kPush;
  message.payload_type = wire::kPayloadOfSchema;
  message.schema = 77;
  message.text_bytes = 4;
  message.payload_bytes = 3;
  ASSERT_TRUE(producer_.Send(wire::MessageKind::kNvtx, message, "call", 4, "abc", 3));
  peer_->Drain(*sink_);
  const EventBatch events = Events();
  ASSERT_EQ(events.nvtx_schema_entries.size(), 1u);
  const NvtxSchemaEntry& seen = events.nvtx_schema_entries[0];
  EXPECT_EQ(seen.instance.value, kInstance);
  EXPECT_EQ(seen.schema, 77u);
  EXPECT_EQ(seen.type, 18u);
  EXPECT_EQ(seen.flags, 2u);
  EXPECT_EQ(seen.offset, 8u);
  EXPECT_EQ(seen.array_length, 3u);
  EXPECT_EQ(seen.value, 4u);
  EXPECT_EQ(seen.size_bytes, 16u);
  EXPECT_EQ(seen.domain, 5u);
  EXPECT_EQ(seen.entry, 1u);
  EXPECT_EQ(Text(seen.name), "bytes");
  EXPECT_TRUE(seen.is_enumeration);
  ASSERT_EQ(events.nvtx_events.size(), 1u);
  EXPECT_EQ(Text(events.nvtx_events[0].text), "call");
  EXPECT_EQ(events.nvtx_events[0].payload_type, NvtxPayload::kExtended);
  EXPECT_EQ(events.nvtx_events[0].payload_schema, 77u);
  EXPECT_EQ(Text(events.nvtx_events[0].payload_data), "abc");
}

TEST_F(GpuPeerTest, FinishedProcessOwesNothing) {
  MakePeer();
  SendCallbackName(307, "cuLaunchKernel");
  SendCall(307, 1);
  producer_.SetState(wire::State::kFinished);
  peer_->Finish(*sink_, GpuPeer::End::kOfProcess);
  EXPECT_EQ(sink_->losses().total(), 0u);
  EXPECT_EQ(header_->closed.load(), 1u);
}

TEST_F(GpuPeerTest, TornMessagesAreCounted) {
  MakePeer();
  SendKernel(1, 0);
  header_->head.fetch_add(64);  // reserved by a thread that died
  SendKernel(2, 0);
  SendKernel(3, 0);
  SendCall(1, 4);
  peer_->Finish(*sink_, GpuPeer::End::kOfProcess);
  EXPECT_EQ(Lost(LossKind::kWireTorn), 3u);
  EXPECT_EQ(Events().kernels.size(), 1u);
}

TEST_F(GpuPeerTest, ATornMessageAlone) {
  MakePeer();
  header_->head.fetch_add(64);
  peer_->Finish(*sink_, GpuPeer::End::kOfProcess);
  EXPECT_EQ(Lost(LossKind::kWireTorn), 1u);
}

TEST_F(GpuPeerTest, ABrokenRingIsOneLoss) {
  MakePeer();
  header_->head = 12;
  peer_->Drain(*sink_);
  peer_->Drain(*sink_);
  EXPECT_EQ(Lost(LossKind::kWireInvalid), 1u);
}

}  // namespace
}  // namespace xpu
