// The library in a process of its own, between a fake recorder and a stub of libcupti.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include "cupti_inject/cupti_abi.h"
#include "fake_recorder.h"
#include "stub_cupti.h"

namespace xpu::inject {
namespace {

struct Environment {
  std::string connection_string;
  std::string stub_mode;
  std::string cupti_lib;
  bool with_cupti = true;
};

struct Program {
  pid_t pid = 0;
  UniqueFd input;
  UniqueFd output;

  // The wait status.
  int Wait() const {
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
  }
};

Program RunProgram(const std::string& mode, uint32_t calls, const Environment& environment) {
  int input[2];
  int output[2];
  EXPECT_EQ(pipe2(input, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(output, O_CLOEXEC), 0);
  std::vector<std::string> variables = {"CUDA_INJECTION64_PATH=" XPU_INJECT_LIBRARY,
                                        "XPU_STUB_CUPTI=" + environment.stub_mode};
  if (!environment.connection_string.empty()) {
    variables.push_back("XPU_INJECT=" + environment.connection_string);
  }
  if (!environment.cupti_lib.empty()) {
    variables.push_back("XPU_CUPTI_LIB=" + environment.cupti_lib);
  }
  if (environment.with_cupti) variables.push_back("LD_LIBRARY_PATH=" XPU_STUB_FOLDER);
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);
  std::string arguments[] = {XPU_INJECT_PROGRAM, mode, std::to_string(calls)};
  char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(input[0], STDIN_FILENO);
    dup2(output[1], STDOUT_FILENO);
    execve(argv[0], argv, envp.data());
    _exit(127);
  }
  close(input[0]);
  close(output[1]);
  return {pid, UniqueFd(input[1]), UniqueFd(output[0])};
}

std::string Read(int fd) {
  std::string text;
  char buffer[256];
  for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) text.append(buffer, n);
  return text;
}

struct Call {
  uint32_t domain;
  uint32_t callback_id;
  uint32_t correlation_id;
  uint32_t tid;
  uint64_t start_ns;
  uint64_t end_ns;
  int32_t return_value;
  uint32_t graph_nodes;
};

struct Node {
  uint64_t id;
  uint64_t original_id;
  uint32_t graph_id;
  uint32_t type;
  uint32_t change;
  uint32_t correlation_id;
  friend bool operator==(const Node&, const Node&) = default;
};

// What the ring held, by kind.
struct Summary {
  std::vector<Call> calls;
  std::vector<cupti::Kernel> kernels;
  std::vector<uint32_t> kernel_name_ids;
  std::vector<std::string> names;
  std::vector<std::string> callback_names;
  std::map<wire::DetailKind, std::vector<std::string>> details;
  std::vector<Node> nodes;
  size_t clock_pairs = 0;
};

