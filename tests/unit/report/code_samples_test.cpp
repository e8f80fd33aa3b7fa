#include "report/query/code_samples.h"

#include <numeric>

#include <gtest/gtest.h>

#include "format/base/file.h"
#include "report/query/call_tree_builder.h"
#include "report/query/kernel_code.h"
#include "symbolize/elf/cubin.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"
#include "tests/unit/symbolize/elf_builder.h"
#include "tests/unit/tests_directory.h"

namespace xpu {
namespace {

using test::ModelBuilder;

constexpr char kKernel[] = "_Z9fma_chainPfi";
constexpr uint64_t kModule = 0xabc;
// Of tests/captures/cubins/inlines.cu.
constexpr uint64_t kInSquare = 0xc0;
constexpr uint64_t kInTwice = 0xf0;
constexpr uint64_t kInKernel = 0x10;

TEST(StallName, IsReadable) {
  const StallName plain = StallNameOf("smsp__pcsamp_warps_issue_stalled_long_scoreboard");
  EXPECT_EQ(plain.name, "long scoreboard");
  EXPECT_FALSE(plain.is_not_issued);
  const StallName part = StallNameOf("smsp__pcsamp_warps_issue_stalled_wait_not_issued");
  EXPECT_EQ(part.name, "wait");
  EXPECT_TRUE(part.is_not_issued);
  EXPECT_EQ(StallNameOf("something_new").name, "something new");
  EXPECT_FALSE(AdviceOf("wait").meaning.empty());
  EXPECT_TRUE(AdviceOf("something new").meaning.empty());
}

// The summary writes "where a warp" in front of it.
TEST(StallAdvice, SaysWhatAWarpDoes) {
  for (const std::string_view stall :
       {"barrier", "branch resolving", "dispatch stall", "drain", "imc miss", "lg throttle",
        "long scoreboard", "math pipe throttle", "membar", "mio throttle", "misc",
        "no instructions", "not selected", "selected", "short scoreboard", "sleeping",
        "tex throttle", "wait"}) {
    const std::string_view meaning = AdviceOf(stall).meaning;
    const std::string_view verb = meaning.substr(0, meaning.find(' '));
    EXPECT_TRUE(verb == "waits" || verb == "is" || verb == "could" || verb == "issues" ||
                verb == "sleeps")
        << stall << ": " << meaning;
  }
}

TEST(DivideByWeights, PartsAddUpAndFollowTheWeights) {
  EXPECT_EQ(DivideByWeights(10, std::vector<uint64_t>{1, 1, 1}), (std::vector<uint64_t>{4, 3, 3}));
  EXPECT_EQ(DivideByWeights(7, std::vector<uint64_t>{0, 0}), (std::vector<uint64_t>{0, 0}));
  EXPECT_TRUE(DivideByWeights(7, {}).empty());
  const std::vector<uint64_t> weights = {UINT64_MAX, UINT64_MAX, 1, 0};
  const auto parts = DivideByWeights(UINT64_MAX, weights);
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), uint64_t{0}), UINT64_MAX);
  EXPECT_EQ(parts[3], 0u);
}

TEST(Disassembly, TakesInstructionsAlone) {
  const auto texts = ParseDisassembly(
      "\t.headerflags\t@\"EF_CUDA_SM90\"\n"
      "        /*0000*/                   LDC R1, c[0x0][0x28] ;   /* 0x00000a00ff017b82 */\n"
      "                                                            /* 0x000fe20000000800 */\n"
      "        /*00f0*/              @!P0 BRA 0x120 ;\n"
      "/*zz*/ NOP ;\n/*10\n");
  EXPECT_EQ(texts, (std::map<uint64_t, std::string>{{0x0, "LDC R1, c[0x0][0x28]"},
                                                    {0xf0, "@!P0 BRA 0x120"}}));
}

// A program that launches the kernel from two places, for 1001 and 500 ns.
class CodeSamplesTest : public testing::Test {
 protected:
  void SetUp() override {
    test::ElfBuilder("app")
        .Symbol("main", 0x0, 0x100)
        .Symbol("forward", 0x100, 0x100)
        .WriteTo(directory_ / "app");
    builder_.Process(ProcessEventKind::kExisting, 1, 10, 10, "app");
    builder_.Map(1, 10, test::kText, test::ElfBuilder::kTextBytes, test::ElfBuilder::kTextOffset,
                 directory_ / "app", "app");
    GpuProcess& process = builder_.events.gpu_processes.emplace_back();
    process.instance = {1};
    process.time_ns = 1;
    process.pid = 10;
    builder_.Clock(1, 0, {1, 1'000'000});
    builder_.Callback(1, ApiDomain::kRuntime, test::kLaunchKernel, "cudaLaunchKernel");
    Launch(1, {test::kText + 0x10}, 1001);
    Launch(2, {test::kText + 0x10, test::kText + 0x110}, 500);
  }

