#include "report/analysis/thin.h"

#include <algorithm>
#include <vector>

#include "format/base/number.h"
#include "format/base/text.h"
#include "report/analysis/filter.h"
#include "report/output/text.h"

namespace xpu {
namespace {

// Beyond it nothing would be left, and the products of counts stay far from 2^64.
constexpr uint64_t kMaxRate = 1'000'000;

// SplitMix64's last step: the numbers of neighbouring blocks have nothing in common.
uint64_t Scramble(uint64_t number) {
  number += 0x9e3779b97f4a7c15ull;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9ull;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebull;
  return number ^ (number >> 31);
}

// One of each `rate` things that are asked about one after the other.
class Chance {
 public:
  Chance(uint64_t rate, uint64_t seed) : rate_(rate), seed_(Scramble(seed)) {}

  bool Next() {
    const uint64_t block = asked_ / rate_;
    return asked_++ % rate_ == Scramble(seed_ ^ block) % rate_;
  }

 private:
  const uint64_t rate_;
  const uint64_t seed_;
  uint64_t asked_ = 0;
};

// Work goes with its call.
void ThinWork(uint64_t rate, Correlation& correlation) {
  Chance of_calls(rate, 1);
  std::vector<bool> keep;
  keep.reserve(correlation.launches.size());
  for (Launch& launch : correlation.launches) {
    launch.stands_for_others = of_calls.Next();
    keep.push_back(launch.stands_for_others);
  }
  Chance of_rest(rate, 2);
  std::erase_if(correlation.work, [&](const GpuWork& work) {
    return work.launch == GpuWork::kNoLaunch ? !of_rest.Next() : !keep[work.launch];
  });
  KeepLaunches(correlation, std::move(keep));
}

}  // namespace

Result<uint64_t> ParseSampleRate(std::string_view text) {
  const uint64_t rate =
      text.starts_with("1/") ? ParseNumber<uint64_t>(text.substr(2)).value_or(0) : 0;
  if (rate == 0 || rate > kMaxRate) {
    return Error{ErrorKind::kUsage, Format("'{}' is no part from 1/1 to 1/{}", text, kMaxRate),
                 "1/10 looks at one of 10"};
  }
  return rate;
}

std::string ThinOut(uint64_t rate, Analysis& analysis) {
  if (rate <= 1) return {};
  SampleList& samples = analysis.model.events.cpu_samples;
  const size_t all_samples = samples.size();
  const size_t all_work = analysis.correlation.work.size();
  Chance of_samples(rate, 0);
  std::erase_if(samples.rows(), [&](const CpuSample&) { return !of_samples.Next(); });
  ThinWork(rate, analysis.correlation);
  analysis.kept_of = rate;
  return Format("--sample 1/{}: {} of {} CPU samples, {} of {} GPU operations\n", rate,
                WithThousands(samples.size()), WithThousands(all_samples),
                WithThousands(analysis.correlation.work.size()), WithThousands(all_work));
}

}  // namespace xpu
