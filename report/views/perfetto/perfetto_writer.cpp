#include "report/views/perfetto/perfetto_writer.h"

#include <algorithm>
#include <limits>

#include "format/base/terminal_text.h"
#include "perfetto_trace.pb.h"
#include "report/views/timeline/timeline.h"
#include "report/views/view.h"

namespace xpu {
namespace {

using perfetto::DebugAnnotation;
using perfetto::TraceAttributes;
using perfetto::TracePacket;
using perfetto::TrackDescriptor;
using perfetto::TrackEvent;

constexpr uint32_t kSequence = 1;
constexpr uint32_t kStateCleared = 1;
constexpr uint32_t kNeedsState = 2;

constexpr uint32_t kRealtime = 1;
constexpr uint32_t kMonotonic = 3;
constexpr uint32_t kSequenceClock = 64;

constexpr uint32_t kBegin = 1;
constexpr uint32_t kEnd = 2;
constexpr uint32_t kInstant = 3;
constexpr uint32_t kCounter = 4;

constexpr uint32_t kByRank = 3;
constexpr uint32_t kChildrenByRank = 1;
constexpr uint32_t kKeepApart = 2;

// Perfetto wants less than 512 KiB of a packet of packets.
constexpr size_t kBlockBytes = size_t{256} << 10;

// Groups are even, tracks odd. Both numbers are unique in a trace.
uint64_t UuidOf(uint32_t pid) { return uint64_t{pid} * 2; }
uint64_t UuidOf(TraceTrack track) { return uint64_t{track.tid} * 2 + 1; }
// The numbers of others are those of works.
constexpr uint64_t kFirstUnannouncedArrow = uint64_t{1} << 63;
// The first UUID of a counter.
constexpr uint64_t kFirstCounterUuid = uint64_t{1} << 40;

int32_t Rank(uint64_t sort_index) {
  return static_cast<int32_t>(std::min<uint64_t>(sort_index, std::numeric_limits<int32_t>::max()));
}

// Puts a moment of the whole trace, which is the track 0. Without a track it would be on that of
// the thread that was described last.
void PutTraceMoment(std::string_view name, WireBuffer& event) {
  event.PutVarint(TrackEvent::kTypeFieldNumber, kInstant);
  event.PutVarint(TrackEvent::kTrackUuidFieldNumber, 0);
  event.PutBytes(TrackEvent::kNameFieldNumber, name);
}

void PutSequence(WireBuffer& packet) {
  packet.PutVarint(TracePacket::kTrustedPacketSequenceIdFieldNumber, kSequence);
  packet.PutVarint(TracePacket::kSequenceFlagsFieldNumber, kNeedsState);
}

}  // namespace

PerfettoWriter::PerfettoWriter(const Analysis& analysis, uint64_t base_ns, Output& output,
                               uint64_t most_text_bytes)
    : analysis_(analysis),
      base_ns_(base_ns),
      output_(output),
      most_text_bytes_(most_text_bytes),
      compressor_([this](std::string_view deflated) { WriteBlock(deflated); }),
      clock_ns_(base_ns),
      defined_(std::make_unique<perfetto::InternedData>()) {
  WriteHead();
}

PerfettoWriter::~PerfettoWriter() = default;

void PerfettoWriter::WriteHead() {
  TracePacket packet;
  packet.set_first_packet_on_sequence(true);
  packet.set_sequence_flags(kStateCleared);
  packet.mutable_trace_packet_defaults()->set_timestamp_clock_id(kSequenceClock);
  perfetto::ClockSnapshot& clocks = *packet.mutable_clock_snapshot();
  clocks.set_primary_trace_clock(kMonotonic);
  const auto add = [&](uint32_t id, uint64_t time_ns) {
    perfetto::ClockSnapshot::Clock& clock = *clocks.add_clocks();
    clock.set_clock_id(id);
    clock.set_timestamp(time_ns);
    if (id == kSequenceClock) clock.set_is_incremental(true);
  };
  add(kSequenceClock, base_ns_);
  add(kMonotonic, base_ns_);
  const auto& infos = analysis_.model.events.recording_info;
  if (!infos.empty() && infos.front().start_realtime_ns != 0) {
    add(kRealtime, infos.front().start_realtime_ns + base_ns_ - infos.front().start_ns);
  }
  Append(packet);
  TrackDescriptor root;
  root.set_uuid(0);
  root.set_child_ordering(kByRank);
  root.set_process_ordering(kChildrenByRank);
  root.set_thread_ordering(kChildrenByRank);
  AppendTrack(root);
  if (infos.empty()) return;
  TracePacket system;
  auto& names = *system.mutable_system_info()->mutable_utsname();
  names.set_sysname("Linux");
  names.set_release(ForOneLine(analysis_.model.Text(infos.front().kernel_release)));
  names.set_machine(ForOneLine(analysis_.model.Text(infos.front().machine)));
  Append(system);
}

template <typename Define>
uint64_t PerfettoWriter::Intern(Texts& texts, std::string_view text, Define&& define) {
  if (const auto known = texts.find(text); known != texts.end()) return known->second;
  if (text_bytes_ + text.size() > most_text_bytes_) return 0;
  text_bytes_ += text.size();
  const uint64_t id = texts.size() + 1;
  texts.emplace(text, id);
  perfetto::InternedName& name = *define();
  name.set_iid(id);
  name.set_name(std::string(text));
  defines_ = true;
  return id;
}

TraceName PerfettoWriter::Name(std::string_view name, std::string_view category) {
  TraceName made;
  made.text_ = ForOneLine(name);
  made.name_id_ = Intern(names_, made.text_, [&] { return defined_->add_event_names(); });
  made.category_id_ =
      Intern(categories_, ForOneLine(category), [&] { return defined_->add_event_categories(); });
  return made;
}

TraceText PerfettoWriter::Text(std::string_view text) {
  TraceText made;
  made.text_ = ForOneLine(text);
  made.id_ =
      Intern(values_, made.text_, [&] { return defined_->add_debug_annotation_string_values(); });
  return made;
}

void PerfettoWriter::PutHead(uint32_t type, uint64_t track, const TraceName& name,
                             WireBuffer& event) {
  event.PutVarint(TrackEvent::kTypeFieldNumber, type);
  event.PutVarint(TrackEvent::kTrackUuidFieldNumber, track);
  if (name.category_id_ != 0) {
    event.PutVarint(TrackEvent::kCategoryIidsFieldNumber, name.category_id_);
  }
  if (name.name_id_ != 0) {
    event.PutVarint(TrackEvent::kNameIidFieldNumber, name.name_id_);
  } else {
    event.PutBytes(TrackEvent::kNameFieldNumber, name.text_);
  }
}

void PerfettoWriter::OpenEvent(uint32_t type, uint64_t track, const TraceName& name,
                               uint64_t time_ns) {
  is_open_ = true;
  event_ns_ = time_ns;
  event_.Clear();
  PutHead(type, track, name, event_);
  ++slices_;
}

void PerfettoWriter::CloseEvent() {
  if (!is_open_) return;
  is_open_ = false;
  AppendInOrder(event_ns_, TracePacket::kTrackEventFieldNumber, event_.view());
}

void PerfettoWriter::AdvanceTo(uint64_t time_ns) {
  for (; !ends_.empty() && ends_.top().time_ns <= time_ns; ends_.pop()) AppendEnd(ends_.top());
}

void PerfettoWriter::AppendEnd(const End& end) {
  const auto put = [&](WireBuffer& event) {
    event.PutVarint(TrackEvent::kTypeFieldNumber, kEnd);
    event.PutVarint(TrackEvent::kTrackUuidFieldNumber, end.track);
  };
  if (defines_ || end.time_ns < clock_ns_) {
    other_.Clear();
    put(other_);
    return AppendInOrder(end.time_ns, TracePacket::kTrackEventFieldNumber, other_.view());
  }
  // Half of all packets, and short: made in their place.
  const size_t packet = packets_.BeginShort(perfetto::Trace::kPacketFieldNumber);
  packets_.PutVarint(TracePacket::kTimestampFieldNumber, end.time_ns - clock_ns_);
  PutSequence(packets_);
  clock_ns_ = end.time_ns;
  const size_t event = packets_.BeginShort(TracePacket::kTrackEventFieldNumber);
  put(packets_);
  packets_.EndShort(event);
  packets_.EndShort(packet);
  EndPacket();
}

void PerfettoWriter::Slice(TraceTrack track, const TraceName& name, uint64_t start_ns,
                           uint64_t end_ns) {
  CloseEvent();
  AdvanceTo(start_ns);
  OpenEvent(kBegin, UuidOf(track), name, start_ns);
  ends_.push({std::max(start_ns, end_ns), ++begun_, UuidOf(track)});
}

void PerfettoWriter::BeginArrows(uint64_t first, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    event_.PutFixed64(TrackEvent::kFlowIdsFieldNumber, first + i);
  }
}