Summary Summarize(const std::vector<Received>& messages) {
  Summary summary;
  for (const Received& message : messages) {
    switch (message.kind) {
      case wire::MessageKind::kActivity: {
        const auto& activity = message.As<wire::ActivityMessage>();
        summary.kernels.push_back(cupti::Load<cupti::Kernel>(
            message.bytes.data() + sizeof(activity), activity.record_size_bytes));
        summary.kernel_name_ids.push_back(activity.name_id);
        break;
      }
      case wire::MessageKind::kName:
        summary.names.push_back(
            message.Text<wire::NameMessage>(message.As<wire::NameMessage>().text_bytes));
        break;
      case wire::MessageKind::kApiCall: {
        const auto& call = message.As<wire::ApiCallMessage>();
        summary.calls.push_back({call.domain, call.callback_id, call.correlation_id, call.tid,
                                 call.start_ns, call.end_ns, call.return_value, call.graph_nodes});
        break;
      }
      case wire::MessageKind::kGraphNode: {
        const auto& node = message.As<wire::GraphNodeMessage>();
        EXPECT_NE(node.tid, 0u);
        EXPECT_NE(node.time_ns, 0u);
        summary.nodes.push_back({node.node_id, node.original_node_id, node.graph_id, node.node_type,
                                 node.change, node.correlation_id});
        break;
      }
      case wire::MessageKind::kClockPair:
        ++summary.clock_pairs;
        break;
      case wire::MessageKind::kCodeFile:
      case wire::MessageKind::kCodeFileGone:
      case wire::MessageKind::kCodeFilesComplete:
      case wire::MessageKind::kStack:
      case wire::MessageKind::kLaunch:
      case wire::MessageKind::kStackCopy:
      case wire::MessageKind::kOtherCode:
      case wire::MessageKind::kPythonCode:
      case wire::MessageKind::kPythonStack:
        ADD_FAILURE() << "stacks were not asked for";
        break;
      case wire::MessageKind::kNvtx:
      case wire::MessageKind::kNvtxSchemaEntry:
        ADD_FAILURE() << "NVTX was not asked for";
        break;
      case wire::MessageKind::kSwitch:
        ADD_FAILURE() << "no range was asked for";
        break;
      case wire::MessageKind::kGpuSampling:
      case wire::MessageKind::kGpuSamples:
      case wire::MessageKind::kGpuFunction:
      case wire::MessageKind::kStallReason:
      case wire::MessageKind::kCubin:
      case wire::MessageKind::kGpuClaim:
        ADD_FAILURE() << "samples of GPU code were not asked for";
        break;
      case wire::MessageKind::kBlock:
        ADD_FAILURE() << "blocks of allocators were not asked for";
        break;
      case wire::MessageKind::kCallbackName:
        summary.callback_names.push_back(message.Text<wire::CallbackNameMessage>(
            message.As<wire::CallbackNameMessage>().text_bytes));
        break;
      case wire::MessageKind::kDetail: {
        const auto& detail = message.As<wire::DetailMessage>();
        summary.details[detail.detail].push_back(
            message.Text<wire::DetailMessage>(detail.text_bytes));
        break;
      }
    }
  }
  return summary;
}

class InjectionTest : public ::testing::Test {
 protected:
  Environment Invited() const {
    Environment environment;
    environment.connection_string = recorder_.Environment();
    return environment;
  }

  // Runs to the end, draining at the end only: the ring is large enough.
  Summary RunToEnd(const std::string& mode, uint32_t calls, const Environment& environment) {
    const Program program = RunProgram(mode, calls, environment);
    EXPECT_EQ(program.Wait(), 0);
    EXPECT_EQ(Read(program.output.get()), "");
    return Summarize(ring_.Drain());
  }

  wire::State state() { return ring_.header().state.load(); }

  TestRing ring_{16 << 20};
  FakeRecorder recorder_{&ring_};
};

TEST_F(InjectionTest, EveryCallAndKernelArrivesOnce) {
  constexpr uint32_t kCalls = 3000;  // more than two buffers
  const Summary summary = RunToEnd("run", kCalls, Invited());
  EXPECT_EQ(state(), wire::State::kFinished);
  ASSERT_EQ(summary.calls.size(), kCalls);
  for (uint32_t i = 0; i < kCalls; ++i) {
    const Call& call = summary.calls[i];
    EXPECT_EQ(call.correlation_id, i + 1);
    EXPECT_EQ(call.domain, cupti::kDomainRuntime);
    EXPECT_EQ(call.callback_id, kStubLaunchKernel);
    EXPECT_EQ(call.return_value, 7);
    EXPECT_NE(call.tid, 0u);
    EXPECT_GT(call.start_ns, 0u);
    EXPECT_LE(call.start_ns, call.end_ns);
  }
  ASSERT_EQ(summary.kernels.size(), kCalls);
  for (uint32_t i = 0; i < kCalls; ++i) {
    EXPECT_EQ(summary.kernels[i].correlation_id, i + 1);
    EXPECT_EQ(summary.kernels[i].end_ns, i + 11);
    EXPECT_EQ(summary.kernels[i].name, 0u);
    EXPECT_EQ(summary.kernel_name_ids[i], 1u);
  }
  EXPECT_EQ(summary.names, std::vector<std::string>{"_Z6kernelv"});
  EXPECT_GE(summary.clock_pairs, 1u);  // the one at the end, however short the life
  EXPECT_EQ(ring_.counter(wire::kCounterMarkers), kCalls);
  EXPECT_EQ(ring_.counter(wire::kCounterCalls), kCalls);
  EXPECT_EQ(ring_.counter(wire::kCounterActivities), kCalls);
  EXPECT_EQ(ring_.counter(wire::kCounterCuptiErrors), 0u);
  EXPECT_GE(ring_.counter(wire::kCounterBuffersRequested), 3u);
  EXPECT_EQ(ring_.counter(wire::kCounterBuffersRequested),
            ring_.counter(wire::kCounterBuffersCompleted));
}

