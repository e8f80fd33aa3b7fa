#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "record/gpu_metrics/metrics_helper.h"
#include "record/gpu_metrics/trusted_library.h"
#include "record/options/counter_kinds.h"
#include "record/options/gpu_metrics_options.h"

namespace xpu {
namespace {

std::vector<std::string> NamesOf(const std::vector<std::string>& sets) {
  std::vector<std::string> names;
  for (const auto& counter : gpu_metrics::WantedCounters(sets)) names.push_back(counter.name);
  return names;
}

TEST(GpuMetricSets, AreCountersEachOnce) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(NamesOf({"dram", "dram_read", "tensor"}),
            (Names{"dram_read", "dram_write", "tensor_active"}));
  EXPECT_EQ(NamesOf({}),
            (Names{"sm_active", "sm_issue", "tensor_active", "dram_read", "dram_write"}));
  EXPECT_EQ(NamesOf({"sm__warps_active.avg", "sm__warps_active.avg"}),
            (Names{"sm__warps_active.avg"}));
}

GpuMetricsOptions With(const char* sets, const char* interval) {
  GpuMetricsOptions options;
  options.set_text = sets;
  options.interval_text = interval;
  return options;
}

TEST(GpuMetricOptions, AreParsed) {
  GpuMetricsOptions options = With("sm,l2_hit_rate,lts__t_bytes.sum", "50us");
  ASSERT_TRUE(ParseGpuMetrics(options).ok());
  EXPECT_EQ(options.sets, (std::vector<std::string>{"sm", "l2_hit_rate", "lts__t_bytes.sum"}));
  EXPECT_EQ(options.interval_ns, 50'000u);
}

TEST(GpuMetricOptions, WrongOnesAreRefusedWithAHint) {
  for (const auto& [sets, interval, hint] :
       {std::tuple("dran", "", "did you mean dram"), std::tuple(",", "", "--list-gpu-metrics"),
        std::tuple("", "2us", "from 5us"), std::tuple("", "2h", "from 5us")}) {
    GpuMetricsOptions options = With(sets, interval);
    const Status status = ParseGpuMetrics(options);
    ASSERT_FALSE(status.ok()) << sets << interval;
    EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
    EXPECT_NE(status.error().hint.find(hint), std::string::npos) << status.error().hint;
  }
}

TEST(MetricsHelperSettings, ArriveAsTheyWereSent) {
  MetricsHelperSettings sent;
  sent.watch = true;
  sent.paused = true;
  sent.options.counters = true;
  sent.options.sets = {"sm", "dram__bytes.sum"};
  sent.options.interval_ns = 20'000;
  sent.options.cupti_library = "/opt/with=sign/libcupti.so";
  const std::vector<std::string> arguments = sent.ToArguments();
  std::vector<const char*> words = {kMetricsHelperName};
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  const auto got = MetricsHelperSettings::Parse(static_cast<int>(words.size()), words.data());
  EXPECT_EQ(got.ToArguments(), arguments);
  EXPECT_EQ(got.options.sets, sent.options.sets);
  EXPECT_EQ(got.options.cupti_library, sent.options.cupti_library);
}

class TrustedLibrary : public testing::Test {
 protected:
  TrustedLibrary() {
    std::string pattern = testing::TempDir() + "xpu-trusted-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(directory_ / "lib");
    file_ = directory_ / "lib" / "libcupti.so.13";
    std::ofstream(file_) << "library";
    std::filesystem::permissions(file_, std::filesystem::perms(0644));
    std::filesystem::permissions(directory_ / "lib", std::filesystem::perms(0755));
  }
  ~TrustedLibrary() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
  std::filesystem::path file_;
};

TEST_F(TrustedLibrary, IsOneThatOthersCannotWrite) {
  EXPECT_TRUE(gpu_metrics::CheckTrusted(file_).ok());
  EXPECT_EQ(*gpu_metrics::FindCupti(file_), std::filesystem::canonical(file_));
  std::filesystem::permissions(file_, std::filesystem::perms(0666));
  EXPECT_EQ(gpu_metrics::CheckTrusted(file_).error().kind, ErrorKind::kPermission);
}

TEST_F(TrustedLibrary, IsInADirectoryThatOthersCannotWrite) {
  std::filesystem::permissions(directory_ / "lib", std::filesystem::perms(0777));
  const Status status = gpu_metrics::CheckTrusted(file_);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kPermission);
  EXPECT_NE(status.error().message.find("others can write"), std::string::npos);
}

// What counts is where a link leads.
TEST_F(TrustedLibrary, IsFoundThroughLinks) {
  const std::filesystem::path link = directory_ / "link.so";
  std::filesystem::create_symlink(file_, link);
  EXPECT_TRUE(gpu_metrics::CheckTrusted(link).ok());
  std::filesystem::permissions(directory_ / "lib", std::filesystem::perms(0777));
  EXPECT_FALSE(gpu_metrics::CheckTrusted(link).ok());
  EXPECT_FALSE(gpu_metrics::CheckTrusted(directory_ / "missing").ok());
}

}  // namespace
}  // namespace xpu
