// Every field of every record kind, at the places where cupti.h of CUDA 13.0 has them, in every
// size that a CUPTI since 11.0 gives; what a size does not reach must read as 0.
#include "record/gpu/cupti_decode.h"

#include <cstring>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "format/events.h"

namespace xpu {
namespace {

struct Attach {
  size_t offset;
  size_t size;
};
using Places = std::map<std::string, Attach, std::less<>>;

// Bytes without a zero and without a regular step.
std::vector<std::byte> Pattern(size_t size, uint32_t kind) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = std::byte{static_cast<uint8_t>(1 + i * 37 % 251)};
  std::memcpy(bytes.data(), &kind, std::min(sizeof(kind), size));
  return bytes;
}

uint64_t ValueAt(const std::vector<std::byte>& bytes, Attach place) {
  uint64_t value = 0;
  if (place.offset + place.size > bytes.size()) return 0;
  std::memcpy(&value, bytes.data() + place.offset, place.size);
  return value;
}

template <typename Field>
uint64_t Number(const Field& field) {
  if constexpr (std::is_integral_v<Field>) {
    return static_cast<std::make_unsigned_t<Field>>(field);
  } else {
    return field.value;
  }
}
uint64_t Number(bool field) { return field ? 1 : 0; }

// Compares every field of the decoded event with the pattern; fields in `texts` are ids, which the
// decoder leaves empty.
template <typename Event>
void CheckFields(uint32_t kind, size_t size, const Places& places) {
  SCOPED_TRACE(testing::Message() << "kind " << kind << ", " << size << " bytes");
  const std::vector<std::byte> bytes = Pattern(size, kind);
  const DecodedActivity decoded = DecodeActivity(bytes);
  const auto* event = std::get_if<Event>(&decoded.event);
  ASSERT_NE(event, nullptr);
  size_t checked = 0;
  VisitFields(*event, [&](std::string_view name, const auto& field) {
    if (const auto place = places.find(name); place != places.end()) {
      EXPECT_EQ(Number(field), ValueAt(bytes, place->second)) << name;
      ++checked;
    } else if (name == "record_size_bytes") {
      EXPECT_EQ(Number(field), size);
    } else {
      EXPECT_TRUE(
          name == "instance" || name == "name" || name == "tail" || name == "uuid" ||
          name == "cache_path" || name == "peer_to_peer" || name == "runtime_correlation_id" ||
          name.starts_with("source_") || name.starts_with("destination_") || name == "copy_count" ||
          name == "is_device_launched" || name == "is_async" || name == "pool_utilized_bytes")
          << name << " is not checked";
      const bool is_set = (name == "peer_to_peer" && kind == 22) || name == "is_async";
      EXPECT_EQ(Number(field), is_set ? 1u : 0u) << name;
    }
  });
  EXPECT_EQ(checked, places.size());
  EXPECT_TRUE(decoded.tail.empty());
}

const Places kKernel = {
    {"start_ns", {16, 8}},
    {"end_ns", {24, 8}},
    {"completed_ns", {32, 8}},
    {"queued_ns", {120, 8}},
    {"submitted_ns", {128, 8}},
    {"correlation_id", {92, 4}},
    {"device_id", {40, 4}},
    {"context_id", {44, 4}},
    {"stream_id", {48, 4}},
    {"channel_id", {168, 4}},
    {"channel_type", {172, 4}},
    {"graph_id", {156, 4}},
    {"graph_node_id", {144, 8}},
    {"grid_id", {96, 8}},
    {"grid_x", {52, 4}},
    {"grid_y", {56, 4}},
    {"grid_z", {60, 4}},
    {"block_x", {64, 4}},
    {"block_y", {68, 4}},
    {"block_z", {72, 4}},
    {"cluster_x", {176, 4}},
    {"cluster_y", {180, 4}},
    {"cluster_z", {184, 4}},
    {"cluster_scheduling_policy", {188, 4}},
    {"max_potential_cluster_size", {200, 4}},
    {"max_active_clusters", {204, 4}},
    {"registers_per_thread", {6, 2}},
    {"static_shared_memory_bytes", {76, 4}},
    {"dynamic_shared_memory_bytes", {80, 4}},
    {"shared_memory_executed_bytes", {140, 4}},
    {"local_memory_per_thread_bytes", {84, 4}},
    {"local_memory_total_bytes", {192, 8}},
    {"cache_config", {4, 1}},
    {"shared_memory_config", {5, 1}},
    {"partitioned_global_cache_requested", {8, 4}},
    {"partitioned_global_cache_executed", {12, 4}},
    {"shared_memory_limit_config", {152, 4}},
    {"shared_memory_carveout_is_requested", {137, 1}},
    {"shared_memory_carveout_requested", {138, 1}},
    {"launch_type", {136, 1}},
    {"is_device_launched", {208, 1}},
};

TEST(CuptiDecode, Kernel) {
  for (const uint32_t kind : {3u, 10u}) {
    for (const size_t size : {200u, 208u, 216u}) CheckFields<Kernel>(kind, size, kKernel);
  }
  // Older records have 32 bits of the total, at another place.
  Places old = kKernel;
  old["local_memory_total_bytes"] = {88, 4};
  for (const size_t size : {160u, 168u, 176u}) CheckFields<Kernel>(10, size, old);
}

Places CopyPlaces() {
  return {{"start_ns", {16, 8}},  {"end_ns", {24, 8}},     {"size_bytes", {8, 8}},
          {"device_id", {32, 4}}, {"context_id", {36, 4}}, {"stream_id", {40, 4}},
          {"copy_kind", {4, 1}},  {"source_kind", {5, 1}}, {"destination_kind", {6, 1}},
          {"flags", {7, 1}}};
}

TEST(CuptiDecode, Memcpy) {
  for (const size_t size : {64u, 72u, 80u, 88u, 96u}) {
    Places places = CopyPlaces();
    places["correlation_id"] = {44, 4};
    places["runtime_correlation_id"] = {48, 4};
    places["graph_node_id"] = {64, 8};
    places["graph_id"] = {72, 4};
    // Padding in the records of older versions, whatever it holds.
    places["channel_id"] = size > 80 ? Attach{76, 4} : Attach{1000, 4};
    places["channel_type"] = {80, 4};
    places["is_device_launched"] = size > 88 ? Attach{84, 1} : Attach{1000, 1};
    places["copy_count"] = {88, 8};
    CheckFields<Memcpy>(1, size, places);
  }
}

TEST(CuptiDecode, PeerMemcpy) {
  for (const size_t size : {72u, 80u, 88u, 96u}) {
    Places places = CopyPlaces();
    places["correlation_id"] = {60, 4};
    places["source_device_id"] = {44, 4};
    places["source_context_id"] = {48, 4};
    places["destination_device_id"] = {52, 4};
    places["destination_context_id"] = {56, 4};
    places["graph_node_id"] = {72, 8};
    places["graph_id"] = {80, 4};
    places["channel_id"] = size > 88 ? Attach{84, 4} : Attach{1000, 4};
    places["channel_type"] = {88, 4};
    CheckFields<Memcpy>(22, size, places);
    EXPECT_TRUE(std::get<Memcpy>(DecodeActivity(Pattern(size, 22)).event).peer_to_peer);
  }
  EXPECT_FALSE(std::get<Memcpy>(DecodeActivity(Pattern(96, 1)).event).peer_to_peer);
}

TEST(CuptiDecode, Memset) {
  for (const size_t size : {64u, 72u, 80u, 88u}) {
    const Places places = {{"start_ns", {16, 8}},
                           {"end_ns", {24, 8}},
                           {"size_bytes", {8, 8}},
                           {"value", {4, 4}},
                           {"correlation_id", {44, 4}},
                           {"device_id", {32, 4}},
                           {"context_id", {36, 4}},
                           {"stream_id", {40, 4}},
                           {"flags", {48, 2}},
                           {"memory_kind", {50, 2}},
                           {"graph_node_id", {64, 8}},
                           {"graph_id", {72, 4}},
                           {"channel_id", size > 80 ? Attach{76, 4} : Attach{1000, 4}},
                           {"channel_type", {80, 4}},
                           {"is_device_launched", {84, 1}}};
    CheckFields<Memset>(2, size, places);
  }
}

TEST(CuptiDecode, Synchronization) {
  for (const size_t size : {40u, 56u}) {
    CheckFields<Synchronization>(38, size,
                                 {{"start_ns", {8, 8}},
                                  {"end_ns", {16, 8}},
                                  {"type", {4, 4}},
                                  {"correlation_id", {24, 4}},
                                  {"context_id", {28, 4}},
                                  {"stream_id", {32, 4}},
                                  {"event_id", {36, 4}},
                                  {"event_sync_id", {40, 8}},
                                  {"return_value", {48, 4}}});
  }
}

TEST(CuptiDecode, GraphLaunch) {
  for (const size_t size : {48u, 56u}) {
    CheckFields<GraphLaunch>(51, size,
                             {{"start_ns", {8, 8}},
                              {"end_ns", {16, 8}},
                              {"correlation_id", {4, 4}},
                              {"device_id", {24, 4}},
                              {"context_id", {32, 4}},
                              {"stream_id", {36, 4}},
                              {"graph_id", {28, 4}},
                              {"end_device_id", {48, 4}},
                              {"end_context_id", {52, 4}}});
  }
}

TEST(CuptiDecode, Overhead) {
  for (const size_t size : {40u, 48u, 56u}) {
    CheckFields<Overhead>(17, size,
                          {{"start_ns", {24, 8}},
                           {"end_ns", {32, 8}},
                           {"overhead_kind", {4, 4}},
                           {"object_kind", {8, 4}},
                           {"object_id_0", {12, 4}},
                           {"object_id_1", {16, 4}},
                           {"object_id_2", {20, 4}},
                           {"correlation_id", {40, 4}}});
  }
}

TEST(CuptiDecode, MemoryOperation) {
  for (const size_t size : {112u, 120u, 128u}) {
    Places fields = {
        {"time_ns", {32, 8}},        {"operation", {4, 4}},     {"memory_kind", {8, 4}},
        {"correlation_id", {12, 4}}, {"address", {16, 8}},      {"size_bytes", {24, 8}},
        {"device_id", {52, 4}},      {"context_id", {56, 4}},   {"stream_id", {60, 4}},
        {"pool_type", {80, 4}},      {"pool_address", {88, 8}}, {"pool_size_bytes", {104, 8}}};
    if (size > 112) fields["pool_utilized_bytes"] = {112, 8};
    CheckFields<MemoryOperation>(49, size, fields);
  }
}

TEST(CuptiDecode, JitOperation) {
  for (const size_t size : {64u, 72u}) {
    CheckFields<JitOperation>(52, size,
                              {{"start_ns", {16, 8}},
                               {"end_ns", {24, 8}},
                               {"entry_kind", {4, 4}},
                               {"operation", {8, 4}},
                               {"device_id", {12, 4}},
                               {"correlation_id", {32, 4}},
                               {"jit_correlation_id", {40, 8}},
                               {"cache_size_bytes", {48, 8}},
                               {"tid", {68, 4}}});
  }
}

TEST(CuptiDecode, Device) {
  for (const size_t size : {152u, 176u, 184u}) {
    CheckFields<Device>(8, size,
                        {{"device_id", {112, 4}},
                         {"compute_capability_major", {104, 4}},
                         {"compute_capability_minor", {108, 4}},
                         {"multiprocessor_count", {44, 4}},
                         {"global_memory_bytes", {16, 8}}});
    const auto bytes = Pattern(size, 8);
    const DecodedActivity decoded = DecodeActivity(bytes);
    EXPECT_EQ(decoded.uuid.data(), bytes.data() + 120);
    EXPECT_EQ(decoded.uuid.size(), 16u);
  }
}

TEST(CuptiDecode, NewerFieldsAreKept) {
  const auto bytes = Pattern(232, 10);
  const DecodedActivity decoded = DecodeActivity(bytes);
  const auto& kernel = std::get<Kernel>(decoded.event);
  EXPECT_EQ(kernel.record_size_bytes, 232u);
  EXPECT_EQ(decoded.tail.data(), bytes.data() + 216);
  EXPECT_EQ(decoded.tail.size(), 16u);
}

TEST(CuptiDecode, UnknownOrShortRecordsStayRaw) {
  for (const auto& [kind, size] : std::map<uint32_t, size_t>{{9, 32},
                                                             {37, 40},
                                                             {999, 64},
                                                             {10, 159},
                                                             {1, 63},
                                                             {22, 71},
                                                             {2, 63},
                                                             {38, 39},
                                                             {51, 47},
                                                             {17, 39},
                                                             {52, 63},
                                                             {8, 151},
                                                             {0, 4}}) {
    const DecodedActivity decoded = DecodeActivity(Pattern(size, kind));
    EXPECT_TRUE(std::holds_alternative<RawActivity>(decoded.event)) << kind;
  }
  EXPECT_TRUE(std::holds_alternative<RawActivity>(DecodeActivity({}).event));
}

TEST(CuptiDecode, Correlation) {
  const auto correlation = [](uint32_t kind, size_t size) {
    return CorrelationOf(DecodeActivity(Pattern(size, kind)).event);
  };
  EXPECT_EQ(correlation(10, 216), ValueAt(Pattern(216, 10), {92, 4}));
  EXPECT_EQ(correlation(1, 96), ValueAt(Pattern(96, 1), {44, 4}));
  EXPECT_EQ(correlation(2, 88), ValueAt(Pattern(88, 2), {44, 4}));
  EXPECT_EQ(correlation(51, 56), ValueAt(Pattern(56, 51), {4, 4}));
  EXPECT_EQ(correlation(17, 56), 0u);
  EXPECT_EQ(correlation(38, 56), 0u);
}

}  // namespace
}  // namespace xpu
