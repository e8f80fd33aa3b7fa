#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "report/analysis/filter.h"
#include "report/views/summary/summary_hints.h"
#include "report/views/summary/summary_text.h"
#include "tests/unit/durations.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

constexpr uint64_t kUs = 1'000;
using test::kMs;

// A recording of one second by process 5.
class HintsTest : public testing::Test {
 protected:
  HintsTest() {
    builder_.events.recording_info.emplace_back().start_ns = 0;
    builder_.Process(ProcessEventKind::kExisting, 1, 5, 5, "app");
    builder_.Callback(1, ApiDomain::kRuntime, 131, "cudaStreamSynchronize_v3020");
    builder_.Callback(1, ApiDomain::kRuntime, test::kLaunchKernel, "cudaLaunchKernel_v7000");
    builder_.Clock(1, 0, {1});
    GpuProcess& process = builder_.events.gpu_processes.emplace_back();
    process.time_ns = 1;
    process.instance = {1};
    process.pid = 5;
    builder_.End(1'000 * kMs);
  }
  void Kernels(uint32_t count, uint64_t ns, uint64_t every_ns, uint32_t device = 0) {
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t start = kMs + i * every_ns;
      builder_.AddKernel(1, ++id_, start, start + ns, "k").device_id = device;
    }
  }
  void Copy(uint64_t start, uint64_t ns, uint8_t source, uint8_t destination) {
    Memcpy& copy = builder_.events.memcpys.emplace_back();
    copy.instance = {1};
    copy.start_ns = start;
    copy.end_ns = start + ns;
    copy.size_bytes = 5'000'000;
    copy.source_kind = source;
    copy.destination_kind = destination;
  }
  // The first line of the summary that begins so; empty: none does.
  static std::string LineOf(Analysis& analysis, std::string_view begin,
                            const ViewOptions& options = {}) {
    std::istringstream text(
        test::Written([&](Output& output) { WriteSummary(analysis, options, output); }));
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with(begin)) return line;
    }
    return {};
  }
  // A launch of the next id by the main thread.
  void Launch(uint64_t start_ns) {
    builder_.Call(1, ++id_, test::kLaunchKernel, start_ns, start_ns + kUs, 5);
  }
  std::string Hints(const FilterOptions& filter = {}) {
    Analysis analysis(builder_.Build());
    analysis.shown = SelectPart(filter, analysis).value();
    std::string text;
    for (const Hint& hint :
         FindHints(analysis, FindGpuBusy(analysis), FindSteps(analysis, {}), filter)) {
      text += hint.what + " " + hint.next;
      if (!hint.time.empty()) text += " [" + hint.time + "]";
      text += "\n";
    }
    return text;
  }

  test::ModelBuilder builder_;
  uint32_t id_ = 0;
};

TEST_F(HintsTest, NothingToSay) { EXPECT_EQ(Hints(), ""); }

TEST_F(HintsTest, TheGpuThatWasIdleTheLongest) {
  Kernels(10, 10 * kMs, 10 * kMs);
  Kernels(10, 10 * kMs, 100 * kMs, 1);
  builder_.events.recording_end.back().time_ns = 950 * kMs;
  EXPECT_EQ(Hints(),
            "GPU 1 was idle for 89 % of the 910 ms between its first and its last work. The "
            "longest gaps, and what ended them: --top --table gpu_gaps\n");
}

// A kernel each so often, launched `lead_ns` before it.
TEST_F(HintsTest, GapsUntilTheNextLaunch) {
  builder_.events.recording_end.back().time_ns = 940 * kMs;
  for (uint32_t i = 0; i < 9'000; ++i) {
    const uint64_t start = kMs + i * 100 * kUs;
    Launch(start - 10 * kUs);
    builder_.AddKernel(1, id_, start, start + 2 * kUs, "k");
  }
  EXPECT_EQ(Hints(),
            "GPU 0 was idle for 98 % of the 899.9 ms between its first and its last work: "
            "launch-bound. 100 % of that was in 8,999 gaps of 98 us on average until the next "
            "launch; the work between them averaged 2 us. Consider CUDA graphs, or fewer and "
            "larger kernels. Launch and queue times: --top --table cuda_kern_exec_sum\n");
}

