#include <gtest/gtest.h>

#include "report/query/call_tree_builder.h"
#include "report/views/flame_graph/flame_graph_code.h"
#include "report/views/flame_graph/flame_graph_view.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

class FlameCodeTest : public testing::Test {
 protected:
  FlameCodeTest() {
    builder_.Process(ProcessEventKind::kExisting, 1, 10, 10, "app");
    builder_.Clock(1, 0, {1, 1'000'000});
    builder_.Callback(1, ApiDomain::kRuntime, test::kLaunchKernel, "cudaLaunchKernel");
  }

  // A kernel that runs once.
  void Kernel(const std::string& name) {
    const uint64_t start_ns = 1000 * ++launches_;
    builder_.Call(1, launches_, test::kLaunchKernel, start_ns, start_ns + 10, 10);
    builder_.Launch(1, launches_, start_ns, 10, 10, {});
    builder_.AddKernel(1, launches_, start_ns + 10, start_ns + 110, name).context_id = 1;
  }
  void Sample(const std::string& function, uint64_t offset, uint64_t samples) {
    GpuSample& sample = builder_.events.gpu_samples.emplace_back();
    sample.instance = {1};
    sample.context_id = 1;
    sample.cubin_crc = 0xabc;
    sample.function = builder_.Text(function);
    sample.offset = offset;
    sample.stall_reason = builder_.Text("smsp__pcsamp_warps_issue_stalled_wait");
    sample.samples = samples;
  }
  std::string Code() {
    Analysis analysis(builder_.Build());
    const CallTree tree = BuildCallTree(analysis, {});
    const auto code = FlameCode::Of(analysis, tree, KernelNames::kFull);
    return test::Written([&](Output& output) {
      PageData data(output);
      WriteCode(code ? &*code : nullptr, data);
    });
  }

  test::ModelBuilder builder_;
  uint32_t launches_ = 0;
};

TEST_F(FlameCodeTest, NothingWithoutSamples) {
  Kernel("gemm");
  EXPECT_EQ(Code(), "\"code\":null,\n");
}

TEST_F(FlameCodeTest, NothingOfKernelsThatAreNotShown) {
  Kernel("gemm");
  Sample("other", 0x10, 5);
  EXPECT_EQ(Code(), "\"code\":null,\n");
}

TEST_F(FlameCodeTest, InstructionsWithTheirStalls) {
  Kernel("gemm");
  Sample("gemm", 0x10, 5);
  Sample("gemm", 0x20, 2);
  const std::string code = Code();
  EXPECT_NE(code.find("\"name\":\"gemm\",\"callee\":\"\",\"samples\":7,\"ns\":100,\"count\":1,\n"),
            std::string::npos)
      << code;
  EXPECT_NE(code.find("\"instructions\":[[16,\"\",-1,0,[0,5]],[32,\"\",-1,0,[0,2]]]"),
            std::string::npos)
      << code;
  // The sentence that --annotate has too.
  EXPECT_NE(code.find(AdviceText("wait")), std::string::npos) << code;
}

TEST_F(FlameCodeTest, TheLargestFunctionsFirstAndTheOthersCounted) {
  for (size_t i = 0; i < FlameCode::kMostFunctions + 3; ++i) {
    const std::string name = "kernel" + std::to_string(i);
    Kernel(name);
    Sample(name, 0x10, i + 1);
  }
  const std::string code = Code();
  const std::string first = "kernel" + std::to_string(FlameCode::kMostFunctions + 2);
  EXPECT_NE(code.find("\"kernels\":[{\"name\":\"" + first + "\""), std::string::npos) << code;
  EXPECT_EQ(code.find("\"kernel2\""), std::string::npos) << code;
  EXPECT_NE(code.find("\"leftOut\":3,\"linesLeftOut\":0,\"instructionsLeftOut\":0"),
            std::string::npos)
      << code;
}

TEST_F(FlameCodeTest, TheInstructionsWithMostSamplesOfALargeFunction) {
  Kernel("gemm");
  for (size_t i = 0; i < FlameCode::kMostInstructions; ++i) Sample("gemm", 16 * i, 2);
  Sample("gemm", 1 << 20, 3);
  for (size_t i = 0; i < 10; ++i) Sample("gemm", (2 << 20) + 16 * i, 1);
  const std::string code = Code();
  EXPECT_NE(code.find("[1048576,"), std::string::npos);
  EXPECT_EQ(code.find("[2097152,"), std::string::npos);
  EXPECT_NE(code.find("[16,"), std::string::npos);  // one of many that have as few
  EXPECT_NE(code.find("\"instructionsLeftOut\":11,"), std::string::npos) << code.substr(0, 1000);
}

}  // namespace
}  // namespace xpu
