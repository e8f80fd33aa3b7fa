#include "record/options/cpu_events.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <linux/perf_event.h>

namespace xpu {
namespace {

std::vector<CpuEvent> Parsed(std::string_view list) {
  auto events = ParseCpuEvents(list);
  EXPECT_TRUE(events.ok()) << events.error().message;
  return events.ok() ? *events : std::vector<CpuEvent>();
}

std::string Refused(std::string_view list) {
  auto events = ParseCpuEvents(list);
  if (events.ok()) return "accepted";
  EXPECT_EQ(events.error().kind, ErrorKind::kUsage);
  return events.error().message;
}

TEST(CpuEvents, Names) {
  const std::vector<CpuEvent> events = Parsed("cpu-clock,cs,cycles,r01c2");
  ASSERT_EQ(events.size(), 4u);
  EXPECT_TRUE(events[0].is_clock);
  EXPECT_EQ(events[1].name, "cs");
  EXPECT_EQ(events[1].type, PERF_TYPE_SOFTWARE);
  EXPECT_EQ(events[1].config, PERF_COUNT_SW_CONTEXT_SWITCHES);
  EXPECT_FALSE(events[1].is_clock);
  EXPECT_EQ(events[2].type, PERF_TYPE_HARDWARE);
  EXPECT_EQ(events[2].config, PERF_COUNT_HW_CPU_CYCLES);
  EXPECT_FALSE(events[2].is_clock);
  EXPECT_EQ(events[3].type, PERF_TYPE_RAW);
  EXPECT_EQ(events[3].config, 0x1c2u);
}

TEST(CpuEvents, ModifiersAndPeriods) {
  const std::vector<CpuEvent> events =
      Parsed("page-faults:u,page-faults:k,page-faults:uk,instructions/period=1000/u");
  ASSERT_EQ(events.size(), 4u);
  EXPECT_TRUE(events[0].exclude_kernel && !events[0].exclude_user);
  EXPECT_TRUE(events[1].exclude_user && !events[1].exclude_kernel);
  EXPECT_FALSE(events[2].exclude_user || events[2].exclude_kernel);
  EXPECT_EQ(events[3].period, 1000u);
  EXPECT_EQ(events[3].name, "instructions:u");
  EXPECT_TRUE(events[3].exclude_kernel);
}

TEST(CpuEvents, InvalidValuesAreRefused) {
  EXPECT_EQ(Refused("foo"), "-e foo: unknown event 'foo'");
  EXPECT_EQ(Refused(""), "-e : unknown event ''");
  EXPECT_EQ(Refused("cycles,"), "-e : unknown event ''");
  EXPECT_EQ(Refused("rxyz"), "-e rxyz: unknown event 'rxyz'");
  EXPECT_EQ(Refused("cycles:p"), "-e cycles:p: unknown modifier 'p'");
  EXPECT_EQ(ParseCpuEvents("cycles:p").error().hint,
            "cycles:u counts only user code, cycles:k only the kernel");
  EXPECT_EQ(ParseCpuEvents("page-fault").error().hint, "did you mean page-faults?");
  for (const char* text : {"cycles/", "cycles/period=/", "cycles/period=0/", "cycles/freq=1/",
                           "cycles/period=18446744073709551615/"}) {
    EXPECT_EQ(Refused(text), std::string("-e ") + text +
                                 ": expected period=N between the slashes, with N at least 1");
  }
}

TEST(CpuEvents, RepeatedOption) {
  const auto twice = [](std::string_view list) {
    const Status status = CheckNoneTwice(Parsed(list));
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(twice("cycles,page-faults,cycles:u,cycles:k,cpu-clock"), "");
  EXPECT_EQ(twice("cycles,page-faults,cycles"), "-e cycles: given twice");
  EXPECT_EQ(twice("cs/period=3/,context-switches/period=5/"),
            "-e context-switches: given twice (also as cs)");
  EXPECT_EQ(CheckNoneTwice(Parsed("cs,cs")).error().hint,
            "give each event once: the samples could not be distinguished");
}

}  // namespace
}  // namespace xpu