void PerfettoWriter::Arrow(Literal name, uint64_t number, TraceTrack from, uint64_t from_ns,
                           TraceTrack /*to*/, uint64_t /*to_ns*/) {
  if (number == 0) {
    number = kFirstUnannouncedArrow + unannounced_arrows_++;
    const TraceName begin = Name(name, name);
    other_.Clear();
    PutHead(kInstant, UuidOf(from), begin, other_);
    other_.PutFixed64(TrackEvent::kFlowIdsFieldNumber, number);
    AppendInOrder(from_ns, TracePacket::kTrackEventFieldNumber, other_.view());
  }
  event_.PutFixed64(TrackEvent::kTerminatingFlowIdsFieldNumber, number);
}

void PerfettoWriter::Instant(TraceTrack track, const TraceName& name, uint64_t time_ns) {
  CloseEvent();
  AdvanceTo(time_ns);
  OpenEvent(kInstant, UuidOf(track), name, time_ns);
}

void PerfettoWriter::Mark(std::string_view name, uint64_t time_ns) {
  CloseEvent();
  other_.Clear();
  PutTraceMoment(ForOneLine(name), other_);
  AppendAtTime(time_ns, TracePacket::kTrackEventFieldNumber, other_.view());
}

void PerfettoWriter::Counter(uint32_t pid, std::string_view name, std::string_view series,
                             uint64_t time_ns, double value) {
  CloseEvent();
  AdvanceTo(~uint64_t{0});
  const auto [track, is_new] = counters_.try_emplace({pid, std::string(name), std::string(series)},
                                                     kFirstCounterUuid + counters_.size());
  if (is_new) {
    TrackDescriptor descriptor;
    descriptor.set_uuid(track->second);
    descriptor.set_parent_uuid(UuidOf(pid));
    descriptor.set_name(ForOneLine(name));
    descriptor.mutable_counter()->set_unit_name(ForOneLine(series));
    AppendTrack(descriptor);
  }
  other_.Clear();
  other_.PutVarint(TrackEvent::kTypeFieldNumber, kCounter);
  other_.PutVarint(TrackEvent::kTrackUuidFieldNumber, track->second);
  other_.PutDouble(TrackEvent::kDoubleCounterValueFieldNumber, value);
  AppendAtTime(time_ns, TracePacket::kTrackEventFieldNumber, other_.view());
}