TEST_F(HintsTest, KernelsThatKeepItBusy) {
  Kernels(400, 2 * kMs, 2'100 * kUs);
  EXPECT_EQ(Hints(),
            "GPU 0 was busy for 95 % of the 839.9 ms between its first and its last work: "
            "GPU-bound. The code that launches its kernels: --top --table callpath_sum\nAfter the "
            "last work of GPU 0, the program ran for another 159.1 ms (16 % of the elapsed time). "
            "Record without --gpu-only to see what the CPU did then. \n");
}

// Where nothing else has as large a part of the run, it is what a user wants to know.
TEST_F(HintsTest, TheEndOfTheProgramIsNamedFromATwentiethOn) {
  Kernels(450, 2 * kMs, 2'100 * kUs);  // until 945.9 ms
  EXPECT_NE(Hints().find("After the last work of GPU 0, the program ran for another 54.1 ms (5.4 % "
                         "of the elapsed time)"),
            std::string::npos);
}
TEST_F(HintsTest, EveryProgramHasSomeEnd) {
  Kernels(450, 2 * kMs, 2'100 * kUs);
  builder_.events.recording_end.back().time_ns = 990 * kMs;
  EXPECT_EQ(Hints().find("After the last work"), std::string::npos);
}

// The busiest kernels are nothing of a second.
TEST_F(HintsTest, AGpuThatWasUsedForAShortWhile) {
  Kernels(200, 2 * kUs, 2'100);
  EXPECT_EQ(Hints(),
            "After the last work of GPU 0, the program ran for another 998.6 ms (over 99 % of the "
            "elapsed time). Record without --gpu-only to see what the CPU did then. \n");
}

// A thread that only waits has no samples, and a flame graph of none is an error.
TEST_F(HintsTest, AThreadWithoutSamplesHasNoFlameGraph) {
  builder_.Source(10 * kMs);
  builder_.Sample(kMs / 2, 5, 5, StackId{});  // before
  Kernels(200, 2 * kUs, 2'100);
  EXPECT_EQ(Hints(),
            "After the last work of GPU 0, the program ran for another 998.6 ms (over 99 % of the "
            "elapsed time). \n");
}
TEST_F(HintsTest, WhereOnlyOtherThreadsRanTheFlameGraphIsOfAll) {
  builder_.Source(10 * kMs);
  builder_.Sample(500 * kMs, 5, 6, StackId{});
  builder_.Sample(500 * kMs, 9, 9, StackId{});  // another program's
  Kernels(200, 2 * kUs, 2'100);
  EXPECT_EQ(Hints(),
            "After the last work of GPU 0, the program ran for another 998.6 ms (over 99 % of the "
            "elapsed time). What the CPU did then: --flamegraph --mode cpu -o end.html "
            "[0.001419s-]\n");
  FilterOptions filter;
  filter.tids = {5};
  EXPECT_EQ(Hints(filter).find("--flamegraph"), std::string::npos);
}

// --time counts from the start of the recording.
TEST_F(HintsTest, AProcessThatStartedLater) {
  builder_.Process(ProcessEventKind::kFork, 400 * kMs, 7, 7, "app", 5, 5);
  GpuProcess& process = builder_.events.gpu_processes.emplace_back();
  process.time_ns = 450 * kMs;
  process.instance = {2};
  process.pid = 7;
  builder_.Clock(2, 0, {450 * kMs});
  builder_.Source(10 * kMs);
  builder_.Sample(500 * kMs, 7, 7, StackId{});
  for (uint32_t i = 0; i < 100; ++i) {
    const uint64_t start = 700 * kMs + i * 3 * kMs;
    builder_.Call(2, ++id_, test::kLaunchKernel, start - 10 * kUs, start, 7);
    builder_.AddKernel(2, id_, start, start + 2'900 * kUs, "k");
  }
  const std::string hints = Hints();
  EXPECT_NE(
      hints.find("The first work of GPU 0 started 300 ms after the start of process 7 (30 % "
                 "of the elapsed time). What the CPU did until then: --flamegraph --mode cpu -o "
                 "start.html --tid 7 [-0.700000s]\n"),
      std::string::npos)
      << hints;
}

// Most gaps of a kernel are ended by others.
TEST_F(HintsTest, APartOfALaunchBoundProgramIsLaunchBound) {
  builder_.events.recording_end.back().time_ns = 940 * kMs;
  for (uint32_t i = 0; i < 9'000; ++i) {
    const uint64_t start = kMs + i * 100 * kUs;
    Launch(start - 10 * kUs);
    builder_.AddKernel(1, id_, start, start + 2 * kUs, i % 3 == 0 ? "wanted" : "other");
  }
  FilterOptions filter;
  filter.kernel = "wanted";
  const std::string hints = Hints(filter);
  EXPECT_NE(hints.find("launch-bound. 100 % of that was in 8,997 gaps of 98 us"), std::string::npos)
      << hints;
}

class PhasesTest : public HintsTest {
 protected:
  // 200 ms of imports in Python, then a first kernel, planning until 600 ms, and 300 ms of a loop.
  PhasesTest() {
    builder_.Source(10 * kMs);
    Code(1, "main", "/app/train.py");
    Code(2, "_find_and_load", "<frozen importlib._bootstrap>");
    Code(3, "convert_frame", "/lib/torch/_dynamo/convert_frame.py");
    Code(4, "<module>", "/lib/torch/_dynamo/convert_frame.py");
    Sample(0, 200, {1, 2, 4});
    Work(200 * kMs);
    Sample(200, 600, {1, 3, 2});
    for (uint32_t i = 0; i < 3'000; ++i) Work(600 * kMs + i * 100 * kUs);
    Sample(600, 1'000, {1});
  }
  // Of this and of another recording, which ended before it did.
  size_t CountIdleHintsOfTwo(uint64_t second_start_ns) {
    Model model = builder_.Build();
    model.captures.resize(2);
    model.captures[0].info.start_ns = 0;
    model.captures[0].end = RecordingEnd{.time_ns = 300 * kMs};
    model.captures[1].info.start_ns = second_start_ns;
    model.captures[1].end = RecordingEnd{.time_ns = 1'000 * kMs};
    Analysis analysis(std::move(model));
    return FindIdleHints(analysis, FindGpuBusy(analysis), {}).size();
  }
  void Code(uint32_t code, std::string_view name, std::string_view path) {
    PythonCode& added = builder_.events.python_codes.emplace_back();
    added.code = code;
    added.name = builder_.Text(name);
    added.path = builder_.Text(path);
    added.first_line = 1;
    added.version = 3 << 8 | 12;
  }
  void Sample(uint64_t from_ms, uint64_t to_ms, std::initializer_list<uint32_t> codes) {
    std::vector<PythonFrame> frames;
    for (const uint32_t code : codes) frames.push_back({.code = code, .is_entry = true});
    for (uint64_t at = from_ms * kMs + 5 * kMs; at < to_ms * kMs; at += 10 * kMs) {
      builder_.Sample(at, 5, 5, StackId{}).python_stack =
          builder_.PythonStack(std::span<const PythonFrame>(frames));
    }
  }
  void Work(uint64_t start_ns) {
    Launch(start_ns - 10 * kUs);
    builder_.AddKernel(1, id_, start_ns, start_ns + 2 * kUs, "k");
  }
};

TEST_F(PhasesTest, WhatComesBeforeTheSteadyStateIsApartFromIt) {
  EXPECT_EQ(
      Hints(),
      "GPU 0 was idle for 98 % of its steady state, 293.9 ms of 299.9 ms (29 % of the "
      "elapsed time): launch-bound. 100 % of that was in 2,999 gaps of 98 us on average "
      "until the next launch; the work between them averaged 2 us. Consider CUDA graphs, or "
      "fewer and larger kernels. Launch and queue times: --top --table cuda_kern_exec_sum "
      "[0.600000s-0.899902s]\nThe steady state of GPU 0 began after 600 ms (60 % of the "
      "elapsed time): torch.compile (Dynamo, Inductor, Triton) (67 %), importing "
      "Python modules (33 %). What the CPU did until then: --flamegraph --mode cpu -o "
      "start.html --tid 5 [-0.600000s]\nAfter the last work of GPU 0, the program ran for "
      "another 100.1 ms (10 % of the elapsed time): code mostly in train.py:main (100 %). What "
      "the CPU did then: --flamegraph --mode cpu -o end.html --tid 5 [0.899902s-]\n");
}

TEST_F(PhasesTest, TheEndOfAPartIsNotTheEndOfTheProgram) {
  FilterOptions filter;
  filter.time = {600 * kMs, 950 * kMs};
  const std::string hints = Hints(filter);
  EXPECT_NE(
      hints.find(
          "After the last work of GPU 0 in the selected part, the program ran for another 50.1 ms"),
      std::string::npos)
      << hints;
  EXPECT_NE(hints.find("[0.899902s-0.950000s]"), std::string::npos) << hints;
}

// Samples are not of a kernel: a command that shows them with --kernel would show nothing.
TEST_F(PhasesTest, CommandsAboutTheCpuDoNotChooseGpuWork) {
  const auto command = [&](const char* end) {
    Analysis analysis(builder_.Build());
    FilterOptions filter;
    filter.kernel = "k";
    analysis.shown = SelectPart(filter, analysis).value();
    const std::string text =
        test::Written([&](Output& output) { WriteSummary(analysis, {.filter = filter}, output); });
    const size_t at = text.find(end);
    if (at == std::string::npos) return text;
    return text.substr(at, text.find('\n', at) - at);
  };
  const std::string line = command("--flamegraph --mode cpu -o start.html");
  EXPECT_NE(line.find("--time"), std::string::npos) << line;
  EXPECT_EQ(line.find("--kernel"), std::string::npos) << line;
}

// What was between two recordings nobody saw.
TEST_F(PhasesTest, RecordingsAtOnceHaveAdviceOnIdleTime) {
  EXPECT_GT(CountIdleHintsOfTwo(200 * kMs), 0u);
}
TEST_F(PhasesTest, RecordingsOneAfterTheOtherHaveNone) {
  EXPECT_EQ(CountIdleHintsOfTwo(400 * kMs), 0u);
}

TEST_F(PhasesTest, ASteadyStateThatIsNothingOfTheElapsedTimeIsNoAdvice) {
  builder_.events.recording_end.back().time_ns = 100'000 * kMs;
  EXPECT_EQ(Hints().find("launch-bound"), std::string::npos);
}

TEST_F(PhasesTest, APartHasAdviceOfItsOwn) {
  FilterOptions filter;
  filter.time = {.start_ns = 100 * kMs, .end_ns = 700 * kMs};
  filter.time_text = "100ms-700ms";
  const std::string hints = Hints(filter);
  EXPECT_NE(hints.find("The steady state of GPU 0 began after 500 ms (83 % of the elapsed time)"),
            std::string::npos)
      << hints;
  EXPECT_NE(hints.find("[0.100000s-0.600000s]"), std::string::npos) << hints;
}

// What a filter took out kept the GPU busy.
TEST_F(HintsTest, AGpuThatDidOtherWorkWasNotIdle) {
  for (uint32_t i = 0; i < 100; ++i) {
    builder_.AddKernel(1, ++id_, i * 10 * kMs, i * 10 * kMs + 5 * kMs, "wanted");
    builder_.AddKernel(1, ++id_, i * 10 * kMs + 5 * kMs, i * 10 * kMs + 10 * kMs, "other");
  }
  FilterOptions filter;
  filter.kernel = "wanted";
  EXPECT_EQ(Hints(filter).find("idle"), std::string::npos);
}

TEST_F(HintsTest, TheMainThreadWaits) {
  builder_.Call(1, 1, 131, 100 * kMs, 300 * kMs, 5);
  builder_.Call(1, 2, 131, 500 * kMs, 600 * kMs, 5);
  builder_.Call(1, 3, 131, 100 * kMs, 900 * kMs, 6);  // another thread
  EXPECT_EQ(Hints(),
            "The main thread of app spends 30 % of its time in "
            "synchronization calls. What it waits for: --top --table cuda_wait_sum\n");
}

TEST_F(HintsTest, CopiesOfPageableMemory) {
  Copy(50 * kMs, 90 * kMs, 1, 3);    // pageable to device
  Copy(140 * kMs, 810 * kMs, 2, 3);  // pinned
  EXPECT_NE(Hints().find("Copies from pageable memory are 10 % of all GPU work (90 ms, 5.0 MB). "
                         "With pinned memory they are faster and do not block the CPU. Each copy: "
                         "--top --table cuda_gpu_trace\n"),
            std::string::npos);
}

TEST_F(HintsTest, CopiesThatTakeNoTimeOrStayInTheHostAreNoAdvice) {
  Copy(kMs, 10 * kUs, 1, 3);        // nothing of a second
  Copy(50 * kMs, 900 * kMs, 1, 1);  // from host to host
  Copy(950 * kMs, 20 * kMs, 1, 2);  // likewise
  EXPECT_EQ(Hints().find("pageable"), std::string::npos);
}

TEST_F(HintsTest, CodeIsCompiledAndLoaded) {
  JitOperation& jit = builder_.events.jit_operations.emplace_back();
  jit.start_ns = 1;
  jit.end_ns = 400 * kMs + 1;
  jit.operation = 3;
  JitOperation stored = jit;
  stored.operation = 2;
  builder_.events.jit_operations.push_back(stored);
  Overhead& loading = builder_.events.overheads.emplace_back();
  loading.start_ns = 1;
  loading.end_ns = 60 * kMs + 1;
  loading.overhead_kind = 5 << 16;
  Overhead& other = builder_.events.overheads.emplace_back();
  other.start_ns = 1;
  other.end_ns = 40 * kMs;  // too little
  EXPECT_EQ(Hints(),
            "The driver compiled GPU code for 400 ms while the program ran. To avoid this, build "
            "the program for this GPU's architecture (nvcc -arch) or keep the driver's cache "
            "(CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE). What was compiled: --top --table "
            "jit_sum\nLoading GPU code at its first use took 60 ms; CUDA_MODULE_LOADING=EAGER "
            "loads it when the program starts. By kind: --top --table cuda_overhead_sum\n");
}

TEST_F(HintsTest, AtMostFour) {
  Kernels(80, 2 * kMs, 10 * kMs);
  Copy(810 * kMs, 80 * kMs, 1, 3);
  builder_.Call(1, 1'000, 131, 100 * kMs, 900 * kMs, 5);
  for (const uint32_t kind : {5 << 16, 1 << 16}) {
    Overhead& overhead = builder_.events.overheads.emplace_back();
    overhead.start_ns = 1;
    overhead.end_ns = 500 * kMs;
    overhead.overhead_kind = kind;
  }
  const std::string hints = Hints();
  EXPECT_EQ(std::count(hints.begin(), hints.end(), '\n'), 4) << hints;
}

TEST_F(HintsTest, TheSummaryPrintsThem) {
  Kernels(10, 10 * kMs, 100 * kMs);
  Analysis analysis(builder_.Build());
  const std::string text =
      test::Written([&](Output& output) { WriteSummary(analysis, {}, output); });
  EXPECT_NE(text.find("\nGPUs, between their first and last work\n  busy%      busy      idle  "
                      "overlap  GPU\n   11.0    100 ms    810 ms    1.00x  0 [unnamed]\n"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find("\nWhat to look at next\n"
                "- GPU 0 was idle for 89 % of the 910 ms between its first and its last work. The\n"
                "  longest gaps, and what ended them:\n"
                "    xpu-report --top --table gpu_gaps\n"),
      std::string::npos)
      << text;
}

TEST_F(HintsTest, AnIdleGpuIsReported) {
  const auto line = [](LaunchStackSource launch_stacks, bool initialized) {
    test::ModelBuilder builder;
    builder.events.recording_info.emplace_back().launch_stacks = launch_stacks;
    if (initialized) builder.events.gpu_processes.emplace_back().instance = {1};
    Analysis analysis(builder.Build());
    return LineOf(analysis, "GPU work");
  };
  EXPECT_EQ(line(LaunchStackSource::kNone, false), "");  // --cpu-only
  EXPECT_EQ(line(LaunchStackSource::kInProcess, false),
            "GPU work  none: no recorded process initialized CUDA");
  EXPECT_EQ(line(LaunchStackSource::kMarker, true),
            "GPU work  none: CUDA was initialized, but no work was started");
  builder_.events.recording_info.emplace_back().launch_stacks = LaunchStackSource::kInProcess;
  Kernels(1, 10 * kUs, 100 * kUs);
  Analysis analysis(builder_.Build());
  EXPECT_EQ(LineOf(analysis, "GPU work"), "");
}

// What was not recorded may have used the GPU.
TEST_F(HintsTest, ALossMayBeWhyThereIsNoGpuWork) {
  struct Entry {
    std::string_view name;
    uint64_t count;
  };
  using Losses = std::vector<Entry>;
  const auto line = [](const Losses& losses, bool initialized) {
    test::ModelBuilder builder;
    builder.events.recording_info.emplace_back().launch_stacks = LaunchStackSource::kInProcess;
    if (initialized) builder.events.gpu_processes.emplace_back().instance = {1};
    for (const auto& [name, count] : losses) builder.Lose(name, count);
    Analysis analysis(builder.Build());
    return LineOf(analysis, "GPU work");
  };
  const std::string_view unknown = "injection_unknown";
  constexpr std::string_view kMissing =
      "GPU work  none: CUDA processes may not have been recorded, see Losses";
  EXPECT_EQ(line({{"process_not_reached", 1}, {unknown, 1}}, false), kMissing);
  EXPECT_EQ(line({{"inject_dormant", 1}}, true), kMissing);
  EXPECT_EQ(line({{unknown, 2}}, false),
            "GPU work  none: whether a process used CUDA is not known, see Notes");
  EXPECT_EQ(line({{unknown, 2}}, true),
            "GPU work  none: CUDA was initialized, but no work was started");
  EXPECT_EQ(line({{"sample_ring_full", 3}}, false),
            "GPU work  none: no recorded process initialized CUDA");
}

TEST_F(HintsTest, ALineCountsTheReasonsOfLosses) {
  const auto line = [](std::initializer_list<std::string_view> losses) {
    test::ModelBuilder builder;
    builder.events.recording_info.emplace_back();
    builder.End(9);
    for (const std::string_view loss : losses) builder.Lose(loss, 7);
    Analysis analysis(builder.Build());
    return LineOf(analysis, "losses");
  };
  EXPECT_EQ(line({}), "losses    none");
  EXPECT_EQ(line({"sample_ring_full"}),
            "losses    events lost for 1 reason: see Losses at the end");
  EXPECT_EQ(line({"launch_ring_full", "process_outlived"}),
            "losses    events incomplete for 2 reasons: see Losses at the end");
  EXPECT_EQ(line({"sample_ring_full", "launch_ring_full"}),
            "losses    events lost for 1 reason, incomplete for 1: see Losses at the end");
}

TEST_F(HintsTest, AProgramThatOnlyCopiesHasNoLaunches) {
  Copy(kMs, kMs, 1, 3);
  Analysis analysis(builder_.Build());
  EXPECT_EQ(LineOf(analysis, "GPU memory operations"), "GPU memory operations: 1 ms");
  EXPECT_EQ(LineOf(analysis, "launches"), "");
  EXPECT_EQ(LineOf(analysis, "kernels"), "");
}

// The command is to show the same when it is pasted.
TEST_F(HintsTest, CommandsHaveTheCapturesAndFiltersThatWereGiven) {
  Kernels(10, 10 * kMs, 100 * kMs);
  Analysis analysis(builder_.Build());
  const auto command = [&](std::vector<std::string> captures, const FilterOptions& filter = {}) {
    return LineOf(analysis, "    xpu-report ", {.filter = filter, .captures = std::move(captures)});
  };
  const std::string bare = "    xpu-report --top --table gpu_gaps";
  EXPECT_EQ(command({"/tmp/a.xpu"}), bare + " /tmp/a.xpu");
  EXPECT_EQ(command({"capture.xpu"}), bare);
  EXPECT_EQ(command({"-"}), bare + " CAPTURE");
  EXPECT_EQ(command({"a.xpu", "-"}), bare + " a.xpu CAPTURE");
  EXPECT_EQ(command({"a.xpu", "$(x) y", "-v.xpu"}), bare + " a.xpu '$(x) y' ./-v.xpu");
  FilterOptions filter;
  filter.pids = {5, 6};
  filter.kernel = "a|b";
  filter.time = {.start_ns = 0, .end_ns = 990 * kMs};
  filter.time_text = "-990ms";
  EXPECT_EQ(command({"capture.xpu"}, filter), bare + " --pid 5,6 --kernel 'a|b' --time -990ms");
}

TEST_F(HintsTest, APartThatHoldsNothingSaysSo) {
  Kernels(10, 10 * kUs, 100 * kUs);
  Analysis analysis(builder_.Build());
  const auto part = [&](std::string kernel) {
    FilterOptions filter;
    filter.kernel = std::move(kernel);
    analysis.shown = SelectPart(filter, analysis).value();
    return LineOf(analysis, "filters ");
  };
  EXPECT_EQ(LineOf(analysis, "filters "), "");
  EXPECT_EQ(part("k"), "filters   --kernel k");
  EXPECT_EQ(part("other"), "filters   --kernel other (nothing matches)");
}

// Pasted into a shell it is one command.
TEST_F(HintsTest, ALongCommandContinuesAfterABackslash) {
  Kernels(10, 10 * kMs, 100 * kMs);
  Analysis analysis(builder_.Build());
  FilterOptions filter;
  filter.kernel = "a name|with spaces|in quotes|that is long enough";
  const std::string text = test::Written([&](Output& output) {
    WriteSummary(analysis, {.filter = filter, .captures = {"a-capture-with-a-long-name.xpu"}},
                 output);
  });
  EXPECT_NE(text.find("    xpu-report --top --table gpu_gaps \\\n"
                      "        --kernel 'a name|with spaces|in quotes|that is long enough' \\\n"
                      "        a-capture-with-a-long-name.xpu\n"),
            std::string::npos)
      << text;
}

TEST_F(HintsTest, AProgramThatOnlyWaitsHasNoSamplesForAReason) {
  builder_.End(2'000 * kMs);
  builder_.events.sample_sources.push_back({.source = 1,
                                            .name = builder_.Text("cpu-clock"),
                                            .frequency_hz = 99,
                                            .period = 0,
                                            .unit = builder_.Text("ns")});
  Analysis analysis(builder_.Build());
  const std::string text =
      test::Written([&](Output& output) { WriteSummary(analysis, {}, output); });
  EXPECT_NE(text.find("samples   0 (cpu-clock, 99 Hz)\n"
                      "          hint: no thread was running on a CPU when a sample was due: the\n"
                      "          program slept, waited or ended too soon\n"),
            std::string::npos)
      << text;
}

// Its samples would say nothing, however busy it was.
TEST_F(HintsTest, AShortProgramGetsAHigherFrequency) {
  const auto hint_for = [](uint64_t run_ns, uint64_t hz, int samples) {
    test::ModelBuilder builder;
    builder.events.recording_info.emplace_back().start_ns = 0;
    builder.End(run_ns);
    builder.events.sample_sources.push_back({.source = 1,
                                             .name = builder.Text("cpu-clock"),
                                             .frequency_hz = hz,
                                             .period = 0,
                                             .unit = builder.Text("ns")});
    for (int i = 0; i < samples; ++i) builder.Sample(1 + i, 5, 5, {}).source = 1;
    Analysis analysis(builder.Build());
    const std::string text =
        test::Written([&](Output& output) { WriteSummary(analysis, {}, output); });
    const size_t at = text.find("-F ");
    return at == std::string::npos ? "" : text.substr(at, text.find(' ', at + 3) - at);
  };
  EXPECT_EQ(hint_for(8 * kMs, 99, 0), "-F 10000");
  EXPECT_EQ(hint_for(99 * kMs, 99, 9), "-F 10000");
  EXPECT_EQ(hint_for(999 * kMs, 10, 1), "-F 2000");
  EXPECT_EQ(hint_for(99 * kMs, 99, 10), "");     // it has some
  EXPECT_EQ(hint_for(1'000 * kMs, 99, 0), "");   // it was idle
  EXPECT_EQ(hint_for(99 * kMs, 10'000, 0), "");  // likewise
}

TEST(SummaryText, LimitsTheRowsUnderEachHeading) {
  const std::string text = test::Written([](Output& output) {
    SummaryText summary(output);
    for (const int rows : {64, 67}) {
      summary.Heading("Rows");
      summary.Names("number");
      for (int i = 0; i < rows; ++i) summary.Row("  ", std::to_string(i));
    }
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2 * (3 + 64) + 1);
  EXPECT_TRUE(text.ends_with("\n  63\n  ... 3 more\n"));
}

TEST(SummaryText, EscapesEachPart) {
  const std::string text = test::Written([](Output& output) {
    SummaryText summary(output);
    summary.Heading("a\x1b", "b\x1b");
    summary.Names("c\x1b");
    summary.Row("d\x1b", "e\x1b");
    summary.Line("f\x1b", "g\x1b");
    summary.Wrapped("h\x1b", "", "i\x1b");
    summary.Command("j\x1b");
  });
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(
      text,
      "\na\\x1bb\\x1b\nc\\x1b\nd\\x1be\\x1b\nf\\x1b        g\\x1b\nh\\x1bi\\x1b\n    j\\x1b\n");
}

}  // namespace
}  // namespace xpu
