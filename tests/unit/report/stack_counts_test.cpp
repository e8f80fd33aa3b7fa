#include <type_traits>

#include <gtest/gtest.h>

#include "report/views/summary/summary_sections.h"

namespace xpu {
namespace {

LoadedEvents Recorded(CallGraph call_graph, LaunchStackSource source = LaunchStackSource::kMarker) {
  LoadedEvents events;
  RecordingInfo info;
  info.call_graph = call_graph;
  info.launch_stacks = source;
  events.recording_info.push_back(info);
  return events;
}

template <typename List>
void Add(List& list, size_t count, uint8_t flags) {
  std::decay_t<decltype(list[0])> event;
  event.stack_flags = flags;
  for (size_t i = 0; i < count; ++i) list.push_back(event);
}

constexpr uint8_t kWhole = kStackTables | kStackComplete;

TEST(StackCounts, SamplesAndCalls) {
  LoadedEvents events = Recorded(CallGraph::kTables);
  Add(events.cpu_samples, 1'974, kWhole);
  Add(events.cpu_samples, 26, kStackTables);
  Add(events.launch_stacks, 3, kWhole);
  EXPECT_EQ(StackCountsText(events, {}),
            "98.7 % of 2,000 CPU samples and 100 % of 3 CUDA calls reach their outermost frame "
            "(by unwind tables)");
}

TEST(StackCounts, AlmostAllIsNotAll) {
  LoadedEvents events = Recorded(CallGraph::kTables);
  Add(events.cpu_samples, 99'999, kWhole);
  Add(events.cpu_samples, 1, kStackTables | kStackTruncated);
  EXPECT_EQ(StackCountsText(events, {}),
            "99.9 % of 100,000 CPU samples reach their outermost frame (by unwind tables)");
}

TEST(StackCounts, NoneAtAll) {
  LoadedEvents events = Recorded(CallGraph::kTables);
  Add(events.cpu_samples, 1, kStackUserFailed);
  EXPECT_EQ(StackCountsText(events, {}),
            "0.0 % of 1 CPU sample reaches its outermost frame (by unwind tables)");
}

TEST(StackCounts, NothingIsSaidOfFramePointersAndOfNothing) {
  EXPECT_EQ(StackCountsText({}, {}), "");
  EXPECT_EQ(StackCountsText(Recorded(CallGraph::kTables), {}), "");
  for (const CallGraph call_graph : {CallGraph::kUnknown, CallGraph::kFramePointers}) {
    LoadedEvents events = Recorded(call_graph);
    Add(events.cpu_samples, 5, kStackFramePointers);
    Add(events.launch_stacks, 5, kStackFramePointers);
    EXPECT_EQ(StackCountsText(events, {}), "");
  }
}

TEST(StackCounts, LaunchesInTheProcessBesideFramePointers) {
  LoadedEvents events = Recorded(CallGraph::kFramePointers, LaunchStackSource::kInProcess);
  Add(events.cpu_samples, 5, kStackFramePointers);
  Add(events.launch_stacks, 1, kWhole | kStackInProcess);
  Add(events.launch_stacks, 1, kStackTables | kStackInProcess);
  EXPECT_EQ(StackCountsText(events, {}),
            "50.0 % of 2 CUDA calls reach their outermost frame (by unwind tables; CUDA calls: "
            "inside the process)");
}

TEST(StackCounts, ProbesCountAtTheEntryOnly) {
  LoadedEvents events = Recorded(CallGraph::kTables, LaunchStackSource::kProbes);
  Add(events.probe_hits, 2, kWhole);
  events.probe_hits.rows().back().is_return = true;
  Add(events.probe_hits, 1, kStackTables | kStackFramePointers);
  EXPECT_EQ(StackCountsText(events, {}),
            "50.0 % of 2 CUDA calls reach their outermost frame (by unwind tables)");
}

TEST(StackCounts, ProbesThatTheUserAskedForAreNoCalls) {
  LoadedEvents events = Recorded(CallGraph::kTables, LaunchStackSource::kNone);
  events.probes.rows().emplace_back().probe = 7;
  Add(events.probe_hits, 1, kWhole);
  events.probe_hits.rows().back().probe = 7;
  events.probe_hits.rows().back().is_return = true;
  EXPECT_EQ(StackCountsText(events, {}),
            "100 % of 1 probe hit reaches its outermost frame (by unwind tables)");
}

}  // namespace
}  // namespace xpu