uint64_t PerfettoWriter::KeyOf(std::string_view key) {
  const auto address = reinterpret_cast<uintptr_t>(key.data());
  KnownKey& known = known_keys_[(address ^ address >> 8) % known_keys_.size()];
  if (known.key != key.data()) {
    known = {key.data(),
             Intern(keys_, key, [&] { return defined_->add_debug_annotation_names(); })};
  }
  return known.id;
}

size_t PerfettoWriter::BeginArg(Literal key) {
  const uint64_t id = KeyOf(key);
  const size_t place = event_.BeginShort(TrackEvent::kDebugAnnotationsFieldNumber);
  if (id != 0) {
    event_.PutVarint(DebugAnnotation::kNameIidFieldNumber, id);
  } else {
    event_.PutBytes(DebugAnnotation::kNameFieldNumber, key);
  }
  return place;
}

void PerfettoWriter::ArgSigned(Literal key, int64_t value) {
  const size_t place = BeginArg(key);
  event_.PutVarint(DebugAnnotation::kIntValueFieldNumber, static_cast<uint64_t>(value));
  event_.EndShort(place);
}

void PerfettoWriter::ArgUnsigned(Literal key, uint64_t value) {
  const size_t place = BeginArg(key);
  event_.PutVarint(DebugAnnotation::kUintValueFieldNumber, value);
  event_.EndShort(place);
}