TEST_F(InjectionTest, NodesOfGraphsNameTheCallThatMadeThem) {
  const Summary summary = RunToEnd("graph", 0, Invited());
  const auto node = [](uint64_t graph, uint64_t index) { return graph << 32 | index; };
  enum : uint32_t { kCopy = 1, kChild = 4 };
  enum : uint32_t { kCreated, kCloned, kUpdated, kGraphUpdated };
  const std::vector<Node> nodes = {
      {node(9, 0), 0, 9, kCopy, kCreated, 1},
      {node(1, 0), 0, 1, kChild, kCreated, 1},
      {node(2, 0), 0, 2, kChild, kCreated, 2},
      {node(2, 0), node(1, 0), 2, kChild, kCloned, 2},
      {node(3, 0), 0, 3, kCopy, kCreated, 2},
      {node(3, 0), node(9, 0), 3, kCopy, kCloned, 2},
      {node(3, 1), node(9, 1), 3, kCopy, kCloned, 2},
      {node(2, 1), node(3, 0), 2, 0, kCloned, 2},  // moved; the destroyed one is not asked for
      {node(2, 0), node(1, 0), 2, 0, kUpdated, 0},
      {0, node(5, 0), 2, 0, kGraphUpdated, 3},
  };
  EXPECT_EQ(summary.nodes, nodes);
  ASSERT_EQ(summary.calls.size(), 4u);
  EXPECT_EQ(summary.calls[0].graph_nodes, 2u);
  EXPECT_EQ(summary.calls[1].graph_nodes, 2u);
  EXPECT_EQ(summary.calls[2].graph_nodes, 0u);
}

TEST_F(InjectionTest, GraphRecordsAreAskedForUnlessNodesAreWanted) {
  Environment environment = Invited();
  environment.stub_mode = "no_graphs";
  EXPECT_EQ(RunToEnd("run", 1, environment).details.at(wire::DetailKind::kNote),
            std::vector<std::string>{"graph records: CUPTI_ERROR_STUB"});
  ring_.header().settings = wire::kSettingGraphNodes;
  EXPECT_FALSE(RunToEnd("run", 1, environment).details.contains(wire::DetailKind::kNote));
}

TEST_F(InjectionTest, SaysWhatItUsesAndWatches) {
  const Summary summary = RunToEnd("run", 0, Invited());
  const std::vector<std::string> callbacks = {
      "cuLaunchKernel", "cuGraphExecUpdate_v2", "cudaStreamSynchronize_v3020",
      "cudaLaunchKernel_v7000", "cudaGraphInstantiate_v10000"};
  EXPECT_EQ(summary.callback_names, callbacks);
  EXPECT_EQ(summary.details.at(wire::DetailKind::kCuptiPath),
            std::vector<std::string>{XPU_STUB_FOLDER "/libcupti.so.13"});
  EXPECT_FALSE(summary.details.contains(wire::DetailKind::kNote));
  EXPECT_FALSE(summary.details.contains(wire::DetailKind::kDormantReason));
}

