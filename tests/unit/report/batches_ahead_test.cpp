#include "report/model/batches_ahead.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

constexpr uint64_t kSamples = 300'000;  // five blocks, at 65536 events each

class BatchesAheadTest : public testing::Test {
 protected:
  BatchesAheadTest() {
    test::ModelBuilder builder;
    const StackId stack = builder.Stack({1, 2, 3});
    for (uint64_t i = 0; i < kSamples; ++i) builder.Sample(i, 5, 5, stack);
    builder.End(kSamples);
    EXPECT_TRUE(builder.WriteCapture(directory_ / "capture.xpu").ok());
  }
  CaptureReader Open() { return CaptureReader::Open(directory_ / "capture.xpu").value(); }

  test::TempDirectory directory_;
};

TEST_F(BatchesAheadTest, EveryBatchOnceAndInOrder) {
  CaptureReader reader = Open();
  uint64_t batch_count = 0;
  uint64_t samples = 0;
  {
    BatchesAhead batches(reader);
    while (const auto batch = batches.Next()) {
      ++batch_count;
      for (const CpuSample& sample : batch->cpu_samples) ASSERT_EQ(sample.time_ns, samples++);
    }
    EXPECT_FALSE(batches.Next().has_value());
  }
  EXPECT_EQ(samples, kSamples);
  EXPECT_GE(batch_count, 4u);
  EXPECT_EQ(reader.problems().blocks_read, batch_count);
}

TEST_F(BatchesAheadTest, NobodyHasToReadToTheEnd) {
  for (const int wanted : {0, 1, 3}) {
    CaptureReader reader = Open();
    BatchesAhead batches(reader);
    for (int i = 0; i < wanted; ++i) EXPECT_TRUE(batches.Next().has_value());
  }
}

}  // namespace
}  // namespace xpu
