#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include "report/select/filter.h"
#include "report/summary/summary_hints.h"
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
  static std::string LineOf(Analysis& analysis, std::string_view begin) {
    std::istringstream text(
        test::Written([&](Output& output) { WriteSummary(analysis, KernelNames::kFull, output); }));
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with(begin)) return line;
    }
    return {};
  }
  std::string Hints() {
    Analysis analysis(builder_.Build());
    std::string text;
    for (const Hint& hint : FindHints(analysis, FindGpuBusy(analysis))) {
      text += hint.what + " " + hint.next + "\n";
    }
    return text;
  }

  test::ModelBuilder builder_;
  uint32_t id_ = 0;
};

TEST_F(HintsTest, NothingToSay) { EXPECT_EQ(Hints(), ""); }

TEST_F(HintsTest, AnIdleGpu) {
  Kernels(10, 10 * kUs, 10 * kUs);
  Kernels(10, 10 * kUs, 100 * kUs, 1);
  EXPECT_EQ(Hints(),
            "GPU 1 was idle for 89 % of the 910 us between its first and its last work. What the "
            "CPU did meanwhile: --flamegraph --mode idle -o idle.html\n");
}

TEST_F(HintsTest, ShortKernelsOfAnIdleGpu) {
  Kernels(150, 2 * kUs, 10 * kUs);
  Kernels(50, 8 * kUs, 40 * kUs);
  const std::string hints = Hints();
  EXPECT_NE(hints.find("75 % of 200 kernels are shorter than 5 us while the GPU is idle"),
            std::string::npos)
      << hints;
}

TEST_F(HintsTest, ShortKernelsThatKeepItBusy) {
  Kernels(200, 2 * kUs, 2'100);
  builder_.events.recording_end.back().time_ns = 900 * kUs;
  EXPECT_EQ(Hints(),
            "GPU 0 was busy for 95 % of the time from its first to its last work: its kernels set "
            "the pace. The code that launches them: --top --table callpath_sum\n");
}

TEST_F(HintsTest, ABusyGpuForAShortWhile) {
  Kernels(200, 2 * kUs, 2'100);
  EXPECT_EQ(Hints(),
            "GPU 0 was busy from its first to its last work, but only for 0 % of the run. What the "
            "program did before and after: --top --table cpu_func_sum\n");
}

TEST_F(HintsTest, TheMainThreadWaits) {
  builder_.Call(1, 1, 131, 100 * kMs, 300 * kMs, 5);
  builder_.Call(1, 2, 131, 500 * kMs, 600 * kMs, 5);
  builder_.Call(1, 3, 131, 100 * kMs, 900 * kMs, 6);  // another thread
  EXPECT_EQ(Hints(),
            "Synchronisation takes 30 % of the time of the main thread of app. What it waits "
            "for: --top --table cuda_wait_sum\n");
}

TEST_F(HintsTest, CopiesOfPageableMemory) {
  Copy(kMs, 10 * kUs, 1, 3);             // pageable to device
  Copy(kMs + 10 * kUs, 90 * kUs, 2, 3);  // pinned
  EXPECT_EQ(Hints(),
            "Copies from pageable memory take 10 % of all GPU work (10 us, 5.0 MB): pinned memory "
            "copies faster and does not hold up the CPU. Each copy: --top --table "
            "cuda_gpu_trace\n");
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
            "The driver compiled code for the GPU for 400 ms while the program ran. Code for its "
            "architecture in the program (nvcc -arch) or a cache that outlives it "
            "(CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE) saves that. What was compiled: --top --table "
            "jit_sum\n"
            "Loading code at its first use took 60 ms: CUDA_MODULE_LOADING=EAGER moves that to the "
            "start of the program. Each kind: --top --table cuda_overhead_sum\n");
}

TEST_F(HintsTest, AtMostFour) {
  Kernels(200, 2 * kUs, 100 * kUs);
  Copy(900 * kMs, kMs, 1, 3);
  builder_.Call(1, 1'000, 131, 100 * kMs, 900 * kMs, 5);
  Overhead& overhead = builder_.events.overheads.emplace_back();
  overhead.start_ns = 1;
  overhead.end_ns = 500 * kMs;
  const std::string hints = Hints();
  EXPECT_EQ(std::count(hints.begin(), hints.end(), '\n'), 4) << hints;
}

TEST_F(HintsTest, TheSummaryTellsThem) {
  Kernels(10, 10 * kUs, 100 * kUs);
  Analysis analysis(builder_.Build());
  const std::string text =
      test::Written([&](Output& output) { WriteSummary(analysis, KernelNames::kFull, output); });
  EXPECT_NE(text.find("\nGPUs, from their first to their last work\n"
                      "  busy%      busy      idle  overlap  GPU\n"
                      "   11.0    100 us    810 us    1.00x  0 [unnamed]\n"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find("\nWhat to look at next\n"
                "- GPU 0 was idle for 89 % of the 910 us between its first and its last work.\n"
                "  What the CPU did meanwhile:\n"
                "    xpu-report --flamegraph --mode idle -o idle.html test.xpu\n"),
      std::string::npos)
      << text;
}

TEST_F(HintsTest, WhereTheGpuDidNothingThatIsSaid) {
  const auto line = [](LaunchStackSource launch_stacks, bool initialized) {
    test::ModelBuilder builder;
    builder.events.recording_info.emplace_back().launch_stacks = launch_stacks;
    if (initialized) builder.events.gpu_processes.emplace_back().instance = {1};
    Analysis analysis(builder.Build());
    return LineOf(analysis, "GPU work");
  };
  EXPECT_EQ(line(LaunchStackSource::kNone, false), "");  // --cpu-only
  EXPECT_EQ(line(LaunchStackSource::kInProcess, false),
            "GPU work  none: no process that was recorded initialized CUDA");
  EXPECT_EQ(line(LaunchStackSource::kMarker, true),
            "GPU work  none: CUDA was initialized, and nothing started");
  builder_.events.recording_info.emplace_back().launch_stacks = LaunchStackSource::kInProcess;
  Kernels(1, 10 * kUs, 100 * kUs);
  Analysis analysis(builder_.Build());
  EXPECT_EQ(LineOf(analysis, "GPU work"), "");
}

// The command is to show the same capture when it is pasted.
TEST_F(HintsTest, CommandsNameTheCapture) {
  Kernels(10, 10 * kUs, 100 * kUs);
  Analysis analysis(builder_.Build());
  const auto command = [&](std::string path) {
    analysis.model.path = std::move(path);
    return LineOf(analysis, "    xpu-report ");
  };
  const std::string bare = "    xpu-report --flamegraph --mode idle -o idle.html";
  EXPECT_EQ(command("/tmp/a.xpu"), bare + " /tmp/a.xpu");
  EXPECT_EQ(command("capture.xpu"), bare);
  for (const char* path : {"a.xpu b.xpu", "$(x)", "-"}) EXPECT_EQ(command(path), bare) << path;
}

TEST_F(HintsTest, APartThatHoldsNothingSaysSo) {
  Kernels(10, 10 * kUs, 100 * kUs);
  Analysis analysis(builder_.Build());
  const auto part = [&](std::string kernel) {
    FilterOptions filter;
    filter.kernel = std::move(kernel);
    EXPECT_TRUE(ApplyFilter(filter, analysis).ok());
    return LineOf(analysis, "part ");
  };
  EXPECT_EQ(LineOf(analysis, "part "), "");
  EXPECT_EQ(part("k"), "part      --kernel k");
  EXPECT_EQ(part("other"), "part      --kernel other (nothing is left)");
}

}  // namespace
}  // namespace xpu
