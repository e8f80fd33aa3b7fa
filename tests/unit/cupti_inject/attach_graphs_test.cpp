// Attaches to programs that replay CUDA graphs which are older than the attach. The simulated CUPTI
// aborts where the real one crashes.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "attached_program.h"

namespace xpu::inject {
namespace {

constexpr uint32_t kNodes = 5;
constexpr uint64_t kNodeNs = 40'000;
constexpr uint32_t kByIntervals =
    wire::kSettingInlineStacks | wire::kSettingMayEnd | wire::kSettingPauses;
constexpr uint32_t kByNodes = kByIntervals | wire::kSettingGraphNodes;

// A thread that replays a graph and launches a kernel, again and again.
class Replayer {
 public:
  Replayer() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    for (uint32_t i = 0; i < kNodes; ++i) Launch(kNodeNs, stream_);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&exec_, graph, 0), cudaSuccess);
    thread_ = std::thread([this] { Run(); });
  }
  ~Replayer() {
    stop_ = true;
    thread_.join();
  }

  void WaitForReplays(uint64_t count) const {
    const uint64_t end = replays_ + count;
    while (replays_ < end) usleep(100);
  }

 private:
  void Run() {
    while (!stop_) {
      EXPECT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess);
      Launch(0, stream_);
      EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
      ++replays_;
    }
  }

  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> replays_{0};
  std::thread thread_;
};

SessionRecords Record(AttachFunction attach, uint32_t settings,
                      const std::vector<std::unique_ptr<Replayer>>& replayers) {
  AttachingRecorder recorder(settings);
  EXPECT_TRUE(recorder.Begin(attach)) << recorder.error();
  for (const auto& replayer : replayers) replayer->WaitForReplays(150);
  SessionRecords records = recorder.End();
  EXPECT_EQ(records.lost, 0U);
  return records;
}

std::vector<std::unique_ptr<Replayer>> MakeReplayers(size_t count) {
  std::vector<std::unique_ptr<Replayer>> replayers;
  while (replayers.size() < count) replayers.push_back(std::make_unique<Replayer>());
  return replayers;
}

// Its calls are counted from 1 again where the session before it finalized CUPTI.
bool BeginsAnew(const SessionRecords& session, const SessionRecords& before) {
  return session.launches.front().correlation_id < before.launches.back().correlation_id;
}

// What was launched, but for the first and the last few, which may lie across the ends of the
// session.
std::set<uint32_t> Inner(const SessionRecords& records) {
  std::set<uint32_t> ids;
  for (size_t i = 10; i + 10 < records.launches.size(); ++i) {
    ids.insert(records.launches[i].correlation_id);
  }
  for (const uint32_t wait : records.waits) ids.erase(wait);
  return ids;
}

// Every second launch is a replay.
void ExpectNodes(const SessionRecords& records) {
  EXPECT_TRUE(records.replays.empty());
  std::map<uint32_t, uint32_t> kernels;
  for (const SessionRecords::Kernel& kernel : records.kernels) ++kernels[kernel.correlation_id];
  size_t replays = 0;
  for (const uint32_t id : Inner(records)) {
    EXPECT_TRUE(kernels[id] == 1 || kernels[id] == kNodes) << kernels[id];
    if (kernels[id] == kNodes) ++replays;
  }
  EXPECT_GE(replays, 100U);
}

void ExpectIntervals(const SessionRecords& records) {
  std::set<uint32_t> kernels;
  for (const SessionRecords::Kernel& kernel : records.kernels) {
    EXPECT_EQ(kernel.graph_node_id, 0U);
    kernels.insert(kernel.correlation_id);
  }
  std::map<uint32_t, SessionRecords::Kernel> replays;
  for (const SessionRecords::Kernel& replay : records.replays) {
    EXPECT_TRUE(replays.insert({replay.correlation_id, replay}).second);
    EXPECT_GE(replay.end_ns - replay.start_ns, kNodes * kNodeNs - 1000);
  }
  uint64_t end_ns = 0;
  for (const auto& [id, replay] : replays) {
    // One after the other; a time is up to 50 us off, at worst, where this machine is busy.
    EXPECT_GE(replay.start_ns + 50'000, end_ns);
    end_ns = replay.end_ns;
  }
  EXPECT_GE(replays.size(), 100U);
  const std::string note = "replays of graphs are timed by events around them, to within ";
  EXPECT_TRUE(std::any_of(records.notes.begin(), records.notes.end(),
                          [&](const std::string& one) { return one.starts_with(note); }));
}

// Each launch has its kernel or its interval.
void ExpectComplete(const SessionRecords& records) {
  std::set<uint32_t> work;
  for (const auto* of_kind : {&records.kernels, &records.replays}) {
    for (const SessionRecords::Kernel& one : *of_kind) work.insert(one.correlation_id);
  }
  for (const uint32_t id : Inner(records)) EXPECT_TRUE(work.contains(id)) << id;
}

TEST(AttachGraphs, NodesAreCompleteAndCuptiIsLeft) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    const auto replayers = MakeReplayers(1);
    SessionRecords before;
    int left = 0;
    for (int session = 0; session < 4; ++session) {
      SessionRecords records = Record(attach, kByNodes, replayers);
      ExpectNodes(records);
      ExpectComplete(records);
      if (session > 0 && BeginsAnew(records, before)) ++left;
      before = std::move(records);
    }
    EXPECT_EQ(left, 3);
  });
}

