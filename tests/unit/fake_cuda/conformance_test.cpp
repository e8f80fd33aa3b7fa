// The simulated device against the captures of the real one: the same workload, the same recorder.
#include <algorithm>
#include <ostream>

#include <gtest/gtest.h>

#include "recordings.h"
#include "views.h"

namespace xpu::fake_cuda_test {
namespace {

using cupti_raw::Capture;

struct Case {
  const char* name;  // of the real capture
  Strings command;
  Strings environment;
};

void PrintTo(const Case& param, std::ostream* out) { *out << param.name; }

// One line per difference would be thousands when one is missing: the first ones say enough.
void ExpectSameLines(const Lines& real, const Lines& fake, const std::string& what) {
  size_t shown = 0;
  for (size_t i = 0; i < std::max(real.size(), fake.size()) && shown < 5; ++i) {
    const std::string& of_real = i < real.size() ? real[i] : "(nothing)";
    const std::string& of_fake = i < fake.size() ? fake[i] : "(nothing)";
    if (of_real == of_fake) continue;
    ++shown;
    ADD_FAILURE() << what << " " << i << "\n  real " << of_real << "\n  fake " << of_fake;
  }
}

std::string CaseName(const testing::TestParamInfo<Case>& info) { return info.param.name; }

class OneThread : public testing::TestWithParam<Case> {};

// Programs whose calls come from one thread: everything is the same, call by call and byte by byte.
TEST_P(OneThread, SetupCallbacksAndRecordsAreTheRealOnes) {
  const Case& param = GetParam();
  const Capture real = LoadReal(param.name);
  const Capture fake = RecordOne(param.command, param.environment);
  ExpectSameLines(SetupLines(real), SetupLines(fake), "set-up call");
  ExpectSameLines(CallbackLines(real), CallbackLines(fake), "callback");
  ExpectSameLines(RecordLines(real), RecordLines(fake), "record");
  EXPECT_GT(RecordLines(real).size(), 20U);
}

INSTANTIATE_TEST_SUITE_P(
    Captures, OneThread,
    testing::Values(
        Case{"vector_add", {"vector_add", "--iterations", "3"}, {"CUPTI_RAW_ALL_SYNC=1"}},
        Case{"transformer_shared", kTransformer, {}},
        Case{"transformer_static",
             With({"transformer-static"}, {kTransformer.begin() + 1, kTransformer.end()}),
             {}},
        Case{"transformer_api_records", kTransformer, {"CUPTI_RAW_KINDS=default,driver,runtime"}},
        Case{"transformer_chosen_api",
             kTransformer,
             {"CUPTI_RAW_RUNTIME_CBIDS=211", "CUPTI_RAW_DRIVER_CBIDS=307"}},
        Case{"transformer_event_time",
             {"transformer", "--requests", "4", "--layers", "2", "--kernel-us", "200",
              "--event-time"},
             {}},
        Case{"graph_nodes", {"graph", "--nodes", "20", "--replays", "10"}, {}},
        Case{"graph_trace",
             {"graph", "--nodes", "20", "--replays", "10"},
             {"CUPTI_RAW_KINDS=default,graph_trace"}},
        Case{"driver_api", {"driver_api", "--launches", "10"}, {"CUPTI_RAW_KINDS=default,driver"}},
        Case{"exit_return", {"exit_styles", "--how=return", "--launches", "50"}, {}},
        Case{"subscribe_v2", {"vector_add"}, {"CUPTI_RAW_SUBSCRIBE=v2"}}),
    CaseName);

// What becomes of the program's nodes: clones (20) and new parameters (23). The driver makes and
// joins nodes of its own in between, in which the devices differ.
Lines ChangeLines(const Capture& capture) {
  Lines lines = CallbackLines(capture);
  std::erase_if(lines, [](const std::string& line) {
    return !line.starts_with("resource 20 ") && !line.starts_with("resource 23 ");
  });
  return lines;
}

// Captured, forked, explicit, child graph, clone, update, new parameters.
TEST(Graphs, NodesAreClonedAndChangedAsByTheRealOne) {
  const Capture real = LoadReal("graph_paths");
  const Capture fake = RecordOne({"graph_paths"}, {});
  ExpectSameLines(ChangeLines(real), ChangeLines(fake), "change of a node");
  EXPECT_GT(ChangeLines(real).size(), 15U);
}

class ManyThreads : public testing::TestWithParam<Case> {};

// Where threads race the counts are the same.
TEST_P(ManyThreads, RecordCountsAreTheRealOnes) {
  const Case& param = GetParam();
  std::map<std::string, int> real = RecordCounts(LoadReal(param.name));
  std::map<std::string, int> fake = RecordCounts(RecordOne(param.command, param.environment));
  // Two threads at once can both wait for the loading of one function.
  const char* const lazy_loading = "kind 17/327680 of 56 bytes";
  EXPECT_GE(real.at(lazy_loading), fake.at(lazy_loading));
  real.erase(lazy_loading);
  fake.erase(lazy_loading);
  EXPECT_EQ(real, fake);
}

INSTANTIATE_TEST_SUITE_P(
    Captures, ManyThreads,
    testing::Values(
        Case{"transformer_threads",
             With(kTransformer, {"--threads", "3"}),
             {"CUPTI_RAW_BUFFER_BYTES=16384"}},
        Case{"two_kernels_threads", {"two_kernels", "--mode=threads", "--launches", "100"}, {}},
        Case{"empty_launches",
             {"empty_launches", "--launches", "600", "--threads", "2", "--depth", "3"},
             {"CUPTI_RAW_BUFFER_BYTES=65536"}}),
    CaseName);

void ExpectSameProcesses(const Strings& real_names, const Strings& command) {
  std::vector<Capture> fakes = RecordFake(command);
  ASSERT_EQ(fakes.size(), real_names.size());
  // alpha first: the processes reach CUDA in any order.
  const auto alpha = [](const Capture& capture) {
    const Lines lines = RecordLines(capture);
    return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
      return line.ends_with("_Z12alpha_kernelPi");
    });
  };
  std::stable_partition(fakes.begin(), fakes.end(), alpha);
  for (size_t i = 0; i < fakes.size(); ++i) {
    const Capture real = LoadReal(real_names[i]);
    ExpectSameLines(CallbackLines(real), CallbackLines(fakes[i]), real_names[i] + " callback");
    ExpectSameLines(RecordLines(real), RecordLines(fakes[i]), real_names[i] + " record");
  }
}

TEST(Processes, ForkedBeforeCuda) {
  ExpectSameProcesses({"two_kernels_fork.540", "two_kernels_fork.541"},
                      {"two_kernels", "--mode=fork", "--launches", "20"});
}

TEST(Processes, ForkedAndExecuted) {
  ExpectSameProcesses({"two_kernels_exec.561", "two_kernels_exec.562"},
                      {"two_kernels-static", "--mode=exec", "--launches", "20"});
}

}  // namespace
}  // namespace xpu::fake_cuda_test
