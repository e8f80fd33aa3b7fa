#include "report/trace/user_probes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

class UserProbesTest : public testing::Test {
 protected:
  Probe& Define(uint32_t number, ProbeKind kind, std::string_view function,
                std::string_view path = "/lib/libm.so.6") {
    Probe& probe = builder_.events.probes.emplace_back();
    probe.probe = number;
    probe.kind = kind;
    probe.function = builder_.Text(function);
    probe.path = builder_.Text(path);
    return probe;
  }
  ProbeHit& Hit(uint32_t number, uint64_t time_ns, uint32_t tid = 1) {
    ProbeHit& hit = builder_.events.probe_hits.emplace_back();
    hit.probe = number;
    hit.time_ns = time_ns;
    hit.pid = 1;
    hit.tid = tid;
    return hit;
  }

  test::ModelBuilder builder_;
};

TEST_F(UserProbesTest, Names) {
  Define(1, ProbeKind::kUprobe, "exp").offset = 0x10;
  Define(2, ProbeKind::kUretprobe, "exp");
  Define(3, ProbeKind::kTracepoint, "sched:sched_switch", "");
  Define(4, ProbeKind::kUprobe, "cudaLaunchKernel").purpose = ProbePurpose::kRuntimeLaunch;
  const Model model = builder_.Build();
  const UserProbes probes(model);
  const auto& all = model.events.probes;
  EXPECT_EQ(probes.TitleOf(all[0]), "uprobe libm.so.6:exp+0x10");
  EXPECT_EQ(probes.NameOf(all[0]), "exp+0x10");
  EXPECT_EQ(probes.NameOf(all[1]), "exp%return");
  EXPECT_EQ(probes.TitleOf(all[2]), "tracepoint sched:sched_switch");
  ProbeHit hit;
  hit.probe = 3;
  EXPECT_EQ(probes.Of(hit), &all[2]);
  hit.probe = 4;
  EXPECT_EQ(probes.Of(hit), nullptr);
  hit.probe = 5;
  EXPECT_EQ(probes.Of(hit), nullptr);
}

TEST_F(UserProbesTest, ReturnsArePairedWithTheLastEntryOfTheirThread) {
  Define(1, ProbeKind::kUprobe, "f");
  Define(2, ProbeKind::kUretprobe, "f");
  Hit(2, 5);  // entered before the recording
  Hit(1, 10);
  Hit(1, 20);
  Hit(1, 25, 2);
  Hit(2, 30);
  Hit(2, 100);
  Hit(2, 31, 2);
  Hit(1, 200);  // does not return
  Model model = builder_.Build();
  std::stable_sort(model.events.probe_hits.rows().begin(), model.events.probe_hits.rows().end(),
                   [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  const std::vector<ProbeTimes> rows = FindProbeTimes(model, {});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].hits, 4u);
  EXPECT_EQ(rows[1].hits, 4u);
  const ProbeTimes& returns = rows[0].calls > 0 ? rows[0] : rows[1];
  EXPECT_EQ(returns.name, "uretprobe libm.so.6:f");
  EXPECT_EQ(returns.calls, 3u);
  EXPECT_EQ(returns.total_ns, 10u + 90u + 6u);
  EXPECT_EQ(returns.smallest_ns, 6u);
  EXPECT_EQ(returns.largest_ns, 90u);
}

TEST_F(UserProbesTest, AProbeInsideOfAFunctionIsNoEntry) {
  Define(1, ProbeKind::kUprobe, "f").offset = 4;
  Define(2, ProbeKind::kUretprobe, "f");
  Define(3, ProbeKind::kUprobe, "f", "/lib/other.so");
  Hit(1, 10);
  Hit(3, 11);
  Hit(2, 20);
  for (const ProbeTimes& row : FindProbeTimes(builder_.Build(), {})) EXPECT_EQ(row.calls, 0u);
}

TEST_F(UserProbesTest, SumsSaturate) {
  Define(1, ProbeKind::kUprobe, "f");
  Define(2, ProbeKind::kUretprobe, "f");
  constexpr uint64_t kLargest = std::numeric_limits<uint64_t>::max();
  Hit(1, 0);
  Hit(1, 1);
  Hit(2, kLargest);
  Hit(2, kLargest);
  for (const ProbeTimes& row : FindProbeTimes(builder_.Build(), {})) {
    EXPECT_EQ(row.total_ns, row.calls == 0 ? 0 : kLargest);
  }
}

TEST_F(UserProbesTest, EveryView) {
  builder_.Process(ProcessEventKind::kExisting, 1, 1, 1, "app");
  builder_.events.recording_info.emplace_back().start_ns = 1;
  Define(1, ProbeKind::kUprobe, "f;g h");
  Define(2, ProbeKind::kUretprobe, "f");
  Hit(1, 10).stack = builder_.Stack({0x10});
  Hit(1, 20).stack = builder_.Stack({0x10});
  Hit(2, 30).return_value = -7;
  Analysis analysis(builder_.Build());
  ViewOptions folded;
  folded.tree.mode = TreeMode::kProbe;
  using test::Lines;
  EXPECT_EQ(test::Folded(analysis, folded),
            (Lines{{"app;[unknown];[probe] f:g h", 2}, {"app;[unknown];[probe] f%return", 1}}));
  EXPECT_EQ(test::Written([&](Output& output) { WriteScript(analysis, {}, output); }),
            "9 app 1 1 0 [unknown]\tevent=uprobe probe=libm.so.6:f:g_h\n"
            "19 app 1 1 0 [unknown]\tevent=uprobe probe=libm.so.6:f:g_h\n"
            "29 app 1 1 0 [unknown]\tevent=uretprobe probe=libm.so.6:f result=-7\n");
  const std::string trace = test::Written([&](Output& output) {
    std::string notes;
    WriteChromeTrace(analysis, {}, output, notes);
  });
  EXPECT_NE(trace.find(R"("name":"f;g h","cat":"probe","s":"t","ts":0.009,"args":{)"
                       R"("probe":"uprobe libm.so.6:f;g h","stack":"[unknown]"})"),
            std::string::npos)
      << trace;
  ViewOptions top;
  top.format = TableFormat::kCsv;
  top.table = "probe_sum";
  const std::string table = test::Written([&](Output& output) { WriteTop(analysis, top, output); });
  EXPECT_EQ(table,
            "Hits (%),Hits,Calls,Total Time (ns),Avg (ns),Min (ns),Max (ns),Probe\n"
            "66.7,2,,,,,,uprobe libm.so.6:f;g h\n"
            "33.3,1,,,,,,uretprobe libm.so.6:f\n");
}

}  // namespace
}  // namespace xpu
