#include <map>

#include <gtest/gtest.h>

#include "report/analysis/analysis.h"
#include "report/model/load.h"
#include "report/stacks/stack_resolver.h"
#include "tests/unit/durations.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/report/report_testing.h"

namespace xpu {
namespace {

using test::kKernelText;
using test::kSecond;

// A recording of one process, pid 10, with a sample in the kernel and a GPU kernel, on a host that
// booted at `boot_ns`; it begins at `start_ns` of the wall clock.
Model Capture(std::string_view host, uint64_t boot_ns, uint64_t start_ns, uint64_t instance,
              std::string_view boot_id = {}) {
  test::ModelBuilder builder;
  builder.Text("[lost]");  // has the id that captures keep for it
  const uint64_t start = start_ns - boot_ns;
  RecordingInfo& info = builder.events.recording_info.emplace_back();
  info.start_ns = start;
  info.start_realtime_ns = start_ns;
  info.recorder_pid = 9;
  info.host_name = builder.Text(host);
  info.boot_id = builder.Text(boot_id);
  builder.Source(kSecond / 100);
  builder.Process(ProcessEventKind::kExec, start, 10, 10, "app", 9, 9);
  KernelSymbol& symbol = builder.events.kernel_symbols.emplace_back();
  symbol.address = kKernelText;
  symbol.size_bytes = 16;
  symbol.name = builder.Text("of_" + std::string(host));
  builder.Stack({1});  // has the id that captures keep for lost ones
  builder.Sample(start + 5, 10, 10, builder.Stack({kKernelText + 1}));
  builder.Sample(start + 6, 10, 10, StackId{0xfffff});
  builder.Clock(instance, boot_ns, {start});
  builder.AddKernel(instance, 1, start_ns + 7, start_ns + 8, "k_" + std::string(host));
  // Both see all GPUs of their host, of which there are two with one name.
  for (uint32_t gpu = 1; gpu <= 2; ++gpu) {
    GpuDevice& device = builder.events.gpu_devices.emplace_back();
    device.gpu = gpu;
    device.uuid = builder.Text(
        (boot_id.empty() ? "GPU of " + std::string(host) : "GPU of " + std::string(boot_id)) +
        std::to_string(gpu));
    for (uint64_t i = 0; i < instance % 4 + 2; ++i) {
      GpuState& state = builder.events.gpu_states.emplace_back();
      state.time_ns = start + i;
      state.gpu = gpu;
    }
  }
  builder.End(start + 100);
  Model model = builder.Build();
  model.path = std::string(host) + ".xpu";
  return model;
}

std::vector<Model> Two(Model a, Model b) {
  std::vector<Model> models;
  models.push_back(std::move(a));
  models.push_back(std::move(b));
  return models;
}

// Changes one of them by edit(sample).
template <typename Edit>
void EditSample(SampleList& samples, size_t place, Edit edit) {
  SampleList edited;
  for (size_t i = 0; i < samples.size(); ++i) {
    Owned<CpuSample> sample = samples[i];
    if (i == place) edit(sample);
    edited.push_back(sample);
  }
  samples = std::move(edited);
}

TEST(MergeCaptures, HostsAndProcessesAreDistinguishedAndClocksAligned) {
  // The second in the list began first, on the host that booted last.
  Result<Model> merged = MergeCaptures(Two(Capture("alpha", 1000 * kSecond, 5000 * kSecond, 0xa),
                                           Capture("beta", 3000 * kSecond, 4999 * kSecond, 0xb)));
  ASSERT_TRUE(merged.ok());
  Analysis analysis(std::move(merged).value());
  const Model& model = analysis.model;
  EXPECT_EQ(model.path, "beta.xpu, alpha.xpu");
  const auto& samples = model.events.cpu_samples;
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_EQ(samples[0].pid, 10u);
  EXPECT_EQ(samples[2].pid, 10u + kPidsPerCapture);
  EXPECT_EQ(samples[2].tid, 10u + kPidsPerCapture);
  // On alpha's clock.
  EXPECT_EQ(samples[0].time_ns, 3999 * kSecond + 5);
  EXPECT_EQ(samples[2].time_ns, 4000 * kSecond + 5);
  EXPECT_EQ(model.events.process_events[1].parent_pid, 9u + kPidsPerCapture);
  EXPECT_EQ(model.events.recording_end.back().time_ns, 4000 * kSecond + 100);
  ASSERT_EQ(model.captures.size(), 2u);
  EXPECT_EQ(model.captures[0].until_ns, 3999 * kSecond + 100);
  EXPECT_EQ(model.captures[1].until_ns, 4000 * kSecond + 100);
  const auto& work = analysis.correlation.work;
  ASSERT_EQ(work.size(), 2u);
  EXPECT_EQ(work[0].start_ns, 3999 * kSecond + 7);
  EXPECT_EQ(work[1].start_ns, 4000 * kSecond + 7);

  ViewOptions options;
  options.unit = TimeUnit::kSamples;
  EXPECT_EQ(test::Folded(analysis, options),
            (std::map<std::string, uint64_t>{{"app@beta;of_beta_[k]", 1},
                                             {"app@alpha;of_alpha_[k]", 1},
                                             {"app@beta;[lost]", 1},
                                             {"app@alpha;[lost]", 1}}));
}

TEST(MergeCaptures, OnOneHostNamesStayAsTheyAre) {
  Model later = Capture("alpha", 1000 * kSecond, 6000 * kSecond, 0xb);
  Result<Model> merged =
      MergeCaptures(Two(Capture("alpha", 1000 * kSecond, 5000 * kSecond, 0xa), std::move(later)));
  ASSERT_TRUE(merged.ok());
  const Model& model = merged.value();
  EXPECT_EQ(model.Text(model.events.process_events[0].name), "app");
  EXPECT_EQ(model.Text(model.events.process_events[1].name), "app");
  EXPECT_EQ(model.events.cpu_samples[2].pid, 10u + kPidsPerCapture);
  EXPECT_EQ(model.events.cpu_samples[2].time_ns, 5000 * kSecond + 5);
}

TEST(MergeCaptures, OfOneBootShareAClockWhateverTheirHostsAreCalled) {
  // The wall clock was set forward by two seconds between the two.
  Result<Model> merged =
      MergeCaptures(Two(Capture("a-1", 1000 * kSecond, 5000 * kSecond, 0xa, "boot"),
                        Capture("a-2", 1002 * kSecond, 6002 * kSecond, 0xb, "boot")));
  ASSERT_TRUE(merged.ok());
  const Model& model = merged.value();
  EXPECT_EQ(model.events.cpu_samples[0].time_ns, 4000 * kSecond + 5);
  EXPECT_EQ(model.events.cpu_samples[2].time_ns, 5000 * kSecond + 5);
  EXPECT_EQ(model.Text(model.events.process_events[1].name), "app");
  ASSERT_EQ(model.host_clocks.size(), 1u);
  EXPECT_EQ(model.host_clocks[0].captures, 2u);
}

// Two recorders of one host both report each of its GPUs: the one that did so more often counts.
TEST(MergeCaptures, EachGpuIsThereOnce) {
  const auto gpus_of = [](std::string_view boot_a, std::string_view boot_b) {
    Result<Model> merged =
        MergeCaptures(Two(Capture("a-1", 1000 * kSecond, 5000 * kSecond, 0x10, boot_a),
                          Capture("a-2", 1000 * kSecond, 5001 * kSecond, 0x11, boot_b)));
    std::map<uint32_t, size_t> states;
    for (const GpuState& state : merged.value().events.gpu_states) ++states[state.gpu];
    return states;
  };
  const uint32_t second = 1 << 20;  // numbers of the second capture
  EXPECT_EQ(gpus_of("boot", "boot"),
            (std::map<uint32_t, size_t>{{second + 1, 3}, {second + 2, 3}}));
  EXPECT_EQ(gpus_of("boot a", "boot b"),
            (std::map<uint32_t, size_t>{{1, 2}, {2, 2}, {second + 1, 3}, {second + 2, 3}}));
}

TEST(MergeCaptures, ClocksOfHostsAreCorrected) {
  const RefineClocks refine = [](std::span<const CaptureOnClock> captures,
                                 std::vector<HostClock> clocks) {
    EXPECT_EQ(captures.size(), 2u);
    EXPECT_EQ(captures[1].host, 1u);
    EXPECT_EQ(captures[1].later_ns, 2000 * kSecond);
    clocks[1].ahead_ns = 1'000'000;
    clocks[1].drift = 1e-6;
    clocks[1].at_ns = 4000 * kSecond;
    clocks[1].collectives = 7;
    clocks[1].residual_ns = 3;
    return clocks;
  };
  Result<Model> merged =
      MergeCaptures(Two(Capture("alpha", 1000 * kSecond, 5000 * kSecond, 0xa, "boot a"),
                        Capture("beta", 3000 * kSecond, 5100 * kSecond, 0xb, "boot b")),
                    refine);
  ASSERT_TRUE(merged.ok());
  const Model& model = merged.value();
  EXPECT_EQ(model.events.cpu_samples[0].time_ns, 4000 * kSecond + 5);
  // 100 s later it is ahead by 100 us more.
  EXPECT_EQ(model.events.cpu_samples[2].time_ns, 4100 * kSecond + 5 - 1'000'000 - 100'000);
  ASSERT_EQ(model.host_clocks.size(), 2u);
  EXPECT_EQ(model.host_clocks[1].host, "beta");
  EXPECT_EQ(model.host_clocks[1].residual_ns, 3u);
  EXPECT_EQ(model.host_clocks[1].captures, 1u);
  EXPECT_EQ(model.host_clocks[0].collectives, 0u);
}

TEST(MergeCaptures, OneThatBreaksOffLastsUntilItsLastEvent) {
  Model broken = Capture("alpha", 1000 * kSecond, 4000 * kSecond, 0xb);
  broken.events.recording_end.rows().clear();
  EditSample(broken.events.cpu_samples, 1, [](CpuSample& sample) { sample.time_ns += 1'000; });
  Result<Model> merged =
      MergeCaptures(Two(std::move(broken), Capture("alpha", 1000 * kSecond, 5000 * kSecond, 0xa)));
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->captures[0].until_ns, 3000 * kSecond + 1'006);
}

TEST(MergeCaptures, OneIsLeftAlone) {
  std::vector<Model> one;
  one.push_back(Capture("alpha", 1000 * kSecond, 5000 * kSecond, 0xa));
  Result<Model> merged = MergeCaptures(std::move(one));
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->path, "alpha.xpu");
  EXPECT_EQ(merged->events.cpu_samples[0].time_ns, 4000 * kSecond + 5);
}

TEST(MergeCaptures, ARecordingOnce) {
  Result<Model> merged = MergeCaptures(Two(Capture("alpha", 1000 * kSecond, 5000 * kSecond, 0xa),
                                           Capture("alpha", 1000 * kSecond, 5000 * kSecond, 0xa)));
  ASSERT_FALSE(merged.ok());
  EXPECT_EQ(merged.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(merged.error().message, "alpha.xpu and alpha.xpu are from the same recording");
}

TEST(MergeCaptures, IdsThatDoNotFitAreLost) {
  Model hostile = Capture("beta", 1000 * kSecond, 5000 * kSecond, 0xb);
  EditSample(hostile.events.cpu_samples, 0,
             [](CpuSample& sample) { sample.stack = StackId{0xfffffff0}; });
  hostile.events.process_events.rows()[0].name = StringId{0xfffffff0};
  Result<Model> merged =
      MergeCaptures(Two(Capture("alpha", 1000 * kSecond, 4000 * kSecond, 0xa), std::move(hostile)));
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->events.cpu_samples[2].stack, kLostStack);
  EXPECT_EQ(merged->Text(merged->events.process_events[1].name), "[lost]@beta");
  EXPECT_FALSE(merged->tables->Node(StackId{0xffffffff}).caller);
  EXPECT_TRUE(merged->tables->IsLost(StackId{0xffffffff}));
}

}  // namespace
}  // namespace xpu