TEST_F(InjectionTest, ThreadsAreKeptApart) {
  const Summary summary = RunToEnd("threads", 500, Invited());
  ASSERT_EQ(summary.calls.size(), 2000u);
  std::map<uint32_t, uint32_t> calls_by_thread;
  std::map<uint32_t, uint32_t> thread_of_range;
  for (const auto& call : summary.calls) {
    ++calls_by_thread[call.tid];
    const auto [range, added] =
        thread_of_range.try_emplace(call.correlation_id / 100'000, call.tid);
    EXPECT_EQ(range->second, call.tid);
  }
  EXPECT_EQ(calls_by_thread.size(), 4u);
  for (const auto& [tid, count] : calls_by_thread) EXPECT_EQ(count, 500u) << tid;
  EXPECT_EQ(summary.kernels.size(), 2000u);
}

TEST_F(InjectionTest, ForkedChildWritesNothing) {
  const Summary summary = RunToEnd("fork", 50, Invited());
  ASSERT_EQ(summary.calls.size(), 50u);
  for (const auto& call : summary.calls) EXPECT_LE(call.correlation_id, 50u);
  EXPECT_EQ(summary.kernels.size(), 50u);
  EXPECT_EQ(ring_.counter(wire::kCounterMarkers), 50u);
  EXPECT_EQ(state(), wire::State::kFinished);
  EXPECT_EQ(recorder_.connections(), 1);
}

TEST_F(InjectionTest, SecondInitializationAndDlcloseChangeNothing) {
  const Summary summary = RunToEnd("twice", 10, Invited());
  EXPECT_EQ(recorder_.connections(), 1);
  EXPECT_EQ(summary.calls.size(), 10u);
  EXPECT_EQ(summary.kernels.size(), 10u);
  EXPECT_EQ(state(), wire::State::kFinished);
}

TEST_F(InjectionTest, UnderscoreExitLosesOnlyWhatWasNotFlushed) {
  const Summary summary = RunToEnd("_exit", 100, Invited());
  EXPECT_EQ(summary.calls.size(), 100u);  // written at once
  EXPECT_EQ(state(), wire::State::kActive);
  EXPECT_EQ(
      ring_.counter(wire::kCounterBuffersRequested) - ring_.counter(wire::kCounterBuffersCompleted),
      summary.kernels.empty() ? 1u : 0u);
}

TEST_F(InjectionTest, KilledProgramLeavesWhatTheFlusherFetched) {
  const Program program = RunProgram("wait", 100, Invited());
  std::vector<Received> messages;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (ring_.counter(wire::kCounterActivities) < 100 &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(program.pid, SIGKILL);
  EXPECT_EQ(program.Wait(), SIGKILL);
  const Summary summary = Summarize(ring_.Drain());
  EXPECT_EQ(summary.kernels.size(), 100u);
  EXPECT_GE(summary.clock_pairs, 1u);
  EXPECT_EQ(ring_.pending_bytes(), 0u);
}

TEST_F(InjectionTest, AClosedRingIsLeftAlone) {
  const Program program = RunProgram("wait", 0, Invited());
  char line[6];
  ASSERT_EQ(read(program.output.get(), line, sizeof(line)), 6);  // "ready\n"
  ring_.header().closed.store(1);
  ring_.Drain();
  EXPECT_EQ(write(program.input.get(), "\n", 1), 1);
  EXPECT_EQ(program.Wait(), 0);
  const Summary summary = Summarize(ring_.Drain());
  EXPECT_TRUE(summary.calls.empty());
  EXPECT_TRUE(summary.kernels.empty());
  EXPECT_EQ(state(), wire::State::kFinished);
}

TEST_F(InjectionTest, ARecorderThatDiedIsNotServedForever) {
  constexpr uint32_t kCalls = 200;
  ring_.header().patience_ns = 500'000'000;
  const Summary summary = RunToEnd("slow", kCalls, Invited());
  EXPECT_EQ(state(), wire::State::kAbandoned);
  EXPECT_GT(summary.calls.size(), 5u);
  EXPECT_LT(summary.calls.size(), kCalls);
  // It flushed before it gave up; one more call may be made between the two.
  EXPECT_GE(summary.kernels.size() + 1, summary.calls.size());
}

TEST_F(InjectionTest, ALivingRecorderIsServedToTheEnd) {
  constexpr uint32_t kCalls = 300;
  ring_.header().patience_ns = 4'000'000'000;
  const Program program = RunProgram("slow", kCalls, Invited());
  size_t calls = 0;
  pollfd end{program.output.get(), POLLIN, 0};
  do {
    calls += Summarize(ring_.Drain()).calls.size();
  } while (poll(&end, 1, 50) == 0);
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_EQ(calls + Summarize(ring_.Drain()).calls.size(), kCalls);
  EXPECT_EQ(state(), wire::State::kFinished);
}

TEST_F(InjectionTest, AnotherToolHoldsCupti) {
  Environment environment = Invited();
  environment.stub_mode = "busy";
  const Summary summary = RunToEnd("run", 10, environment);
  EXPECT_EQ(state(), wire::State::kDormant);
  EXPECT_EQ(summary.details.at(wire::DetailKind::kDormantReason),
            std::vector<std::string>{"another tool in this program holds CUPTI: other tool"});
  EXPECT_TRUE(summary.calls.empty());
}

TEST_F(InjectionTest, AKindThatFailsIsANoteAndTheRestWorks) {
  Environment environment = Invited();
  environment.stub_mode = "no_kernels";
  const Summary summary = RunToEnd("run", 10, environment);
  EXPECT_EQ(state(), wire::State::kFinished);
  EXPECT_EQ(summary.details.at(wire::DetailKind::kNote),
            std::vector<std::string>{"kernel records: CUPTI_ERROR_STUB"});
  EXPECT_EQ(summary.calls.size(), 10u);
  EXPECT_TRUE(summary.kernels.empty());
}

TEST_F(InjectionTest, WhatCuptiDroppedIsCounted) {
  Environment environment = Invited();
  environment.stub_mode = "dropping";
  RunToEnd("run", 10, environment);
  EXPECT_EQ(ring_.counter(wire::kCounterCuptiDropped), 3u);
}

TEST_F(InjectionTest, TheChosenCuptiIsUsed) {
  Environment environment = Invited();
  environment.with_cupti = false;
  environment.cupti_lib = XPU_STUB_FOLDER "/libcupti.so.13";
  const Summary summary = RunToEnd("run", 10, environment);
  EXPECT_EQ(summary.details.at(wire::DetailKind::kCuptiPath),
            std::vector<std::string>{environment.cupti_lib});
  EXPECT_EQ(summary.calls.size(), 10u);
}

TEST_F(InjectionTest, AChosenCuptiThatIsNotThereIsTheReason) {
  Environment environment = Invited();
  environment.cupti_lib = "/nowhere/libcupti.so";
  const Summary summary = RunToEnd("run", 10, environment);
  EXPECT_EQ(state(), wire::State::kDormant);
  const auto& reasons = summary.details.at(wire::DetailKind::kDormantReason);
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_NE(reasons[0].find("/nowhere/libcupti.so"), std::string::npos) << reasons[0];
}

TEST_F(InjectionTest, WithoutAConnectionStringNothingHappens) {
  EXPECT_EQ(RunProgram("run", 10, Environment{}).Wait(), 0);
  Environment malformed;
  malformed.connection_string = "xpu:not-a-secret:1";
  EXPECT_EQ(RunProgram("run", 10, malformed).Wait(), 0);
  EXPECT_EQ(recorder_.connections(), 0);
}

TEST(InjectionTimeout, ASilentRecorderDoesNotStopTheProgram) {
  TestRing ring(64 << 10);
  const FakeRecorder recorder(&ring, Answer::kNothing);
  Environment environment;
  environment.connection_string = recorder.Environment();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(RunProgram("run", 10, environment).Wait(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(recorder.connections(), 1);
}

}  // namespace
}  // namespace xpu::inject
