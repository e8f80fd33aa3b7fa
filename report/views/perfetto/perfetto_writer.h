// Packets of a Perfetto trace, streamed.
//
// Everything is in one sequence, whose clock counts from the packet before: so the ends of slices
// wait until nothing can come before them, and packets are in order of time. What is not (marks,
// counters, which are made of all events) has times of its own. Texts, frames and stacks are
// defined in the packet that is written next and referred to by their numbers; the state is never
// cleared, as nothing drops a part of a file. Blocks of packets are deflated, on other threads.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <google/protobuf/io/coded_stream.h>

#include "report/analysis/analysis.h"
#include "report/base/byte_buffer.h"
#include "report/base/output.h"
#include "report/views/perfetto/block_compressor.h"
#include "report/views/timeline/trace_sink.h"

namespace xpu {

// An event of a trace has some 20 small messages. As objects of the library, which are filled,
// asked for their sizes and then written, they took three times as long.
class WireBuffer : public ByteBuffer {
 public:
  // Most bytes whose length fits into one byte.
  static constexpr size_t kMostShortBytes = 127;

  void PutVarint(int field, uint64_t value) {
    PutKey(field, kVarint);
    PutNumber(value);
  }
  void PutFixed64(int field, uint64_t value) {
    PutKey(field, kFixed64);
    char* const at = Room(sizeof(value));
    google::protobuf::io::CodedOutputStream::WriteLittleEndian64ToArray(
        value, reinterpret_cast<uint8_t*>(at));
  }
  void PutDouble(int field, double value) { PutFixed64(field, std::bit_cast<uint64_t>(value)); }
  void PutBytes(int field, std::string_view bytes) {
    PutKey(field, kBytes);
    PutNumber(bytes.size());
    PutRaw(bytes);
  }
  // A message of `head`, which are whole fields, and one more field of bytes.
  void PutMessage(int field, std::string_view head, int last_field, std::string_view last) {
    PutKey(field, kBytes);
    PutNumber(head.size() + SizeOf(KeyOf(last_field, kBytes)) + SizeOf(last.size()) + last.size());
    PutRaw(head);
    PutBytes(last_field, last);
  }
  void PutRaw(std::string_view bytes) { Append(bytes); }
  // A message of at most kMostShortBytes begins; its fields are put next. Returns its place.
  size_t BeginShort(int field) {
    PutKey(field, kBytes);
    *Room(1) = 0;
    return size();
  }
  void EndShort(size_t place) { At(place - 1) = static_cast<char>(size() - place); }

 private:
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2 };

  static uint32_t KeyOf(int field, WireType type) {
    return static_cast<uint32_t>(field) << 3 | type;
  }
  static size_t SizeOf(uint64_t number) {
    return google::protobuf::io::CodedOutputStream::VarintSize64(number);
  }
  void PutKey(int field, WireType type) { PutNumber(KeyOf(field, type)); }
  void PutNumber(uint64_t value) {
    constexpr size_t kMostBytes = 10;
    auto* const begin = reinterpret_cast<uint8_t*>(Room(kMostBytes));
    EndAt(reinterpret_cast<const char*>(
        google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, begin)));
  }
};

namespace perfetto {
class InternedData;
class TracePacket;
class TrackDescriptor;
}  // namespace perfetto

class PerfettoWriter : public TraceSink {
 public:
  // Texts of captures that have ever more of them (of NVTX ranges, for instance) are written each
  // time that they occur once those with numbers take this much.
  static constexpr uint64_t kMostTextBytes = uint64_t{64} << 20;

  // Times are not before `base_ns`, but for those of counters and marks. Both must outlive this.
  PerfettoWriter(const Analysis& analysis, uint64_t base_ns, Output& output,
                 uint64_t most_text_bytes = kMostTextBytes);
  ~PerfettoWriter() override;

  TraceName Name(std::string_view name, std::string_view category) override;
  TraceText Text(std::string_view text) override;

