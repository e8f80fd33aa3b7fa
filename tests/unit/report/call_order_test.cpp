#include "report/ranks/call_order.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/durations.h"

namespace xpu {
namespace {

using test::kMs;
using test::kSecond;
using test::kUs;

constexpr uint32_t kReduce = 0, kGather = 1, kBroadcast = 2;

// A job whose collectives are known by their number.
class MadeJob {
 public:
  explicit MadeJob(uint32_t ranks) : ranks_(ranks), clocks_ns_(ranks) {
    calls_.kinds = {
        {.operation = "AllReduce"}, {.operation = "AllGather"}, {.operation = "Broadcast"}};
  }

  void SetClock(uint32_t rank, int64_t ahead_ns) { clocks_ns_[rank] = ahead_ns; }

  // Each rank arrives within `skew_ns`; of a broadcast, the root leaves before the others arrive.
  void Run(uint32_t kind, uint64_t skew_ns, uint64_t transfer_ns = 200 * kUs) {
    std::vector<uint64_t> arrivals;
    for (uint32_t rank = 0; rank < ranks_; ++rank) arrivals.push_back(now_ns_ + Noise(skew_ns));
    const uint64_t last_ns = *std::max_element(arrivals.begin(), arrivals.end());
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      const uint64_t end_ns = (kind == kBroadcast ? arrivals[rank] : last_ns) + transfer_ns;
      made_[rank].push_back({kind, arrivals[rank], end_ns + Noise(5 * kUs)});
    }
    now_ns_ = last_ns + transfer_ns;
  }
  void Wait(uint64_t ns) { now_ns_ += ns; }

  uint64_t Noise(uint64_t below) { return below == 0 ? 0 : random_() % below; }

  // The calls [from, to) of a rank that have records, but those of `lost`.
  CallList Recorded(uint32_t rank, size_t from, size_t to, const std::set<size_t>& lost = {}) {
    CallList list;
    for (size_t i = from; i < std::min(to, made_[rank].size()); ++i) {
      if (lost.contains(i)) continue;
      const Made& made = made_[rank][i];
      list.push_back(static_cast<uint32_t>(calls_.calls.size()));
      RankCall& call = calls_.calls.emplace_back();
      call.kind = made.kind;
      call.part.rank = rank;
      call.part.called_ns = made.start_ns + static_cast<uint64_t>(clocks_ns_[rank]);
      call.part.arrived_ns = call.part.called_ns;
      call.part.end_ns = made.end_ns + static_cast<uint64_t>(clocks_ns_[rank]);
      number_of_.push_back(i);
    }
    return list;
  }

  const RankCalls& calls() const { return calls_; }
  size_t size() const { return made_.at(0).size(); }

  // Of how many calls of all ranks but the first the collective is that of another call, or alone.
  struct Errors {
    size_t wrong = 0;
    size_t alone = 0;
  };
  Errors Check(const CallOrder& order) const {
    Errors errors;
    size_t before = 0;
    for (const CallOrder::Slot& slot : order.slots()) {
      const size_t number = number_of_[slot.calls.front()];
      for (const uint32_t call : slot.calls) errors.wrong += number_of_[call] != number ? 1 : 0;
      errors.alone += slot.calls.size() == 1 ? 1 : 0;
      EXPECT_GE(number, before);
      before = number;
    }
    return errors;
  }

 private:
  struct Made {
    uint32_t kind;
    uint64_t start_ns;
    uint64_t end_ns;
  };