TEST(AttachGraphs, IntervalsAreCompleteAndCuptiIsLeft) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    const auto replayers = MakeReplayers(1);
    const size_t threads = CountEntries("/proc/self/task");
    SessionRecords before;
    std::unique_ptr<Footprint> second;
    for (int session = 1; session <= 4; ++session) {
      SessionRecords records = Record(attach, kByIntervals, replayers);
      ExpectIntervals(records);
      ExpectComplete(records);
      EXPECT_TRUE(session == 1 || BeginsAnew(records, before)) << session;
      before = std::move(records);
      if (session == 2) second = std::make_unique<Footprint>(WaitForThreads(threads));
    }
    EXPECT_EQ(WaitForThreads(threads), *second);
  });
}

// One after the other, in the same program.
TEST(AttachGraphs, NodesAfterIntervalsAfterNodes) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    const auto replayers = MakeReplayers(1);
    for (int round = 0; round < 2; ++round) {
      ExpectNodes(Record(attach, kByNodes, replayers));
      ExpectIntervals(Record(attach, kByIntervals, replayers));
    }
  });
}

// Another thread may be in a replay when CUPTI is finalized, so it stays.
TEST(AttachGraphs, CuptiStaysWhereSeveralThreadsReplay) {
  for (const uint32_t settings : {kByNodes, kByIntervals}) {
    InChild([&] {
      const AttachFunction attach = LoadLibrary();
      const auto replayers = MakeReplayers(2);
      const SessionRecords first = Record(attach, settings, replayers);
      const SessionRecords second = Record(attach, settings, replayers);
      EXPECT_FALSE(BeginsAnew(second, first));
    });
  }
}

// Nobody is left who could do it.
TEST(AttachGraphs, CuptiStaysOnceTheThreadHasEnded) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    auto replayers = MakeReplayers(1);
    Record(attach, kByNodes, replayers);
    replayers.clear();
    Launchers launchers(2);
    std::vector<SessionRecords> sessions;
    while (sessions.size() < 2) {
      AttachingRecorder recorder(kByNodes);
      ASSERT_TRUE(recorder.Begin(attach)) << recorder.error();
      launchers.WaitForCalls(200);
      sessions.push_back(recorder.End());
    }
    EXPECT_FALSE(BeginsAnew(sessions[1], sessions[0]));
  });
}

// What other threads launch between replays is recorded; during one there may be no record of it,
// and the launch is there all the same.
TEST(AttachGraphs, OtherThreadsLaunchMeanwhile) {
  for (const uint32_t settings : {kByNodes, kByIntervals}) {
    InChild([&] {
      const AttachFunction attach = LoadLibrary();
      const auto replayers = MakeReplayers(1);
      Launchers launchers(2);
      for (int session = 0; session < 3; ++session) {
        const SessionRecords records = Record(attach, settings, replayers);
        std::set<uint32_t> kernels;
        for (const auto& kernel : records.kernels) kernels.insert(kernel.correlation_id);
        const std::set<uint32_t> inner = Inner(records);
        const auto with_work = static_cast<size_t>(std::count_if(
            inner.begin(), inner.end(), [&](uint32_t id) { return kernels.contains(id); }));
        EXPECT_GT(with_work, inner.size() / 10);
        if (settings == kByNodes) {
          EXPECT_EQ(with_work, inner.size());
        }
      }
    });
  }
}

}  // namespace
}  // namespace xpu::inject
