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

cudaStream_t NewStream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

// Of kNodes kernels, one after the other.
cudaGraphExec_t NewGraph(cudaStream_t stream) {
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  for (uint32_t i = 0; i < kNodes; ++i) Launch(kNodeNs, stream);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  return exec;
}

using GraphLaunch = cudaError_t (*)(cudaGraphExec_t exec, cudaStream_t stream);

// A thread that replays a graph and launches a kernel, again and again.
class Replayer {
 public:
  explicit Replayer(cudaStream_t stream = NewStream(), GraphLaunch launch = cudaGraphLaunch)
      : exec_(NewGraph(NewStream())), stream_(stream), launch_(launch) {
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
      EXPECT_EQ(launch_(exec_, stream_), cudaSuccess);
      Launch(0, stream_);
      EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
      ++replays_;
    }
  }

  const cudaGraphExec_t exec_;
  const cudaStream_t stream_;
  const GraphLaunch launch_;
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
    for (int session = 1; session <= 4; ++session) {
      SessionRecords records = Record(attach, kByNodes, replayers);
      ExpectNodes(records);
      ExpectComplete(records);
      EXPECT_TRUE(session == 1 || BeginsAnew(records, before)) << session;
      before = std::move(records);
    }
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

// The streams that are numbers: the old default one, and that of the thread, in both ways.
TEST(AttachGraphs, DefaultStreamsAreTimedToo) {
  InChild([] {
    const AttachFunction attach = LoadLibrary();
    const auto per_thread =
        reinterpret_cast<GraphLaunch>(dlsym(RTLD_DEFAULT, "cudaGraphLaunch_ptsz"));
    ASSERT_NE(per_thread, nullptr);
    const auto record = [&](cudaStream_t stream, GraphLaunch launch) {
      std::vector<std::unique_ptr<Replayer>> replayers;
      replayers.push_back(std::make_unique<Replayer>(stream, launch));
      const SessionRecords records = Record(attach, kByIntervals, replayers);
      ExpectIntervals(records);
      ExpectComplete(records);
    };
    record(nullptr, cudaGraphLaunch);
    record(cudaStreamPerThread, cudaGraphLaunch);
    record(nullptr, per_thread);
  });
}

// Its replays end with it; those of the context after it, and of another device, are timed.
TEST(AttachGraphs, AContextIsDestroyedWhileItReplays) {
  InChild([] {
    ASSERT_EQ(setenv("XPU_FAKE_DEVICES", "2", 1), 0);
    const AttachFunction attach = LoadLibrary();
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    const cudaStream_t other_stream = NewStream();
    const cudaGraphExec_t other = NewGraph(other_stream);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    const auto replay = [](cudaGraphExec_t exec, cudaStream_t stream) {
      ASSERT_EQ(cudaGraphLaunch(exec, stream), cudaSuccess);
      ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    };
    constexpr int kReplays = 20;
    for (int session = 0; session < 2; ++session) {
      const cudaStream_t old_stream = NewStream();
      const cudaGraphExec_t old = NewGraph(old_stream);
      AttachingRecorder recorder(kByIntervals);
      ASSERT_TRUE(recorder.Begin(attach)) << recorder.error();
      replay(old, old_stream);
      Launch(300'000'000, old_stream);
      ASSERT_EQ(cudaGraphLaunch(old, old_stream), cudaSuccess);
      ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
      const cudaStream_t stream = NewStream();
      const cudaGraphExec_t exec = NewGraph(stream);
      for (int i = 0; i < kReplays; ++i) {
        replay(exec, stream);
        ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
        replay(other, other_stream);
        ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
      }
      const SessionRecords records = recorder.End();
      EXPECT_EQ(records.state, wire::State::kFinished);
      EXPECT_GE(records.replays.size(), 2 * kReplays);
      EXPECT_LE(records.replays.size(), 2 * kReplays + 2);
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