  void Slice(TraceTrack track, const TraceName& name, uint64_t start_ns, uint64_t end_ns) override;
  bool has_stacks() const override { return true; }
  void Sample(const TraceSample& sample, const CallTree& tree) override;
  void Stack(PathId path, const CallTree& tree) override;
  void BeginArrows(uint64_t first, uint64_t count) override;
  // One that was not announced begins in a moment of its own with the name of the arrow.
  void Arrow(Literal name, uint64_t number, TraceTrack from, uint64_t from_ns, TraceTrack to,
             uint64_t to_ns) override;
  void Counter(uint32_t pid, std::string_view name, std::string_view series, uint64_t time_ns,
               double value) override;
  void Instant(TraceTrack track, const TraceName& name, uint64_t time_ns) override;
  void Mark(std::string_view name, uint64_t time_ns) override;

  using TraceSink::Arg;
  void Arg(Literal key, const std::array<int32_t, 3>& values) override;
  void ArgText(Literal key, std::string_view text) override;
  void ArgText(Literal key, const TraceText& text) override;
  void ArgThousandths(Literal key, uint64_t thousandths) override;

  void NameProcess(uint32_t pid, TraceGroup group, std::string_view name,
                   uint64_t sort_index) override;
  void NameThread(TraceTrack track, TraceTrackKind kind, std::string_view name,
                  uint64_t sort_index) override;

  void Finish(std::span<const Fact> facts) override;

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Texts = std::unordered_map<std::string, uint64_t, TextHash, std::equal_to<>>;
  // The end of a slice; of those at one time that of the innermost comes first, which began last.
  struct End {
    uint64_t time_ns = 0;
    uint64_t begun = 0;
    uint64_t track = 0;
    bool operator>(const End& other) const {
      return std::tuple(time_ns, other.begun) > std::tuple(other.time_ns, begun);
    }
  };

  void ArgSigned(Literal key, int64_t value) override;
  void ArgUnsigned(Literal key, uint64_t value) override;

  void WriteHead();
  // `define` adds a new text to what the next packet defines. 0: there is no room for it.
  template <typename Define>
  uint64_t Intern(Texts& texts, std::string_view text, Define&& define);
  // The state of a path; one that has a stack is defined.
  enum class KnownStack : uint8_t { kNew, kNoFrames, kUser, kKernel };
  KnownStack StackOf(PathId path, const CallTree& tree);
  KnownStack DefineStack(PathId path, const CallTree& tree);
  void DefineFrame(FrameId frame);
  uint64_t KeyOf(std::string_view key);
  // An argument of the open event; its value is put next.
  size_t BeginArg(Literal key);

  static void PutHead(uint32_t type, uint64_t track, const TraceName& name, WireBuffer& event);
  void OpenEvent(uint32_t type, uint64_t track, const TraceName& name, uint64_t time_ns);
  void CloseEvent();
  // Writes the ends up to then.
  void AdvanceTo(uint64_t time_ns);
  void AppendEnd(const End& end);
  void Append(perfetto::TracePacket& packet);
  void AppendTrack(perfetto::TrackDescriptor& track);
  // `field` of the packet is `body`.
  void AppendInOrder(uint64_t time_ns, int field, std::string_view body);
  void AppendAtTime(uint64_t time_ns, int field, std::string_view body);
  void AppendParts(int field, std::string_view body);
  void EndPacket();
  void WriteBlock(std::string_view deflated);

  const Analysis& analysis_;
  const uint64_t base_ns_;
  Output& output_;
  const uint64_t most_text_bytes_;

  WireBuffer packets_;  // of the block that is not written yet
  WireBuffer head_;     // of a packet
  WireBuffer event_;    // the open one
  WireBuffer other_;    // one that is written at once
  BlockCompressor compressor_;
  bool is_open_ = false;
  uint64_t event_ns_ = 0;
  uint64_t clock_ns_;  // the time of the packet before
  uint64_t begun_ = 0;
  uint64_t unannounced_arrows_ = 0;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;

  std::unique_ptr<perfetto::InternedData> defined_;  // with the next packet
  bool defines_ = false;
  uint64_t text_bytes_ = 0;  // of all texts with a number
  Texts names_;
  Texts categories_;
  Texts values_;
  Texts keys_;
  // Keys are literals, of which there are few: found by their addresses.
  struct KnownKey {
    const char* key = nullptr;
    uint64_t id = 0;
  };
  std::array<KnownKey, 256> known_keys_;
  Texts modules_;
  std::vector<bool> frames_;        // by id: it is defined
  std::vector<KnownStack> stacks_;  // by path
  std::map<std::tuple<uint32_t, std::string, std::string>, uint64_t> counters_;
};

}  // namespace xpu
