// What raw CUPTI buffers of a real GPU hold (tests/captures/cupti) comes back from a capture: each
// record through the recorder's decoder, the writer and the reader, then every byte of it compared
// by the tables below. They are written after cupti.h of CUDA 13.0, not after our own structs, and
// say of each byte where it went or why it is left out.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zstd.h>

#include "cupti_raw.h"
#include "format/events.h"
#include "format/reader.h"
#include "record/gpu/cupti_decode.h"
#include "tests/unit/tests_directory.h"

namespace xpu {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

constexpr uint32_t kMemcpyKind = 1, kMemsetKind = 2, kDeviceKind = 8, kContextKind = 9,
                   kKernelKind = 10, kNameKind = 11, kOverheadKind = 17, kSyncKind = 38,
                   kGraphTraceKind = 51;

struct Part {
  size_t offset;
  size_t width;
  std::string_view field;          // of the event; empty: left out,
  std::string_view left_out = {};  // because
};
using Layout = std::vector<Part>;

constexpr std::string_view kKind = "the list says it";
constexpr std::string_view kPointer = "a pointer means nothing outside the program";
constexpr std::string_view kPadding = "padding";
constexpr std::string_view kReserved = "reserved";

// CUpti_ActivityKernel10
const Layout kKernelLayout = {
    {0, 4, {}, kKind},
    {4, 1, "cache_config"},
    {5, 1, "shared_memory_config"},
    {6, 2, "registers_per_thread"},
    {8, 4, "partitioned_global_cache_requested"},
    {12, 4, "partitioned_global_cache_executed"},
    {16, 8, "start_ns"},
    {24, 8, "end_ns"},
    {32, 8, "completed_ns"},
    {40, 4, "device_id"},
    {44, 4, "context_id"},
    {48, 4, "stream_id"},
    {52, 4, "grid_x"},
    {56, 4, "grid_y"},
    {60, 4, "grid_z"},
    {64, 4, "block_x"},
    {68, 4, "block_y"},
    {72, 4, "block_z"},
    {76, 4, "static_shared_memory_bytes"},
    {80, 4, "dynamic_shared_memory_bytes"},
    {84, 4, "local_memory_per_thread_bytes"},
    {88, 4, "local_memory_total_bytes"},  // deprecated: the low half of the one at 192
    {92, 4, "correlation_id"},
    {96, 8, "grid_id"},
    {104, 8, {}, kPointer},  // the name: compared as text
    {112, 8, {}, kReserved},
    {120, 8, "queued_ns"},
    {128, 8, "submitted_ns"},
    {136, 1, "launch_type"},
    {137, 1, "shared_memory_carveout_is_requested"},
    {138, 1, "shared_memory_carveout_requested"},
    {139, 1, {}, kPadding},
    {140, 4, "shared_memory_executed_bytes"},
    {144, 8, "graph_node_id"},
    {152, 4, "shared_memory_limit_config"},
    {156, 4, "graph_id"},
    {160, 8, {}, kPointer},  // the access policy window
    {168, 4, "channel_id"},
    {172, 4, "channel_type"},
    {176, 4, "cluster_x"},
    {180, 4, "cluster_y"},
    {184, 4, "cluster_z"},
    {188, 4, "cluster_scheduling_policy"},
    {192, 8, "local_memory_total_bytes"},
    {200, 4, "max_potential_cluster_size"},
    {204, 4, "max_active_clusters"},
    {208, 1, "is_device_launched"},
    {209, 7, {}, kPadding},
};

// CUpti_ActivityMemcpy6
const Layout kMemcpyLayout = {
    {0, 4, {}, kKind},
    {4, 1, "copy_kind"},
    {5, 1, "source_kind"},
    {6, 1, "destination_kind"},
    {7, 1, "flags"},
    {8, 8, "size_bytes"},
    {16, 8, "start_ns"},
    {24, 8, "end_ns"},
    {32, 4, "device_id"},
    {36, 4, "context_id"},
    {40, 4, "stream_id"},
    {44, 4, "correlation_id"},
    {48, 4, "runtime_correlation_id"},
    {52, 4, {}, kPadding},
    {56, 8, {}, kReserved},
    {64, 8, "graph_node_id"},
    {72, 4, "graph_id"},
    {76, 4, "channel_id"},
    {80, 4, "channel_type"},
    {84, 1, "is_device_launched"},
    {85, 3, {}, kPadding},
    {88, 8, "copy_count"},
};

// CUpti_ActivityMemset4
const Layout kMemsetLayout = {
    {0, 4, {}, kKind},      {4, 4, "value"},          {8, 8, "size_bytes"},
    {16, 8, "start_ns"},    {24, 8, "end_ns"},        {32, 4, "device_id"},
    {36, 4, "context_id"},  {40, 4, "stream_id"},     {44, 4, "correlation_id"},
    {48, 2, "flags"},       {50, 2, "memory_kind"},   {52, 4, {}, kPadding},
    {56, 8, {}, kReserved}, {64, 8, "graph_node_id"}, {72, 4, "graph_id"},
    {76, 4, "channel_id"},  {80, 4, "channel_type"},  {84, 1, "is_device_launched"},
    {85, 3, {}, kPadding},
};

// CUpti_ActivitySynchronization2
const Layout kSyncLayout = {
    {0, 4, {}, kKind},         {4, 4, "type"},          {8, 8, "start_ns"},    {16, 8, "end_ns"},
    {24, 4, "correlation_id"}, {28, 4, "context_id"},   {32, 4, "stream_id"},  {36, 4, "event_id"},
    {40, 8, "event_sync_id"},  {48, 4, "return_value"}, {52, 4, {}, kPadding},
};

// CUpti_ActivityGraphTrace2
const Layout kGraphTraceLayout = {
    {0, 4, {}, kKind},        {4, 4, "correlation_id"},  {8, 8, "start_ns"},
    {16, 8, "end_ns"},        {24, 4, "device_id"},      {28, 4, "graph_id"},
    {32, 4, "context_id"},    {36, 4, "stream_id"},      {40, 8, {}, kReserved},
    {48, 4, "end_device_id"}, {52, 4, "end_context_id"},
};

// CUpti_ActivityOverhead3
const Layout kOverheadLayout = {
    {0, 4, {}, kKind},      {4, 4, "overhead_kind"}, {8, 4, "object_kind"},
    {12, 4, "object_id_0"}, {16, 4, "object_id_1"},  {20, 4, "object_id_2"},
    {24, 8, "start_ns"},    {32, 8, "end_ns"},       {40, 4, "correlation_id"},
    {44, 4, {}, kReserved}, {48, 8, {}, kPointer},
};

// CUpti_ActivityDevice5. The whole record is a raw activity beside the event.
constexpr std::string_view kRaw = "in the raw activity";
const Layout kDeviceLayout = {
    {0, 16, {}, kRaw},
    {16, 8, "global_memory_bytes"},
    {24, 20, {}, kRaw},
    {44, 4, "multiprocessor_count"},
    {48, 56, {}, kRaw},
    {104, 4, "compute_capability_major"},
    {108, 4, "compute_capability_minor"},
    {112, 4, "device_id"},
    {116, 4, {}, kRaw},
    {120, 16, {}, "the uuid, compared as bytes"},
    {136, 8, {}, kPointer},  // the name: compared as text
    {144, 40, {}, kRaw},
};

// Where records have pointers: the first is that of the name, 0 where it has none.
const std::map<uint32_t, std::vector<size_t>> kPointers = {
    {kKernelKind, {104, 160}}, {kDeviceKind, {136}}, {kNameKind, {24}}, {kOverheadKind, {0, 48}}};

uint32_t KindOf(const Bytes& bytes) {
  uint32_t kind = 0;
  std::memcpy(&kind, bytes.data(), sizeof(kind));
  return kind;
}

uint64_t ValueAt(const Bytes& bytes, size_t offset, size_t width) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, width);
  return value;
}