  const uint32_t ranks_;
  std::vector<int64_t> clocks_ns_;
  RankCalls calls_;
  std::map<uint32_t, std::vector<Made>> made_;
  std::vector<size_t> number_of_;  // by call
  uint64_t now_ns_ = 1000 * kSecond;
  std::mt19937_64 random_{42};
};

// Steps of two reductions and a gather, some with a broadcast; every seventh step is long.
void Train(MadeJob& job, size_t steps) {
  for (size_t step = 0; step < steps; ++step) {
    job.Wait(3 * kMs + job.Noise(kMs) + (step % 7 == 3 ? 8 * kMs : 0));
    job.Run(kReduce, kMs);
    job.Run(kReduce, 100 * kUs);
    job.Wait(300 * kUs);
    job.Run(kGather, 50 * kUs);
    if (step % 10 == 9) job.Run(kBroadcast, 2 * kMs, 20 * kUs);
  }
}

class CallOrderTest : public testing::TestWithParam<uint32_t> {};

TEST_P(CallOrderTest, WindowsThatBeginApartAndLosses) {
  MadeJob job(GetParam());
  Train(job, 200);
  std::vector<CallList> lists;
  for (uint32_t rank = 0; rank < GetParam(); ++rank) {
    std::set<size_t> lost;
    for (size_t i = 0; rank % 3 == 1 && i < 7; ++i) lost.insert(250 + i + rank);
    lists.push_back(job.Recorded(rank, rank * 13 % 41, job.size() - rank * 5 % 17, lost));
  }
  CallOrder order(job.calls());
  for (const CallList& list : lists) EXPECT_TRUE(order.Add(list, {}, false));
  const MadeJob::Errors errors = job.Check(order);
  EXPECT_EQ(errors.wrong, 0u);
  // Only what other ranks had not recorded, or had lost, is alone.
  EXPECT_LE(errors.alone, 41u);
  EXPECT_LE(order.slots().size(), job.size());
}

// Clocks of hosts differ by up to milliseconds, more than collectives are apart.
TEST_P(CallOrderTest, ClocksThatDiffer) {
  MadeJob job(GetParam());
  Train(job, 200);
  CallOrder order(job.calls());
  std::vector<CallList> lists;
  for (uint32_t rank = 0; rank < GetParam(); ++rank) {
    job.SetClock(rank, rank == 0 ? 0 : static_cast<int64_t>(job.Noise(8 * kMs)) - int64_t{4 * kMs});
    lists.push_back(job.Recorded(rank, rank * 13 % 41, job.size()));
  }
  for (const CallList& list : lists) {
    EXPECT_TRUE(order.Add(list, {.ns = 1, .is_known = false}, false));
  }
  EXPECT_EQ(job.Check(order).wrong, 0u);
  EXPECT_EQ(order.slots().size(), job.size());
}

INSTANTIATE_TEST_SUITE_P(Ranks, CallOrderTest, testing::Values(2, 4, 64));

// Collectives that follow one another faster than clocks are exact are distinguished by their ends.
TEST(CallOrder, TightLoops) {
  MadeJob job(4);
  for (int i = 0; i < 400; ++i) {
    job.Run(kReduce, 5 * kUs, 20 * kUs);
    if (i % 100 == 99) job.Wait(kMs);
  }
  CallOrder order(job.calls());
  std::vector<CallList> lists;
  for (uint32_t rank = 0; rank < 4; ++rank) lists.push_back(job.Recorded(rank, rank * 9, 400));
  for (const CallList& list : lists) EXPECT_TRUE(order.Add(list, {}, false));
  EXPECT_EQ(job.Check(order).wrong, 0u);
  EXPECT_EQ(order.slots().size(), 400u);
}

TEST(CallOrder, CallsOfAnotherCommunicatorAreRefused) {
  MadeJob job(2);
  Train(job, 60);
  MadeJob other(2);
  other.Wait(kMs + 700 * kUs);
  for (int step = 0; step < 60; ++step) {
    other.Wait(4 * kMs);
    other.Run(kGather, 10 * kUs, 50 * kUs);
  }
  // The calls of both in one list of calls.
  RankCalls calls = job.calls();
  CallList first = job.Recorded(0, 0, job.size());
  calls = job.calls();
  CallList second = other.Recorded(1, 0, other.size());
  for (uint32_t& call : second) {
    calls.calls.push_back(other.calls().calls[call]);
    call = static_cast<uint32_t>(calls.calls.size() - 1);
  }
  CallOrder order(calls);
  EXPECT_TRUE(order.Add(first, {}, false));
  const size_t before = order.slots().size();
  EXPECT_FALSE(order.Add(second, {}, false));
  EXPECT_EQ(order.slots().size(), before);
  EXPECT_EQ(order.CountMatches(second, {}), 0u);
}

// Where all calls are known, a rank that calls another size than the others is still reported.
TEST(CallOrder, KnownCallsMayDiffer) {
  MadeJob job(2);
  job.Run(kReduce, kUs);
  RankCalls calls = job.calls();
  CallList one = job.Recorded(0, 0, 1);
  CallList other = job.Recorded(1, 0, 1);
  calls = job.calls();
  calls.kinds.push_back({.operation = "AllReduce", .bytes = 16});
  calls.calls[other.front()].kind = 3;
  CallOrder order(calls);
  EXPECT_TRUE(order.Add(one, {}, true));
  EXPECT_TRUE(order.Add(other, {}, true));
  EXPECT_EQ(order.slots().size(), 1u);
  CallOrder strict(calls);
  EXPECT_TRUE(strict.Add(one, {}, false));
  EXPECT_FALSE(strict.Add(other, {}, false));
}

}  // namespace
}  // namespace xpu
