#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::kText;
constexpr uint64_t kFirstNs = 1'000'000;

std::string Script(test::ModelBuilder& builder) {
  Analysis analysis(builder.Build());
  return test::Written([&](Output& output) { WriteScript(analysis, {}, output); });
}

class ScriptTest : public testing::Test {
 protected:
  ScriptTest() {
    test::ElfBuilder("app")
        .Symbol("main", 0x0, 0x100)
        .Symbol("_Z7forwardii", 0x100, 0x100)
        .WriteTo(directory_ / "app");
    builder_.events.recording_info.emplace_back().start_ns = kFirstNs;
    builder_.Process(ProcessEventKind::kExisting, 1, 100, 100, "my app;1");
    builder_.Map(1, 100, kText, test::ElfBuilder::kTextBytes, test::ElfBuilder::kTextOffset,
                 directory_ / "app", "app");
    builder_.Callback(1, ApiDomain::kRuntime, 41, "cudaMemcpyAsync_v3020");
    builder_.Callback(1, ApiDomain::kRuntime, 211, "cudaLaunchKernel_v7000");
    builder_.Clock(1, 0, {kFirstNs});
  }

  test::TempDirectory directory_;
  test::ModelBuilder builder_;
};

TEST_F(ScriptTest, SamplesCallsAndWorkInOrderOfTime) {
  const StackId stack = builder_.Stack({kText + 0x10, kText + 0x110});
  builder_.AddKernel(1, 1, kFirstNs + 3'000, kFirstNs + 7'500, "_Z1kPf").stream_id = 7;
  builder_.Call(1, 1, 211, kFirstNs + 2'000, kFirstNs + 2'500, 100);
  builder_.Launch(1, 1, kFirstNs + 2'001, 100, 100, stack);
  builder_.Sample(kFirstNs + 4'000, 100, 101, stack).cpu = 3;
  builder_.Sample(kFirstNs - 10, 100, 100, stack);
  EXPECT_EQ(Script(builder_),
            "-10 my_app:1 100 100 0 main;forward(int, int)\n"
            "2000 my_app:1 100 100 - main;forward(int, int);cudaLaunchKernel\t"
            "event=api duration_ns=500 correlation=1 result=0\n"
            "3000 my_app:1 100 100 - main;forward(int, int);cudaLaunchKernel;"
            "[GPU_Kernel]k(float*)\t"
            "event=kernel duration_ns=4500 correlation=1 gpu=0 stream=7\n"
            "4000 my_app:1 100 101 3 main;forward(int, int)\n");
}

TEST_F(ScriptTest, CopiesHaveBytesAndWorkWithoutTimeIsAtItsCall) {
  builder_.Call(1, 1, 41, kFirstNs + 100, kFirstNs + 900, 100);
  Memcpy& copy = builder_.events.memcpys.emplace_back();
  copy.instance = {1};
  copy.correlation_id = 1;
  copy.copy_kind = 1;
  copy.size_bytes = 4096;
  EXPECT_EQ(Script(builder_),
            "100 [unknown] 0 100 - [unknown launch];cudaMemcpyAsync\t"
            "event=api duration_ns=800 correlation=1 result=0\n"
            "100 [unknown] 0 100 - [unknown launch];cudaMemcpyAsync;[GPU_Memcpy]HtoD\t"
            "event=memcpy duration_ns=0 correlation=1 gpu=0 stream=0 bytes=4096 timed=no\n");
}

TEST_F(ScriptTest, OverheadsAndCompiling) {
  GpuProcess& process = builder_.events.gpu_processes.emplace_back();
  process.instance = {1};
  process.pid = 100;
  Overhead& overhead = builder_.events.overheads.emplace_back();
  overhead.instance = {1};
  overhead.start_ns = kFirstNs + 20;
  overhead.end_ns = kFirstNs + 25;
  overhead.overhead_kind = 5 << 16;
  overhead.correlation_id = 3;
  JitOperation& jit = builder_.events.jit_operations.emplace_back();
  jit.instance = {1};
  jit.start_ns = kFirstNs + 10;
  jit.end_ns = kFirstNs + 19;
  jit.entry_kind = 1;
  jit.operation = 1;
  jit.cache_size_bytes = 4096;
  builder_.events.jit_operations.emplace_back();  // without a time
  EXPECT_EQ(
      Script(builder_),
      "10 my_app:1 100 100 - \t"
      "event=jit operation=cache_load code=PTX_to_machine_code cache_bytes=4096 duration_ns=9 "
      "correlation=0\n"
      "20 my_app:1 100 100 - \t"
      "event=overhead kind=lazy_function_loading duration_ns=5 correlation=3\n");
}

TEST_F(ScriptTest, NoNameBreaksTheColumns) {
  builder_.Process(ProcessEventKind::kName, 2, 100, 101, "a b\tc\n;d\xff");
  builder_.Sample(kFirstNs + 1, 100, 101, builder_.Stack({kText + 0x10}));
  builder_.AddKernel(1, 9, kFirstNs + 2, kFirstNs + 3, "k\t;\n 7");
  EXPECT_EQ(Script(builder_),
            "1 a_b\\x09c\\x0a:d\\xff 100 101 0 main\n"
            "2 [unknown] 0 0 - [unknown launch];[GPU_Kernel]k\\x09:\\x0a_7\t"
            "event=kernel duration_ns=1 correlation=9 gpu=0 stream=7\n");
}

}  // namespace
}  // namespace xpu
