#include "record/gpu/gpu_peer.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "cupti_inject/cupti_abi.h"
#include "format/base/text.h"
#include "format/cuda_faults.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"
#include "record/gpu/cupti_decode.h"
#include "record/gpu/cupti_support.h"
#include "record/gpu/injection_reach.h"
#include "record/gpu/wire_message.h"
#include "record/process/rank.h"

namespace xpu {
namespace {

InjectState StateOf(wire::State state) {
  switch (state) {
    case wire::State::kActive:
      return InjectState::kActive;
    case wire::State::kDormant:
    case wire::State::kAbandoned:
      return InjectState::kDormant;
    case wire::State::kFinished:
      return InjectState::kFinished;
    default:
      return InjectState::kConnected;
  }
}

bool IsDomain(uint32_t domain) {
  return domain == static_cast<uint32_t>(ApiDomain::kDriver) ||
         domain == static_cast<uint32_t>(ApiDomain::kRuntime);
}

}  // namespace

GpuPeer::GpuPeer(InjectPeer peer, EventSink& sink, const InlineStacks::Settings& stacks,
                 const FairBudget& memory)
    : peer_(std::move(peer)),
      memory_(memory),
      stacks_(stacks, pid(), instance(), peer_.ring.header(), memory_),
      samples_(instance(), pid(), memory_) {
  process_.instance = instance();
  process_.pid = pid();
  process_.namespace_pid = peer_.namespace_pid;
  WriteProcess(sink);
  WriteRank(FindRank(EnvironmentOf(peer_.pid)), instance(), pid(), sink);
}

bool GpuPeer::HasEnded(int timeout_ms) const { return AllHaveEnded(peer_.pidfd.get(), timeout_ms); }

// The tables of what was mapped when the library asked are complete one round later.
void GpuPeer::AnswerForTables(bool are_there) {
  wire::RingHeader& header = peer_.ring.header();
  if (asked_for_tables_ && are_there) header.tables_there.store(1, std::memory_order_release);
  asked_for_tables_ = header.tables_awaited.load(std::memory_order_acquire) != 0;
}

bool GpuPeer::IsQuiet() const {
  const wire::State state = peer_.ring.ReadState();
  return state != wire::State::kActive || HasEnded();
}

uint64_t GpuPeer::markers() const { return peer_.ring.ReadCounters()[wire::kCounterMarkers]; }

std::string GpuPeer::TakeHeldCupti() {
  if (state_ != wire::State::kActive || std::exchange(held_cupti_reported_, true)) return {};
  return cupti_path_;
}

void GpuPeer::Add(EventSink& sink, LossKind kind, uint64_t count, std::string detail) const {
  sink.losses().Add(kind, count, pid(), instance(), std::move(detail));
}

void GpuPeer::Drain(EventSink& sink) {
  // The state is read first: everything that the library sent before it changed the state is then
  // in the ring.
  const wire::State state = peer_.ring.ReadState();
  const bool had_fault = !peer_.ring.fault().empty();
  peer_.ring.Drain(
      [&](wire::MessageKind kind, Bytes message) { TakeMessage(kind, message, sink); });
  stacks_.Update(sink);
  samples_.Update(sink, false);
  if (!had_fault && !peer_.ring.fault().empty()) {
    Add(sink, LossKind::kWireInvalid, 1, peer_.ring.fault());
  }
  FollowWait(sink, state);
  if (state != state_) {
    state_ = state;
    changed_ = true;
    if (state == wire::State::kAbandoned) {
      detail_ = Format("xpu-record read nothing for {} s, or a second while another one attached",
                       kRecorderPatienceNs / 1'000'000'000);
    }
  }
  if (changed_) WriteProcess(sink);
  CountLosses(sink);
}

void GpuPeer::Finish(EventSink& sink, End end) {
  peer_.ring.Close();
  stacks_.EndProcess();
  Drain(sink);
  for (const uint64_t until = peer_.ring.End(); HasEnded() && peer_.ring.SkipTornMessage(until);) {
    has_torn_message_ = true;
    Drain(sink);
  }
  samples_.Update(sink, true);
  if (state_ == wire::State::kStartsCupti) {
    constexpr int kEndsMs = 100;  // the kernel may have reported the end already
    Add(sink, LossKind::kGpuNotFinished, 1,
        Format("process {}{}", pid(),
               HasEnded(kEndsMs)
                   ? ": it ended meanwhile"
                   : ": a thread of it stays busy in the CUDA driver until the GPU has finished"));
  }
  CountMissing(sink, end);
}

void GpuPeer::CountLosses(EventSink& sink) {
  const auto counters = peer_.ring.ReadCounters();
  const auto news = [&](wire::Counter counter) {
    // The counters lie in memory that the program can write. One that decreases is ignored, so that
    // nothing is counted twice.
    const uint64_t before = counted_[counter];
    if (counters[counter] <= before) return uint64_t{0};
    counted_[counter] = counters[counter];
    return counters[counter] - before;
  };
  Add(sink, LossKind::kWireRingFull, news(wire::kCounterActivitiesDropped), "GPU records");
  Add(sink, LossKind::kWireRingFull, news(wire::kCounterCallsDropped),
      marker_used_ || !stacks_.are_taken() ? "API calls" : "API calls, whose stacks are kept");
  Add(sink, LossKind::kCallLost, news(wire::kCounterCallsLost));
  Add(sink, LossKind::kWireRingFull, news(wire::kCounterOthersDropped),
      "names, clock pairs, graph nodes");
  Add(sink, LossKind::kWireRingFull, news(wire::kCounterNvtxDropped), "NVTX ranges and marks");
  Add(sink, LossKind::kWireRingFull, news(wire::kCounterBlocksDropped),
      "blocks of PyTorch's allocator");
  Add(sink, LossKind::kLaunchRingFull, news(wire::kCounterWalksDropped));
  Add(sink, LossKind::kLaunchRingFull, news(wire::kCounterPythonDropped),
      "only the Python frames of others");
  Add(sink, LossKind::kCuptiDropped, news(wire::kCounterCuptiDropped));
  Add(sink, LossKind::kGpuSamplesDropped, news(wire::kCounterSamplesDropped),
      "the ring between the program and xpu-record was full");
  Add(sink, LossKind::kGpuCodeMissing, news(wire::kCounterCubinsDropped),
      "they were unloaded, or the ring to xpu-record was full");
  const uint64_t refusals = memory_.refusals();
  Add(sink, LossKind::kProcessMemoryFull, refusals - std::exchange(refusals_counted_, refusals));
  if (StateOf(state_) == InjectState::kDormant && !std::exchange(dormant_counted_, true)) {
    Add(sink, LossKind::kInjectDormant, 1, detail_);
  }
}

void GpuPeer::CountMissing(EventSink& sink, End end) {
  const auto counters = peer_.ring.ReadCounters();
  const auto missing = [](uint64_t begun, uint64_t dropped, uint64_t taken) {
    return begun > dropped + taken ? begun - dropped - taken : 0;
  };
  if (has_torn_message_ || peer_.ring.HasTornMessage()) {
    const uint64_t torn =
        missing(counters[wire::kCounterActivities], counters[wire::kCounterActivitiesDropped],
                activities_taken_) +
        missing(counters[wire::kCounterCalls],
                counters[wire::kCounterCallsDropped] + counters[wire::kCounterCallsLost],
                calls_taken_);
    Add(sink, LossKind::kWireTorn, torn == 0 ? 1 : torn);
  }
  const wire::RingHeader& header = peer_.ring.header();
  if (state_ == wire::State::kConnected && header.attached.load() == 0 && header.head.load() == 0) {
    Add(sink, LossKind::kProcessNotReached, 1,
        Format("process {} did not accept its ring buffer: it had just ended, or had no free "
               "descriptor or memory",
               pid()));
  }
  if (state_ != wire::State::kActive) return;
  if (calls_.size() > 0) {
    const uint64_t now_ns = MonotonicNs();
    const uint64_t span_ns = now_ns - std::min(now_ns, calls_.OldestStartNs());
    // Nothing is known about a call whose message was dropped.
    const bool knows_all =
        counted_[wire::kCounterCallsDropped] + counted_[wire::kCounterCallsLost] == 0;
    Add(sink, LossKind::kCuptiNotDelivered, calls_.size(),
        Format("process {}: {}begun in its last {:.1f} ms", pid(),
               knows_all ? "" : "at least that many, ", static_cast<double>(span_ns) / 1e6));
  }
  if (end == End::kOutlived) Add(sink, LossKind::kProcessOutlived, 1, Format("process {}", pid()));
}

void GpuPeer::WriteProcess(EventSink& sink) {
  changed_ = false;
  process_.time_ns = MonotonicNs();
  process_.state = StateOf(state_);
  process_.cupti_path = sink.Intern(cupti_path_);
  process_.detail = sink.Intern(detail_);
  sink.Write(process_);
}

void GpuPeer::TakeMessage(wire::MessageKind kind, Bytes message, EventSink& sink) {
  bool fits = false;
  switch (kind) {
    case wire::MessageKind::kActivity:
      fits = TakeActivity(message, sink);
      break;
    case wire::MessageKind::kName:
      fits = TakeName(message);
      break;
    case wire::MessageKind::kApiCall:
      fits = TakeApiCall(message, sink);
      break;
    case wire::MessageKind::kClockPair:
      fits = TakeClockPair(message, sink);
      break;
    case wire::MessageKind::kCallbackName:
      fits = TakeCallbackName(message, sink);
      break;
    case wire::MessageKind::kDetail:
      fits = TakeDetail(message, sink);
      break;
    case wire::MessageKind::kGraphNode:
      fits = TakeGraphNode(message, sink);
      break;
    case wire::MessageKind::kNvtx:
      fits = TakeNvtx(message, sink);
      break;
    case wire::MessageKind::kNvtxSchemaEntry:
      fits = TakeNvtxSchemaEntry(message, sink);
      break;
    case wire::MessageKind::kSwitch:
      fits = TakeSwitch(message);
      break;
    case wire::MessageKind::kGpuClaim:
      fits = TakeClaim(message);
      break;
    case wire::MessageKind::kGpuSampling:
      fits = samples_.TakeSampling(message, sink);
      break;
    case wire::MessageKind::kGpuSamples:
      fits = samples_.TakeSamples(message, sink);
      break;
    case wire::MessageKind::kGpuFunction:
      fits = samples_.TakeFunction(message);
      break;
    case wire::MessageKind::kStallReason:
      fits = samples_.TakeReason(message);
      break;
    case wire::MessageKind::kCubin:
      fits = samples_.TakeCubin(message, sink);
      break;
    case wire::MessageKind::kCodeFile:
      fits = stacks_.TakeCodeFile(message);
      break;
    case wire::MessageKind::kCodeFileGone:
      fits = stacks_.TakeCodeFileGone(message);
      break;
    case wire::MessageKind::kCodeFilesComplete:
      fits = stacks_.TakeCodeFilesComplete(message);
      break;
    case wire::MessageKind::kStack:
      fits = stacks_.TakeStack(message);
      break;
    case wire::MessageKind::kLaunch:
      fits = stacks_.TakeLaunch(message, sink);
      break;
    case wire::MessageKind::kStackCopy:
      fits = stacks_.TakeStackCopy(message);
      break;
    case wire::MessageKind::kOtherCode:
      fits = stacks_.TakeOtherCode(message);
      break;
    case wire::MessageKind::kBlock:
      fits = stacks_.TakeBlock(message, sink);
      break;
    case wire::MessageKind::kPythonCode:
      fits = stacks_.TakePythonCode(message, sink);
      break;
    case wire::MessageKind::kPythonStack:
      fits = stacks_.TakePythonStack(message);
      break;
  }
  if (!fits) Add(sink, LossKind::kWireInvalid, 1);
}

bool GpuPeer::TakeActivity(Bytes message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::ActivityMessage>(message);
  if (!fixed) return false;
  const auto record =
      BytesAfter(message, sizeof(wire::ActivityMessage), (*fixed)->record_size_bytes);
  if (!record || record->size() < sizeof(uint32_t)) return false;
  ++activities_taken_;
  DecodedActivity decoded = DecodeActivity(*record);
  calls_.RemoveRecorded(CorrelationOf(decoded.event));
  KeptText none;
  KeptText* name = &none;
  if (const uint32_t id = (*fixed)->name_id; id != 0) {
    if (KeptText* found = names_.Find(id)) {
      name = found;
    } else if (!names_.MayBeRefused()) {
      Add(sink, LossKind::kWireInvalid, 1, "record whose name was not sent");
    }
  }
  const uint64_t untimed = sink.losses().total(LossKind::kInvalidTime);
  WriteActivity(*record, decoded, *name, instance(), sink);
  unfinished_ += sink.losses().total(LossKind::kInvalidTime) - untimed;
  return true;
}

bool GpuPeer::TakeName(Bytes message) {
  const auto fixed = ReadFixed<wire::NameMessage>(message);
  if (!fixed) return false;
  const auto text = BytesAfter(message, sizeof(wire::NameMessage), (*fixed)->text_bytes);
  if (!text) return false;
  names_.Put((*fixed)->name_id, {.text = std::string(TextOf(*text))});
  return true;
}

bool GpuPeer::TakeApiCall(Bytes message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::ApiCallMessage>(message);
  if (!fixed || !IsDomain((*fixed)->domain)) return false;
  ++calls_taken_;
  const wire::ApiCallMessage& raw = *fixed->operator->();
  ApiCall call;
  call.instance = instance();
  call.domain = static_cast<ApiDomain>(raw.domain);
  call.callback_id = raw.callback_id;
  call.correlation_id = raw.correlation_id;
  call.tid = raw.tid;
  call.start_ns = raw.start_ns;
  call.end_ns = raw.end_ns;
  call.return_value = raw.return_value;
  call.graph_nodes = raw.graph_nodes;
  sink.Write(call);
  if (const std::string_view fault = FaultMeaning(call.return_value);
      !fault.empty() && !std::exchange(has_faulted_, true)) {
    Add(sink, LossKind::kGpuFault, 1,
        Format("process {}: error {}, {}", pid(), call.return_value, fault));
  }
  // The call was waiting when the hang was seen, and has got what it waited for.
  if (call.return_value == 0 && call.end_ns > hang_seen_ns_ &&
      call.start_ns < hang_since_ns_ + (hang_seen_ns_ - hang_since_ns_) / 2) {
    EndHang(sink);
  }
  calls_.Add({raw.domain, raw.callback_id, raw.correlation_id, raw.start_ns, raw.return_value,
              raw.graph_nodes});
  return true;
}

bool GpuPeer::TakeClockPair(Bytes message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::ClockPairMessage>(message);
  if (!fixed) return false;
  ClockPair pair;
  pair.instance = instance();
  pair.clock = ClockKind::kCupti;
  pair.before_ns = (*fixed)->before_ns;
  pair.clock_ns = (*fixed)->cupti_ns;
  pair.after_ns = (*fixed)->after_ns;
  sink.Write(pair);
  return true;
}

bool GpuPeer::TakeCallbackName(Bytes message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::CallbackNameMessage>(message);
  if (!fixed || !IsDomain((*fixed)->domain)) return false;
  const auto text = BytesAfter(message, sizeof(wire::CallbackNameMessage), (*fixed)->text_bytes);
  if (!text) return false;
  calls_.SetName((*fixed)->domain, (*fixed)->callback_id, TextOf(*text));
  CallbackName name;
  name.instance = instance();
  name.domain = static_cast<ApiDomain>((*fixed)->domain);
  name.callback_id = (*fixed)->callback_id;
  name.name = sink.Intern(TextOf(*text));
  sink.Write(name);
  return true;
}

bool GpuPeer::TakeGraphNode(Bytes message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::GraphNodeMessage>(message);
  if (!fixed) return false;
  GraphNode node;
  node.instance = instance();
  node.time_ns = (*fixed)->time_ns;
  node.change = static_cast<GraphNodeChange>((*fixed)->change);
  node.node_id = (*fixed)->node_id;
  node.original_node_id = (*fixed)->original_node_id;
  node.graph_id = (*fixed)->graph_id;
  node.node_type = (*fixed)->node_type;
  node.tid = (*fixed)->tid;
  node.correlation_id = (*fixed)->correlation_id;
  sink.Write(node);
  return true;
}

bool GpuPeer::TakeNvtx(Bytes message, EventSink& sink) {
  static_assert(static_cast<int>(wire::NvtxKind::kThreadName) ==
                static_cast<int>(NvtxKind::kThread));
  static_assert(wire::kPayloadOfSchema == static_cast<uint8_t>(NvtxPayload::kExtended));
  const auto fixed = ReadFixed<wire::NvtxMessage>(message);
  if (!fixed || (*fixed)->kind > wire::NvtxKind::kThreadName ||
      (*fixed)->payload_type > wire::kPayloadOfSchema) {
    return false;
  }
  const auto text = BytesAfter(message, sizeof(wire::NvtxMessage), (*fixed)->text_bytes);
  if (!text) return false;
  const auto payload = BytesAfter(message, sizeof(wire::NvtxMessage) + (*fixed)->text_bytes,
                                  (*fixed)->payload_bytes);
  if (!payload || payload->size() > wire::kMaxPayloadBytes) return false;
  NvtxEvent event;
  event.instance = instance();
  event.time_ns = (*fixed)->time_ns;
  event.kind = static_cast<NvtxKind>((*fixed)->kind);
  event.tid = (*fixed)->tid;
  event.domain = (*fixed)->domain;
  event.range = (*fixed)->range;
  event.text = sink.Intern(TextOf(*text));
  event.category = (*fixed)->category;
  event.color = (*fixed)->color;
  event.payload_type = static_cast<NvtxPayload>((*fixed)->payload_type);
  event.payload = (*fixed)->payload;
  event.payload_schema = (*fixed)->schema;
  if (!payload->empty()) event.payload_data = sink.Intern(TextOf(*payload));
  sink.Write(event);
  return true;
}

bool GpuPeer::TakeNvtxSchemaEntry(Bytes message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::NvtxSchemaEntryMessage>(message);
  if (!fixed || (*fixed)->entry >= wire::kMaxSchemaEntries) return false;
  const auto text = BytesAfter(message, sizeof(wire::NvtxSchemaEntryMessage), (*fixed)->text_bytes);
  if (!text) return false;
  NvtxSchemaEntry entry;
  entry.instance = instance();
  entry.domain = (*fixed)->domain;
  entry.schema = (*fixed)->schema;
  entry.entry = (*fixed)->entry;
  entry.name = sink.Intern(TextOf(*text));
  entry.is_enumeration = (*fixed)->is_enumeration != 0;
  entry.type = (*fixed)->type;
  entry.flags = (*fixed)->flags;
  entry.offset = (*fixed)->offset_bytes;
  entry.array_length = (*fixed)->array_length;
  entry.value = (*fixed)->value;
  entry.size_bytes = (*fixed)->size_bytes;
  sink.Write(entry);
  return true;
}

bool GpuPeer::TakeSwitch(Bytes message) {
  const auto fixed = ReadFixed<wire::SwitchMessage>(message);
  if (!fixed) return false;
  switches_.push_back({std::min((*fixed)->time_ns, MonotonicNs()), (*fixed)->is_open != 0});
  return true;
}

bool GpuPeer::TakeClaim(Bytes message) {
  const auto fixed = ReadFixed<wire::GpuClaimMessage>(message);
  if (!fixed) return false;
  claim_ = (*fixed)->number;
  const auto* uuid = reinterpret_cast<const char*>((*fixed)->uuid);
  claimed_gpu_.assign(uuid, sizeof((*fixed)->uuid));
  return true;
}

void GpuPeer::AnswerClaim(bool is_granted) {
  claimed_gpu_.clear();
  peer_.ring.header().claim_answer.store(claim_ * 2 + (is_granted ? 1 : 0),
                                         std::memory_order_release);
}

// CUPTI waits until the GPU has finished what was launched before the attach. Whether it ever does
// nobody can tell.
void GpuPeer::FollowWait(EventSink& sink, wire::State state) {
  constexpr uint64_t kPatienceNs = 2'000'000'000;
  const uint64_t now_ns = MonotonicNs();
  if (state == wire::State::kStartsCupti) {
    if (wait_since_ns_ == 0) wait_since_ns_ = now_ns;
    if (now_ns - wait_since_ns_ < kPatienceNs || std::exchange(wait_is_reported_, true)) return;
    changed_ = true;
    detail_ = "the GPU has not finished the work that was launched before the attach";
    hang_text_ = Format(
        "GPU activity is not recorded yet: {}\nhint: it is recorded once the GPU has finished; "
        "until "
        "then a thread of the program is busy in the CUDA driver",
        detail_);
  } else if (std::exchange(wait_is_reported_, false)) {
    detail_ = Format("the GPU finished the work from before the attach after {:.1f} s",
                     static_cast<double>(now_ns - wait_since_ns_) / 1e9);
    Add(sink, LossKind::kGpuNotFinished, 1,
        Format("process {}: {}, and is recorded since", pid(), detail_));
  }
}

void GpuPeer::BeginHang(uint64_t since_ns) {
  hang_seen_ns_ = MonotonicNs();
  hang_since_ns_ = std::min(since_ns, hang_seen_ns_);
  unfinished_ = 0;
  detail_ = Format(
      "nothing has ended on the GPU for {:.1f} s, and what was unfinished then has no "
      "time",
      static_cast<double>(hang_seen_ns_ - hang_since_ns_) / 1e9);
  hang_text_ = Format("{}\nhint: xpu-report shows it while it is being recorded", detail_);
}

void GpuPeer::EndHang(EventSink& sink) {
  if (std::exchange(hang_since_ns_, 0) == 0) return;
  Add(sink, LossKind::kHangTimesLost, unfinished_, Format("process {}: {}", pid(), detail_));
  detail_.clear();
  changed_ = true;
}

bool GpuPeer::TakeDetail(Bytes message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::DetailMessage>(message);
  if (!fixed) return false;
  const auto text = BytesAfter(message, sizeof(wire::DetailMessage), (*fixed)->text_bytes);
  if (!text) return false;
  changed_ = true;
  switch ((*fixed)->detail) {
    case wire::DetailKind::kDormantReason:
    case wire::DetailKind::kNote:
      detail_ = TextOf(*text);
      AppendFormat(news_, "process {}: {}\n", pid(), detail_);
      return true;
    case wire::DetailKind::kMarkerUsed:
      marker_used_ = true;
      marker_reason_ = ObstacleToTables(pid(), TextOf(*text));
      AppendFormat(news_, "process {}: launch stacks by the marker: {}\n", pid(), TextOf(*text));
      return true;
    case wire::DetailKind::kNotSampled:
      Add(sink, LossKind::kGpuNotSampled, 1,
          Format("process {}: {}{}", pid(), TextOf(*text), HintOfSampling((*fixed)->number)));
      return true;
    case wire::DetailKind::kAllocator:
      AppendFormat(news_, "process {}: PyTorch's allocator is {}: {}\n", pid(),
                   (*fixed)->number != 0 ? "followed" : "not followed", TextOf(*text));
      if ((*fixed)->number == 0) {
        Add(sink, LossKind::kAllocatorUnknown, 1, std::string(TextOf(*text)));
      }
      return true;
    case wire::DetailKind::kHang:
      (*fixed)->number != 0 ? BeginHang((*fixed)->number) : EndHang(sink);
      return true;
    case wire::DetailKind::kCuptiPath:
      cupti_path_ = TextOf(*text);
      process_.cupti_version = static_cast<uint32_t>((*fixed)->number);
      AppendFormat(news_, "process {}: {}\n", pid(), cupti_path_);
      if (auto lacks = OldCuptiText(process_.cupti_version, process_.driver_version)) {
        Add(sink, LossKind::kOldCupti, 1, *std::move(lacks));
      }
      return true;
    case wire::DetailKind::kTimesOnHost:
      process_.times_on_host = true;
      return true;
    case wire::DetailKind::kDriverVersion:
      process_.driver_version = static_cast<uint32_t>((*fixed)->number);
      return true;
  }
  return false;
}

}  // namespace xpu