void PerfettoWriter::Arg(Literal key, const std::array<int32_t, 3>& values) {
  const size_t place = BeginArg(key);
  for (const int32_t value : values) {
    const size_t item = event_.BeginShort(DebugAnnotation::kArrayValuesFieldNumber);
    event_.PutVarint(DebugAnnotation::kIntValueFieldNumber, static_cast<uint64_t>(int64_t{value}));
    event_.EndShort(item);
  }
  event_.EndShort(place);
}

void PerfettoWriter::ArgText(Literal key, std::string_view text) { ArgText(key, Text(text)); }

void PerfettoWriter::ArgText(Literal key, const TraceText& text) {
  if (text.id_ != 0) {
    const size_t place = BeginArg(key);
    event_.PutVarint(DebugAnnotation::kStringValueIidFieldNumber, text.id_);
    event_.EndShort(place);
    return;
  }
  other_.Clear();
  other_.PutBytes(DebugAnnotation::kNameFieldNumber, key);
  other_.PutBytes(DebugAnnotation::kStringValueFieldNumber, text.text_);
  event_.PutBytes(TrackEvent::kDebugAnnotationsFieldNumber, other_.view());
}

void PerfettoWriter::ArgThousandths(Literal key, uint64_t thousandths) {
  const size_t place = BeginArg(key);
  event_.PutDouble(DebugAnnotation::kDoubleValueFieldNumber,
                   static_cast<double>(thousandths) / 1000);
  event_.EndShort(place);
}

void PerfettoWriter::NameProcess(uint32_t pid, TraceGroup group, std::string_view name,
                                 uint64_t sort_index) {
  const std::string shown = ForOneLine(name);
  TrackDescriptor track;
  track.set_uuid(UuidOf(pid));
  track.set_child_ordering(kByRank);
  track.set_sibling_order_rank(Rank(sort_index));
  if (group == TraceGroup::kProcess) {
    track.mutable_process()->set_pid(static_cast<int32_t>(pid));
    track.mutable_process()->set_process_name(shown);
    track.mutable_process()->set_legacy_sort_index(Rank(sort_index));
  } else {
    track.set_name(shown);
    track.set_sibling_merge_behavior(kKeepApart);
  }
  AppendTrack(track);
}

void PerfettoWriter::NameThread(TraceTrack track, TraceTrackKind kind, std::string_view name,
                                uint64_t sort_index) {
  const std::string shown = ForOneLine(name);
  TrackDescriptor descriptor;
  descriptor.set_uuid(UuidOf(track));
  descriptor.set_parent_uuid(UuidOf(track.pid));
  descriptor.set_sibling_order_rank(Rank(sort_index));
  if (kind == TraceTrackKind::kThread) {
    descriptor.mutable_thread()->set_pid(static_cast<int32_t>(track.pid));
    descriptor.mutable_thread()->set_tid(static_cast<int32_t>(track.tid));
    descriptor.mutable_thread()->set_thread_name(shown);
    descriptor.mutable_thread()->set_legacy_sort_index(Rank(sort_index));
  } else {
    descriptor.set_name(shown);
    descriptor.set_sibling_merge_behavior(kKeepApart);
  }
  AppendTrack(descriptor);
}