struct Sent {
  Bytes bytes;  // as they came from CUPTI, with pointers
  std::string name;
  // What the injected library hands on: pointers are 0.
  Bytes WithoutPointers() const {
    Bytes copy = bytes;
    const auto pointers = kPointers.find(KindOf(bytes));
    if (pointers == kPointers.end()) return copy;
    for (const size_t offset : pointers->second) {
      if (offset != 0) std::memset(copy.data() + offset, 0, sizeof(uint64_t));
    }
    return copy;
  }
};

cupti_raw::Capture LoadRaw(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string packed{std::istreambuf_iterator<char>(file), {}};
  const auto size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  cupti_raw::Capture capture;
  if (size == ZSTD_CONTENTSIZE_ERROR || size > (64 << 20)) {
    ADD_FAILURE() << path << " is no zstd file that states its size";
    return capture;
  }
  std::vector<uint8_t> bytes(size);
  EXPECT_EQ(ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size()), size);
  std::string error;
  EXPECT_TRUE(cupti_raw::Parse(bytes, &capture, &error)) << path << ": " << error;
  return capture;
}

std::vector<Sent> RecordsOf(const cupti_raw::Capture& capture) {
  std::vector<Sent> records;
  for (const cupti_raw::Buffer& buffer : capture.buffers) {
    for (size_t i = 0; i < buffer.record_offsets.size(); ++i) {
      const auto raw = std::as_bytes(buffer.Record(i));
      Sent& sent = records.emplace_back(Sent{{raw.begin(), raw.end()}, {}});
      const auto pointers = kPointers.find(KindOf(sent.bytes));
      if (pointers == kPointers.end() || pointers->second.front() == 0) continue;
      const auto text = buffer.strings.find(ValueAt(sent.bytes, pointers->second.front(), 8));
      if (text != buffer.strings.end()) sent.name = text->second;
    }
  }
  return records;
}

