// What a hostile program can put into the ring that it shares with the recorder. The first byte
// says what the input is: 0: the memory of the ring as it is; else a row of {kind, size in two
// bytes, content}, from which whole messages are made: kind 0 writes into the ring's header.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cupti_inject/wire.h"
#include "format/base/check.h"
#include "format/writer.h"
#include "record/gpu/gpu_peer.h"
#include "record/symbols/hit_files.h"

namespace {

using namespace xpu;

constexpr uint64_t kCapacity = uint64_t{256} << 10;
// Nothing of it is in /proc.
constexpr pid_t kNobody = std::numeric_limits<pid_t>::max();

EventSink MakeSink() {
  UniqueFd fd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  auto writer = CaptureWriter::Create(std::move(fd), "null", {.compression_level = -50});
  XPU_CHECK(writer.ok());
  return EventSink(std::move(writer).value());
}

class Producer {
 public:
  explicit Producer(RingReader& ring)
      : header_(ring.header()),
        data_(reinterpret_cast<std::byte*>(&header_) + wire::kHeaderBytes) {}

  void PutRaw(std::span<const uint8_t> memory) {
    const size_t bytes = std::min<size_t>(memory.size(), kCapacity) / 8 * 8;
    std::memcpy(data_, memory.data(), bytes);
    header_.head.store(bytes);
  }
  void Put(uint8_t kind, std::span<const uint8_t> content) {
    if (kind == 0) return PutIntoHeader(content);
    const uint64_t bytes = (sizeof(wire::MessageHeader) + content.size() + 7) / 8 * 8;
    const uint64_t head = header_.head.load();
    if (bytes > wire::kMaxMessageBytes || bytes > kCapacity - (head - header_.tail.load())) return;
    std::byte* place = data_ + (head & (kCapacity - 1));
    const uint32_t words[] = {static_cast<uint32_t>(bytes) | wire::kReady, kind};
    std::memcpy(place, words, sizeof(words));
    if (!content.empty()) std::memcpy(place + sizeof(words), content.data(), content.size());
    header_.head.store(head + bytes);
  }

 private:
  void PutIntoHeader(std::span<const uint8_t> content) {
    if (content.size() < 9) return;
    uint64_t value = 0;
    std::memcpy(&value, content.data() + 1, sizeof(value));
    switch (content[0] % 4) {
      case 0:
        return header_.counters[value % wire::kCounterCount][0].store(value);
      case 1:
        return header_.state.store(static_cast<wire::State>(value));
      case 2:
        return header_.other_code_count.store(static_cast<uint32_t>(value));
      default:
        return header_.tail.store(value);
    }
  }

  wire::RingHeader& header_;
  std::byte* data_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static auto arena = TableArena::Create(uint64_t{1} << 20);
  XPU_CHECK(arena.ok());
  static SharedTables tables(*std::move(arena), nullptr);
  PythonFiles python;
  ProcessTable processes;
  HitFiles hits(processes);
  EventSink sink = MakeSink();
  sink.AddObserver(&processes);
  sink.AddObserver(&hits);
  auto ring = RingReader::Create(kCapacity);
  XPU_CHECK(ring.ok());
  Producer producer(*ring);
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  ProcessTracker tracker(processes);
  GpuPeer peer({kNobody, 1, 7, std::move(pidfd), *std::move(ring)}, sink,
               {&tables, &processes, (data[0] & 2) != 0 ? &tracker : nullptr, &python});
  std::span<const uint8_t> rest(data + 1, size - 1);
  if (data[0] == 0) producer.PutRaw(rest);
  while (data[0] != 0 && rest.size() >= 3) {
    const uint8_t kind = rest[0];
    const size_t bytes = std::min<size_t>(rest[1] | rest[2] << 8, rest.size() - 3);
    // The highest bit: the recorder looks at what is there before the next one.
    if ((kind & 0x80) != 0) peer.Drain(sink);
    producer.Put(kind & 0x7f, rest.subspan(3, bytes));
    rest = rest.subspan(3 + bytes);
  }
  peer.Drain(sink);
  peer.TakeSwitches();
  peer.Finish(sink, GpuPeer::End::kOfProcess);
  peer.stacks().Finish(sink);
  sink.Flush();
  return 0;
}