void PerfettoWriter::AppendTrack(TrackDescriptor& track) {
  TracePacket packet;
  packet.mutable_track_descriptor()->Swap(&track);
  Append(packet);
}

void PerfettoWriter::Append(TracePacket& packet) {
  packet.set_trusted_packet_sequence_id(kSequence);
  packets_.PutBytes(perfetto::Trace::kPacketFieldNumber, packet.SerializeAsString());
  EndPacket();
}

void PerfettoWriter::AppendInOrder(uint64_t time_ns, int field, std::string_view body) {
  if (time_ns < clock_ns_) return AppendAtTime(time_ns, field, body);
  head_.Clear();
  head_.PutVarint(TracePacket::kTimestampFieldNumber, time_ns - clock_ns_);
  clock_ns_ = time_ns;
  AppendParts(field, body);
}

void PerfettoWriter::AppendAtTime(uint64_t time_ns, int field, std::string_view body) {
  head_.Clear();
  head_.PutVarint(TracePacket::kTimestampFieldNumber, time_ns);
  head_.PutVarint(TracePacket::kTimestampClockIdFieldNumber, kMonotonic);
  AppendParts(field, body);
}

void PerfettoWriter::AppendParts(int field, std::string_view body) {
  PutSequence(head_);
  if (defines_) {
    head_.PutBytes(TracePacket::kInternedDataFieldNumber, defined_->SerializeAsString());
    defined_->Clear();
    defines_ = false;
  }
  packets_.PutMessage(perfetto::Trace::kPacketFieldNumber, head_.view(), field, body);
  EndPacket();
}

void PerfettoWriter::EndPacket() {
  if (packets_.size() < kBlockBytes) return;
  compressor_.Add(packets_.view());
  packets_.Clear();
}

void PerfettoWriter::WriteBlock(std::string_view deflated) {
  WireBuffer packet;
  packet.PutBytes(TracePacket::kCompressedPacketsFieldNumber, deflated);
  WireBuffer file;
  file.PutBytes(perfetto::Trace::kPacketFieldNumber, packet.view());
  output_.WriteBytes(file.view());
}

void PerfettoWriter::Finish(std::span<const Fact> facts) {
  CloseEvent();
  AdvanceTo(~uint64_t{0});
  // Viewers that do not know attributes of traces show them as what begins with the trace.
  other_.Clear();
  PutTraceMoment("recording", other_);
  TracePacket packet;
  for (const auto& [key, text] : facts) {
    TraceAttributes::Attribute& attribute = *packet.mutable_trace_attributes()->add_attribute();
    attribute.set_key(ForOneLine(key));
    attribute.set_string_value(ForOneLine(text));
    DebugAnnotation annotation;
    annotation.set_name(attribute.key());
    annotation.set_string_value(attribute.string_value());
    other_.PutBytes(TrackEvent::kDebugAnnotationsFieldNumber, annotation.SerializeAsString());
  }
  AppendAtTime(base_ns_, TracePacket::kTrackEventFieldNumber, other_.view());
  Append(packet);
  compressor_.Add(packets_.view());
  compressor_.Finish();
}

void WritePerfetto(Analysis& analysis, const ViewOptions& options, Output& output,
                   std::string& notes) {
  const uint64_t base_ns = FirstTimeOf(analysis);
  PerfettoWriter writer(analysis, base_ns, output);
  WriteTimeline(analysis, options, base_ns, writer, output, notes);
}

View PerfettoView() {
  return {
      .option = "--perfetto",
      .help = "a trace for Perfetto, with CPU stacks; -o FILE.pftrace",
      .takes_sample = true,
      .shows_slices = true,
      .is_for_reading = false,
      .shows_lines = true,
      .file_name_end = ".pftrace",
      .events = View::Events::kOneClockAndMoments,
      .write =
          [](const ViewInput& input) {
            WritePerfetto(input.analysis, input.options, input.output, input.notes);
          },
  };
}

}  // namespace xpu