void WriteCapture(const std::vector<Sent>& records, InstanceId instance, const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
  auto writer = CaptureWriter::Create(std::move(fd), path.string());
  ASSERT_TRUE(writer.ok());
  EventSink sink(std::move(*writer));
  for (const Sent& sent : records) {
    const Bytes bytes = sent.WithoutPointers();
    DecodedActivity decoded = DecodeActivity(bytes);
    KeptText name{.text = sent.name};
    WriteActivity(bytes, decoded, name, instance, sink);
  }
  sink.Close({});
  EXPECT_FALSE(sink.failure().has_value());
}

const std::set<uint32_t> kWithList = {kMemcpyKind, kMemsetKind,   kDeviceKind,    kKernelKind,
                                      kSyncKind,   kOverheadKind, kGraphTraceKind};

// Compares what a reader gives with what was sent, in its order.
class Comparison {
 public:
  Comparison(const std::vector<Sent>& records, InstanceId instance, CaptureReader& reader)
      : instance_(instance), reader_(reader) {
    for (const Sent& sent : records) {
      const uint32_t kind = KindOf(sent.bytes);
      by_kind_[kind].push_back(&sent);
      if (kind == kDeviceKind || !kWithList.contains(kind)) raw_.push_back(&sent);
    }
  }

  void Run() {
    while (const auto batch = reader_.Next()) {
      Compare(kKernelKind, kKernelLayout, batch->kernels);
      Compare(kMemcpyKind, kMemcpyLayout, batch->memcpys);
      Compare(kMemsetKind, kMemsetLayout, batch->memsets);
      Compare(kSyncKind, kSyncLayout, batch->synchronizations);
      Compare(kGraphTraceKind, kGraphTraceLayout, batch->graph_launches);
      Compare(kOverheadKind, kOverheadLayout, batch->overheads);
      Compare(kDeviceKind, kDeviceLayout, batch->devices);
      for (const RawActivity& raw : batch->raw_activities) CompareRaw(raw);
    }
    EXPECT_EQ(reader_.problems().blocks_damaged, 0u);
    EXPECT_EQ(raw_seen_, raw_.size());
    for (const uint32_t kind : kWithList) {
      EXPECT_EQ(seen_[kind], by_kind_[kind].size()) << "kind " << kind;
    }
  }

 private:
  template <typename Event>
  void Compare(uint32_t kind, const Layout& layout, const std::vector<Event>& events) {
    for (const Event& event : events) {
      const size_t index = seen_[kind]++;
      ASSERT_LT(index, by_kind_[kind].size()) << "kind " << kind;
      SCOPED_TRACE(testing::Message() << "record " << index << " of kind " << kind);
      CompareFields(layout, *by_kind_[kind][index], event);
      if (testing::Test::HasFailure()) return;  // one record says enough
    }
  }

