#include "report/model/compact_list.h"

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "report/model/load.h"
#include "report/model/loaded_events.h"
#include "report/trace/correlation.h"
#include "report/trace/launch.h"

namespace xpu {
namespace {

// Each field with a number of its own, as far as its type holds it.
template <typename Event>
Event Filled(uint64_t first) {
  Event event;
  VisitFields(event, [&]<typename Field>(std::string_view, Field& field) {
    if constexpr (requires { field.value; }) {
      field = {static_cast<typename Field::Value>(first++)};
    } else {
      field = static_cast<Field>(first++);
    }
  });
  return event;
}

template <typename Event>
std::vector<uint64_t> FieldsOf(const Event& event) {
  std::vector<uint64_t> fields;
  VisitFields(event, [&](std::string_view, const auto& field) {
    if constexpr (requires { field.value; }) {
      fields.push_back(field.value);
    } else {
      fields.push_back(static_cast<uint64_t>(field));
    }
  });
  return fields;
}

constexpr uint64_t kRows = 3;

TEST(CompactList, KeepsEveryFieldOfEveryKindOfEvent) {
  EventBatch batch;
  VisitLists(batch, []<typename Event>(std::string_view, std::vector<Event>& list) {
    for (uint64_t row = 0; row < kRows; ++row) list.push_back(Filled<Event>(1 + 60 * row));
  });
  LoadedEvents loaded;
  AppendEvents(loaded, batch);
  VisitLists(loaded, [](std::string_view name, const auto& list) {
    using Event = std::decay_t<decltype(list[0])>;
    ASSERT_EQ(list.size(), kRows) << name;
    uint64_t row = 0;
    for (const Event& event : list) {
      EXPECT_EQ(FieldsOf(event), FieldsOf(Filled<Event>(1 + 60 * row))) << name << " " << row;
      ++row;
    }
  });
}

// Of one event, `place` counts its fields; beyond them nothing is changed.
template <typename Event>
Event WithOneFieldChanged(uint64_t place) {
  Event event = Filled<Event>(1);
  VisitFields(event, [&]<typename Field>(std::string_view, Field& field) {
    if (place-- != 0) return;
    if constexpr (requires { field.value; }) {
      ++field.value;
    } else if constexpr (std::is_same_v<Field, bool>) {
      field = !field;
    } else {
      field = static_cast<Field>(static_cast<uint64_t>(field) + 1);
    }
  });
  return event;
}

// At first one after the other, twice, then each after others that it never followed before.
TEST(CompactList, EventsThatDifferInAnyOneFieldStayApartInAnyOrder) {
  LoadedEvents none;
  VisitLists(none, []<typename List>(std::string_view name, const List&) {
    using Event = std::decay_t<decltype(std::declval<const List&>()[0])>;
    constexpr uint64_t kKinds = FieldCount<Event>() + 1;
    const auto kind_of = [](uint64_t i) { return i < 2 * kKinds ? i % kKinds : i * i % kKinds; };
    List list;
    for (uint64_t i = 0; i < 6 * kKinds; ++i) {
      list.push_back(WithOneFieldChanged<Event>(kind_of(i)));
    }
    for (uint64_t i = 0; i < list.size(); ++i) {
      ASSERT_EQ(FieldsOf(Event(list[i])), FieldsOf(WithOneFieldChanged<Event>(kind_of(i))))
          << name << " " << i;
    }
  });
}

struct AnyField {
  template <typename Field>
  operator Field() const;  // NOLINT: never called
};

// How many fields a struct can be made from.
template <typename Struct, typename... Fields>
consteval size_t FieldsOfStruct(Fields... fields) {
  if constexpr (requires { Struct{fields..., AnyField{}}; }) {
    return FieldsOfStruct<Struct>(fields..., AnyField{});
  } else {
    return sizeof...(fields);
  }
}

// One that it does not visit would be lost in a list. Launch::process and track are columns that
// are found when all launches are there.
TEST(CompactList, VisitFieldsKnowsEachFieldOfLaunchesAndGpuWork) {
  EXPECT_EQ(FieldCount<Launch>() + 2, FieldsOfStruct<Launch>());
  EXPECT_EQ(FieldCount<GpuWork>(), FieldsOfStruct<GpuWork>());
}

Kernel KernelAt(uint64_t start_ns, uint32_t stream_id, int32_t grid_x) {
  Kernel kernel;
  kernel.start_ns = start_ns;
  kernel.stream_id = stream_id;
  kernel.grid_x = grid_x;
  return kernel;
}

TEST(CompactList, EventsThatDifferInOneFieldStayApart) {
  KernelList kernels;
  for (uint32_t i = 0; i < 2000; ++i) {
    kernels.push_back(KernelAt(i, i % 2, static_cast<int32_t>(i % 500)));
  }
  for (uint32_t i = 0; i < 2000; ++i) {
    EXPECT_EQ(kernels.Get<&Kernel::start_ns>(i), i);
    EXPECT_EQ(kernels.Get<&Kernel::stream_id>(i), i % 2);
    EXPECT_EQ(kernels[i].grid_x, static_cast<int32_t>(i % 500));
  }
}

TEST(CompactList, SortsByAFieldAndKeepsTheOrderOfEqualOnes) {
  ApiCallList calls;
  for (const uint64_t start_ns : {30, 10, 20, 10, 30}) {
    ApiCall call;
    call.start_ns = start_ns;
    call.correlation_id = static_cast<uint32_t>(calls.size());
    call.tid = 100 + call.correlation_id;
    calls.push_back(call);
  }
  calls.SortBy<&ApiCall::start_ns>();
  std::vector<uint64_t> times;
  std::vector<uint32_t> ids;
  std::vector<uint32_t> tids;
  for (const ApiCall& call : calls) {
    times.push_back(call.start_ns);
    ids.push_back(call.correlation_id);
    tids.push_back(call.tid);
  }
  EXPECT_EQ(times, (std::vector<uint64_t>{10, 10, 20, 30, 30}));
  EXPECT_EQ(ids, (std::vector<uint32_t>{1, 3, 2, 0, 4}));
  EXPECT_EQ(tids, (std::vector<uint32_t>{101, 103, 102, 100, 104}));
}

// Enough rows that some are packed when it is sorted or moved.
TEST(CompactList, TakesMoreAfterSortingAndAfterAMove) {
  constexpr uint32_t kMany = 700;
  KernelList kernels;
  for (uint32_t i = 0; i < kMany; ++i) kernels.push_back(KernelAt(kMany - i, i % 3, 7));
  kernels.SortBy<&Kernel::start_ns>();
  KernelList moved = std::move(kernels);
  for (uint32_t i = 0; i < kMany; ++i) {
    moved.push_back(KernelAt(kMany + 1 + i, i % 3, 8));
    kernels.push_back(KernelAt(i, i % 5, 9));  // NOLINT: what a move leaves is an empty list
  }
  ASSERT_EQ(moved.size(), 2 * kMany);
  ASSERT_EQ(kernels.size(), kMany);
  for (uint32_t i = 0; i < 2 * kMany; ++i) {
    EXPECT_EQ(moved[i].start_ns, i + 1);
    EXPECT_EQ(moved[i].grid_x, i < kMany ? 7 : 8);
  }
  for (uint32_t i = 0; i < kMany; ++i) EXPECT_EQ(kernels[i].stream_id, i % 5);
  kernels = std::move(moved);
  EXPECT_EQ(kernels.size(), 2 * kMany);
  EXPECT_TRUE(moved.empty());  // NOLINT
}

}  // namespace
}  // namespace xpu