  void Launch(uint32_t correlation, std::initializer_list<uint64_t> path, uint64_t ns) {
    const uint64_t start_ns = 1000 * correlation;
    builder_.Call(1, correlation, test::kLaunchKernel, start_ns, start_ns + 10, 10);
    builder_.Launch(1, correlation, start_ns, 10, 10, builder_.Stack(path));
    builder_.AddKernel(1, correlation, start_ns + 10, start_ns + 10 + ns, kKernel).context_id = 1;
  }

  void Sample(uint64_t offset, std::string_view reason, uint64_t samples,
              std::string_view function = kKernel) {
    GpuSample& sample = builder_.events.gpu_samples.emplace_back();
    sample.instance = {1};
    sample.time_ns = 5000;
    sample.context_id = 1;
    sample.cubin_crc = kModule;
    sample.function = builder_.Text(function);
    sample.offset = offset;
    sample.stall_reason = builder_.Text("smsp__pcsamp_warps_issue_stalled_" + std::string(reason));
    sample.samples = samples;
  }

  void AddCode() {
    const std::string cubin = ReadFile(TestsDirectory() + "/captures/cubins/inlines.cubin").value();
    const auto slice = WriteCubinSlice(std::as_bytes(std::span(cubin)), {kKernel});
    // In two parts.
    const std::string_view bytes = slice->bytes;
    for (uint32_t part = 0; part < 2; ++part) {
      CubinSlice& event = builder_.events.cubin_slices.emplace_back();
      event.instance = {1};
      event.cubin_crc = kModule;
      event.part = part;
      event.part_count = 2;
      event.bytes = builder_.Text(part == 0 ? bytes.substr(0, 1000) : bytes.substr(1000));
    }
  }

  test::Lines Folded() {
    Analysis analysis(builder_.Build());
    ViewOptions options;
    options.tree.mode = TreeMode::kGpu;
    options.unit = TimeUnit::kNanoseconds;
    return test::Folded(analysis, options, &notes_);
  }

  test::TempDirectory directory_;
  ModelBuilder builder_;
  std::string notes_;
};

TEST_F(CodeSamplesTest, TimeOfEachCallPathAddsUp) {
  AddCode();
  Sample(kInSquare, "wait", 2);
  Sample(kInSquare, "wait_not_issued", 1);
  Sample(kInTwice, "long_scoreboard", 1);
  const test::Lines lines = Folded();
  uint64_t first = 0;
  uint64_t second = 0;
  for (const auto& [line, ns] : lines) {
    const bool is_first = line.find(";forward;") == std::string::npos;
    (is_first ? first : second) += ns;
    EXPECT_TRUE(line.ends_with(";Twice(float);Square(float);inlines.cu:4;[stall] wait") ||
                line.ends_with(";Twice(float);inlines.cu:7;[stall] long scoreboard"))
        << line;
  }
  EXPECT_EQ(lines.size(), 4u);
  EXPECT_EQ(first, 1001u);
  EXPECT_EQ(second, 500u);
  EXPECT_NE(notes_.find("1 kernel with samples is launched from several call paths"),
            std::string::npos)
      << notes_;
}

TEST_F(CodeSamplesTest, WithoutCodeThereAreReasons) {
  Sample(kInSquare, "wait", 3);
  Sample(kInTwice, "barrier", 1);
  for (const auto& [line, ns] : Folded()) {
    EXPECT_TRUE(line.ends_with("[GPU_Kernel]fma_chain(float*, int);[stall] wait") ||
                line.ends_with("[GPU_Kernel]fma_chain(float*, int);[stall] barrier"))
        << line;
  }
}

TEST_F(CodeSamplesTest, OtherKernelsKeepTheirTime) {
  Sample(kInKernel, "wait", 3, "_Z5otherv");
  const test::Lines lines = Folded();
  ASSERT_EQ(lines.size(), 2u);
  for (const auto& [line, ns] : lines) {
    EXPECT_TRUE(line.ends_with("[GPU_Kernel]fma_chain(float*, int)")) << line;
  }
}

TEST_F(CodeSamplesTest, KernelsOfOneNameInTwoModulesShareTheirTime) {
  Sample(kInKernel, "wait", 1);
  Sample(kInKernel, "wait", 3);
  builder_.events.gpu_samples.back().cubin_crc = kModule + 1;
  Analysis analysis(builder_.Build());
  const CodeSamples samples(analysis);
  ASSERT_EQ(samples.functions().size(), 2u);
  EXPECT_EQ(samples.functions()[0].samples, 3u);
  EXPECT_EQ(samples.functions()[0].kernel_ns + samples.functions()[1].kernel_ns, 1501u);
  EXPECT_EQ(samples.functions()[1].kernel_ns, 375u);
}

TEST_F(CodeSamplesTest, DamagedSlicesHaveNothing) {
  AddCode();
  Sample(kInSquare, "wait", 1);
  builder_.events.cubin_slices.back().part = 7;
  EXPECT_EQ(Folded().begin()->first.find("inlines.cu"), std::string::npos);
}

}  // namespace
}  // namespace xpu