  template <typename Event>
  void CompareFields(const Layout& layout, const Sent& sent, const Event& event) {
    ASSERT_EQ(sent.bytes.size(), layout.back().offset + layout.back().width);
    std::map<std::string_view, uint64_t> numbers;
    VisitFields(event, [&](std::string_view name, const auto& field) {
      using Field = std::remove_cvref_t<decltype(field)>;
      if constexpr (std::is_same_v<Field, StringId>) {
        CompareText(name, reader_.String(field), sent);
      } else if constexpr (std::is_same_v<Field, InstanceId>) {
        EXPECT_EQ(field, instance_);
      } else if constexpr (std::is_same_v<Field, bool>) {
        numbers[name] = field ? 1 : 0;
      } else {
        numbers[name] = static_cast<std::make_unsigned_t<Field>>(field);
      }
    });
    std::set<std::string_view> compared = {"record_size_bytes"};
    if (numbers.contains("record_size_bytes")) {
      EXPECT_EQ(numbers["record_size_bytes"], sent.bytes.size());
    }
    for (const Part& part : layout) {
      if (part.field.empty()) continue;
      ASSERT_TRUE(numbers.contains(part.field)) << part.field;
      compared.insert(part.field);
      const uint64_t mask = part.width == 8 ? ~uint64_t{0} : (uint64_t{1} << part.width * 8) - 1;
      EXPECT_EQ(numbers[part.field] & mask, ValueAt(sent.bytes, part.offset, part.width))
          << part.field;
    }
    for (const auto& [name, value] : numbers) {
      EXPECT_TRUE(value == 0 || compared.contains(name)) << name << " is not in the record";
    }
  }

  void CompareText(std::string_view field, std::string_view text, const Sent& sent) {
    if (field == "name") {
      EXPECT_EQ(text, sent.name);
      EXPECT_FALSE(text.empty());
    } else if (field == "uuid") {
      EXPECT_EQ(text, std::string_view(reinterpret_cast<const char*>(&sent.bytes[120]), 16));
    } else {
      EXPECT_EQ(field, "tail");
      EXPECT_EQ(text, "") << "the layout has every byte";
    }
  }

  void CompareRaw(const RawActivity& raw) {
    ASSERT_LT(raw_seen_, raw_.size());
    const Sent& sent = *raw_[raw_seen_++];
    const Bytes expected = sent.WithoutPointers();
    EXPECT_EQ(raw.instance, instance_);
    EXPECT_EQ(raw.kind, KindOf(sent.bytes));
    EXPECT_EQ(reader_.String(raw.name), sent.name);
    EXPECT_EQ(reader_.String(raw.bytes),
              std::string_view(reinterpret_cast<const char*>(expected.data()), expected.size()));
  }

  InstanceId instance_;
  CaptureReader& reader_;
  std::map<uint32_t, std::vector<const Sent*>> by_kind_;
  std::map<uint32_t, size_t> seen_;
  std::vector<const Sent*> raw_;
  size_t raw_seen_ = 0;
};

TEST(CuptiRoundtrip, LayoutsCoverEveryByte) {
  for (const Layout* layout : {&kKernelLayout, &kMemcpyLayout, &kMemsetLayout, &kSyncLayout,
                               &kGraphTraceLayout, &kOverheadLayout, &kDeviceLayout}) {
    size_t end = 0;
    for (const Part& part : *layout) {
      EXPECT_EQ(part.offset, end) << part.field;
      EXPECT_NE(part.field.empty(), part.left_out.empty()) << "at " << part.offset;
      end = part.offset + part.width;
    }
    EXPECT_EQ(end % 8, 0u);
  }
}

TEST(CuptiRoundtrip, EveryByteOfARealGpusRecordsComesBack) {
  const fs::path path =
      fs::path(testing::TempDir()) / ("cupti_roundtrip_" + std::to_string(getpid()) + ".xpu");
  std::map<uint32_t, size_t> counts;
  uint64_t number = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(TestsDirectory()) / "captures/cupti")) {
    if (!entry.path().string().ends_with(".raw.zst")) continue;
    SCOPED_TRACE(entry.path().filename());
    const InstanceId instance{0x8000000000000001 + number++};
    const std::vector<Sent> records = RecordsOf(LoadRaw(entry.path()));
    for (const Sent& sent : records) ++counts[KindOf(sent.bytes)];
    WriteCapture(records, instance, path);
    auto reader = CaptureReader::Open(path.string());
    ASSERT_TRUE(reader.ok());
    Comparison(records, instance, *reader).Run();
    if (HasFailure()) break;
  }
  fs::remove(path);
  for (const uint32_t kind : {kKernelKind, kMemcpyKind, kMemsetKind, kSyncKind, kGraphTraceKind,
                              kOverheadKind, kDeviceKind, kContextKind}) {
    EXPECT_GT(counts[kind], 0u) << "kind " << kind;
    RecordProperty("records_of_kind_" + std::to_string(kind), std::to_string(counts[kind]));
  }
}

}  // namespace
}  // namespace xpu
