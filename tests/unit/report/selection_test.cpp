#include "report/trace/selection.h"

#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "report/analysis/analysis.h"
#include "report/analysis/filter.h"
#include "report/base/event_set.h"
#include "report/model/load.h"
#include "tests/unit/report/report_testing.h"
#include "tests/unit/tests_directory.h"

namespace xpu {
namespace {

std::vector<uint32_t> PlacesOf(const EventSet& set, size_t size) {
  const std::vector<int> list(size);
  const auto places = Selected(list, set).places();
  return {places.begin(), places.end()};
}

TEST(EventSetTest, AllUnlessRestricted) {
  const EventSet all;
  EXPECT_TRUE(all.is_all());
  EXPECT_TRUE(all.Has(1'000'000));
  EXPECT_EQ(all.Count(3), 3u);
  EXPECT_EQ(PlacesOf(all, 3), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(PlacesOf(all, 0), (std::vector<uint32_t>{}));
}

TEST(EventSetTest, NoneThenThoseThatAreAdded) {
  EventSet set = EventSet::None();
  EXPECT_EQ(PlacesOf(set, 500), (std::vector<uint32_t>{}));
  for (const size_t place : {64u, 300u, 63u, 0u, 64u}) set.Add(place);
  EXPECT_EQ(PlacesOf(set, 500), (std::vector<uint32_t>{0, 63, 64, 300}));
  EXPECT_EQ(set.Count(500), 4u);
  EXPECT_FALSE(set.Has(1));
  EXPECT_FALSE(set.Has(100'000));
}

TEST(EventSetTest, ThoseThatAreWanted) {
  for (const size_t size : {0, 1, 63, 64, 65, 128, 1000}) {
    for (const size_t each : {1, 2, 64, 999}) {
      const EventSet set = EventSet::Where(size, [&](size_t i) { return i % each == 0; });
      std::vector<uint32_t> wanted;
      for (uint32_t i = 0; i < size; i += static_cast<uint32_t>(each)) wanted.push_back(i);
      EXPECT_EQ(PlacesOf(set, size), wanted) << size << " " << each;
      EXPECT_EQ(set.Count(size), wanted.size());
    }
  }
}

TEST(SelectedTest, EventsInTheOrderOfTheirList) {
  const std::vector<int> list = {10, 11, 12, 13};
  EventSet set = EventSet::None();
  set.Add(3);
  set.Add(1);
  const Selected selected(list, set);
  EXPECT_EQ(std::vector<int>(selected.begin(), selected.end()), (std::vector<int>{11, 13}));
  EXPECT_EQ(selected.front(), 11);
  EXPECT_EQ(&selected.front(), &list[1]);
  EXPECT_EQ(selected.FirstFrom(2), 3u);
  EXPECT_EQ(selected.FirstFrom(4), 4u);
}

// What selects cannot change what it selects from.
static_assert(std::is_const_v<std::remove_reference_t<decltype(Trace::model)>>);
static_assert(std::is_const_v<decltype(Trace::correlation)>);
static_assert(std::is_const_v<decltype(Trace::nvtx)>);
static_assert(std::is_const_v<std::remove_reference_t<decltype(Analysis::model)>>);
static_assert(std::is_const_v<std::remove_reference_t<decltype(Analysis::correlation)>>);
static_assert(std::is_const_v<std::remove_reference_t<decltype(Analysis::nvtx)>>);

class SideBySideTest : public testing::TestWithParam<std::string> {
 protected:
  static Analysis Load() {
    return Analysis(LoadCapture(TestsDirectory() + "/captures/" + GetParam()).value());
  }
  static std::vector<FilterOptions> Filters() {
    constexpr uint64_t kMs = 1'000'000;
    std::vector<FilterOptions> filters(6);
    filters[1].kernel = "gemm|v";
    filters[2].time = {.start_ns = 100 * kMs, .end_ns = 400 * kMs};
    filters[3].api = "Memcpy";
    filters[3].time = {.start_ns = 200 * kMs};
    filters[4].streams = {7};
    filters[5].nvtx = ".";
    return filters;
  }
  // Every view of a part.
  static std::string Views(Analysis& analysis) {
    std::string notes;
    std::string text = test::Written([&](Output& output) {
      WriteSummary(analysis, {}, output);
      for (const TreeMode mode : {TreeMode::kCpuAndGpu, TreeMode::kIdle}) {
        WriteFolded(analysis, {.tree = {.mode = mode}, .unit = TimeUnit::kNanoseconds}, output,
                    notes);
      }
      WriteTop(analysis, {.rows = 0, .format = TableFormat::kCsv, .table = {}, .sort = {}}, output);
      WriteChromeTrace(analysis, {}, output, notes);
      WriteScript(analysis, {}, output);
    });
    return text + notes;
  }
};

// All are selected before any is shown, and then shown by turns. The whole comes first: which files
// lack names is found out once for all parts of a trace, and views report it.
TEST_P(SideBySideTest, PartsOfOneTraceAreThoseOfTracesOfTheirOwn) {
  Analysis whole = Load();
  Views(whole);
  std::vector<Analysis> parts;
  for (const FilterOptions& filter : Filters()) {
    Analysis& part = parts.emplace_back(whole);
    part.shown = SelectPart(filter, whole).value();
    SelectOneOf(filter.empty() ? 3 : 1, part.trace(), part.shown);
  }
  EXPECT_EQ(&parts.front().model, &parts.back().model);
  std::vector<std::string> expected;
  for (size_t i = 0; i < parts.size(); ++i) {
    Analysis alone = Load();
    Views(alone);
    alone.shown = SelectPart(Filters()[i], alone).value();
    SelectOneOf(i == 0 ? 3 : 1, alone.trace(), alone.shown);
    expected.push_back(Views(alone));
  }
  for (const bool again : {false, true}) {
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_EQ(Views(parts[i]), expected[i]) << i << again;
    }
  }
}

TEST_P(SideBySideTest, TheTraceIsAsItWas) {
  Analysis whole = Load();
  const std::string before = Views(whole);
  for (const FilterOptions& filter : Filters()) {
    Analysis part = whole;
    part.shown = SelectPart(filter, whole).value();
    Views(part);
  }
  EXPECT_EQ(Views(whole), before);
}

// Sanitizers make a minute of the last two.
#ifdef XPU_SANITIZED
const auto kCaptures = testing::Values("transformer.xpu", "nvtx_ranges.xpu");
#else
const auto kCaptures =
    testing::Values("transformer.xpu", "nvtx_ranges.xpu", "copies.xpu", "pytorch_mlp.xpu");
#endif
INSTANTIATE_TEST_SUITE_P(RealCaptures, SideBySideTest, kCaptures, [](const auto& each) {
  return each.param.substr(0, each.param.find('.'));
});

}  // namespace
}  // namespace xpu
