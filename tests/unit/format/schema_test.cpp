// What record_compiler.cpp makes of capture.capnp.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "format/events.h"

namespace xpu::test {
namespace {

template <typename Event>
FieldInfo InfoOf(std::string_view name) {
  FieldInfo found{nullptr};
  Event event;
  VisitFields(event, [&](FieldInfo info, auto&) {
    if (info.name == name) found = info;
  });
  EXPECT_NE(found.name, nullptr) << name;
  return found;
}

TEST(Schema, KindsHaveTheirNames) {
  EXPECT_EQ(kEventName<Loss>, "loss");
  EXPECT_EQ(kEventName<GpuProcess>, "gpu_process");
  EventBatch batch;
  VisitLists(batch, []<typename Event>(const char* list, std::vector<Event>&) {
    EXPECT_FALSE(kEventName<Event>.empty()) << list;
  });
}

TEST(Schema, FieldsHaveTheirNamesInOrder) {
  std::vector<std::string> names;
  Overhead overhead;
  VisitFields(overhead, [&names](const char* name, auto&) { names.emplace_back(name); });
  EXPECT_EQ(names,
            (std::vector<std::string>{"instance", "record_size_bytes", "start_ns", "end_ns",
                                      "overhead_kind", "object_kind", "object_id_0", "object_id_1",
                                      "object_id_2", "correlation_id", "tail"}));
}

// Each field begins where the one before it ends: none is left out.
TEST(Schema, FieldsCoverTheStructs) {
  EventBatch batch;
  VisitLists(batch, []<typename Event>(const char* list, std::vector<Event>&) {
    Event event;
    const auto* base = reinterpret_cast<const char*>(&event);
    size_t end = 0;
    VisitFields(event, [&]<typename T>(const char* name, T& field) {
      const size_t begin = (end + alignof(T) - 1) / alignof(T) * alignof(T);
      EXPECT_EQ(static_cast<size_t>(reinterpret_cast<const char*>(&field) - base), begin)
          << list << "." << name;
      end = begin + sizeof(T);
    });
    EXPECT_EQ((end + alignof(Event) - 1) / alignof(Event) * alignof(Event), sizeof(Event)) << list;
  });
}

TEST(Schema, TimesHaveTheirClock) {
  EXPECT_EQ(InfoOf<ApiCall>("start_ns").clock, Clock::kMonotonic);
  EXPECT_EQ(InfoOf<Kernel>("start_ns").clock, Clock::kCupti);
  EXPECT_EQ(InfoOf<MemoryOperation>("time_ns").clock, Clock::kCupti);
  EXPECT_EQ(InfoOf<RecordingInfo>("start_realtime_ns").clock, Clock::kRealtime);
  EXPECT_EQ(InfoOf<Kernel>("grid_id").clock, Clock::kNone);
}

TEST(Schema, FieldsHaveTheirMeaning) {
  EXPECT_EQ(InfoOf<ProcessEvent>("parent_tid").meaning, Meaning::kProcess);
  EXPECT_EQ(InfoOf<CpuSample>("source").meaning, Meaning::kDefinition);
  EXPECT_EQ(InfoOf<CpuSample>("stack_flags").meaning, Meaning::kStackFlags);
  EXPECT_EQ(InfoOf<Mapping>("start_address").meaning, Meaning::kAddress);
  EXPECT_EQ(InfoOf<Mapping>("build_id").meaning, Meaning::kBytes);
  EXPECT_EQ(InfoOf<Mapping>("path").meaning, Meaning::kNumber);
}

TEST(Schema, ValuesHaveTheirNames) {
  EXPECT_EQ(NameOf(LaunchStackSource::kInProcess), "in_process");
  EXPECT_EQ(NameOf(NvtxPayload::kUint64), "uint64");
  EXPECT_EQ(NameOf(static_cast<NvtxPayload>(200)), "");
}

}  // namespace
}  // namespace xpu::test
