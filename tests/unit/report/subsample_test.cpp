// What is lost must change nothing else: every 7th event of a kind is taken out of real captures,
// and every other attribution has to stay exactly as it was.
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "report/model/load.h"
#include "report/model/loaded_events.h"
#include "report/trace/trace.h"
#include "tests/unit/tests_directory.h"

namespace xpu {
namespace {

using WorkKey = std::tuple<WorkKind, uint64_t, uint32_t, uint64_t>;
// Launch call and stack of one GPU record, as far as they are known.
struct Attribution {
  bool has_call = false;
  bool has_stack = false;
  uint32_t callback_id = 0;
  uint32_t stack = 0;
};

std::map<WorkKey, Attribution> Attributions(Model model) {
  const Trace trace(std::move(model));
  const Correlation& correlation = trace.correlation;
  std::map<WorkKey, Attribution> result;
  for (const GpuWork& work : correlation.work) {
    Attribution& to = result[{work.kind, work.instance.value, work.correlation_id, work.start_ns}];
    if (work.launch == GpuWork::kNoLaunch) continue;
    const Launch& launch = correlation.launches[work.launch];
    to = {launch.has_call, launch.has_stack, launch.callback_id, launch.stack.value};
  }
  return result;
}

template <typename List>
void DropEverySeventh(List& events) {
  List kept;
  for (size_t i = 0; i < events.size(); ++i) {
    if (i % 7 != 6) kept.push_back(events[i]);
  }
  events = std::move(kept);
}

class SubsampleTest : public testing::TestWithParam<std::string> {
 protected:
  Model Load() {
    auto model = LoadCapture(TestsDirectory() + "/captures/" + GetParam());
    EXPECT_TRUE(model.ok());
    OrderByTime(model->events);
    return std::move(model).value();
  }
};

TEST_P(SubsampleTest, LostStacksTakeNothingElseAway) {
  const auto whole = Attributions(Load());
  Model model = Load();
  DropEverySeventh(model.events.launch_stacks);
  size_t lost = 0;
  for (const auto& [key, thin] : Attributions(std::move(model))) {
    const Attribution& full = whole.at(key);
    EXPECT_EQ(thin.has_call, full.has_call);
    EXPECT_EQ(thin.callback_id, full.callback_id);
    if (thin.has_stack) {
      EXPECT_EQ(thin.stack, full.stack);
    }
    lost += full.has_stack && !thin.has_stack;
  }
  EXPECT_GT(lost, 0u);
  EXPECT_LE(lost, whole.size() / 7 + 1 + whole.size() / 20);  // a graph replay may have no record
}

TEST_P(SubsampleTest, LostKernelsTakeNothingElseAway) {
  const auto whole = Attributions(Load());
  Model model = Load();
  DropEverySeventh(model.events.kernels);
  DropEverySeventh(model.events.memcpys);
  const auto thinned = Attributions(std::move(model));
  EXPECT_LT(thinned.size(), whole.size());
  for (const auto& [key, thin] : thinned) {
    const Attribution& full = whole.at(key);
    EXPECT_EQ(thin.has_call, full.has_call);
    EXPECT_EQ(thin.has_stack, full.has_stack);
    EXPECT_EQ(thin.stack, full.stack);
  }
}

TEST_P(SubsampleTest, LostCallsTakeNothingElseAway) {
  const auto whole = Attributions(Load());
  Model model = Load();
  DropEverySeventh(model.events.api_calls);
  for (const auto& [key, thin] : Attributions(std::move(model))) {
    const Attribution& full = whole.at(key);
    EXPECT_EQ(thin.has_stack, full.has_stack);
    EXPECT_EQ(thin.stack, full.stack);
  }
}

INSTANTIATE_TEST_SUITE_P(RealCaptures, SubsampleTest,
                         testing::Values("transformer.xpu", "transformer-static.xpu",
                                         "two_kernels_threads.xpu", "two_kernels_fork.xpu",
                                         "pytorch_mlp.xpu"),
                         [](const auto& each) {
                           std::string name = each.param.substr(0, each.param.find('.'));
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace xpu
