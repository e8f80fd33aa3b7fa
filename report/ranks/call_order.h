// The calls of one communicator on all its ranks, as one order: which of them are one collective.
//
// Ranks make the same calls in the same order, but a recording may begin on each rank at another
// one, and records may be lost. What must be true decides: an all-reduce ends on no rank before it
// has begun on all of them, and collectives of one kind follow one another on each rank. Of several
// ways in which this holds the one counts whose ends differ least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/ranks/rank_calls.h"

namespace xpu {

// Clocks of one host differ by less, and so do the ends of one collective on different ranks.
inline constexpr uint64_t kClockToleranceNs = 100'000;

// Calls of one rank, in its order: places in RankCalls::calls.
using CallList = std::vector<uint32_t>;

class CallOrder {
 public:
  explicit CallOrder(const RankCalls& calls) : calls_(&calls) {}

  // How far the clock of a rank may be off from those of the ranks before it.
  struct ClockError {
    uint64_t ns = 0;
    bool is_known = true;  // otherwise it is anything up to seconds, nearly the same all the time
  };

  // Adds the calls of a further rank. false: they cannot be those of this communicator, and nothing
  // is added. `is_numbered`: the calls of this rank and those before are recorded from the first
  // on, so that the n-th ones belong together. Then ranks may disagree about what they call, unless
  // their times say that records are lost.
  bool Add(const CallList& list, ClockError error, bool is_numbered);

  // How many calls of the list, which all have times, would find their place: of the first of them
  // while others have calls.
  size_t CountMatches(const CallList& list, ClockError error) const;

  struct Slot {
    uint32_t kind = 0;  // in RankCalls::kinds
    // On the clock of the first rank; both are 0 if none of the calls has times.
    uint64_t latest_start_ns = 0;
    uint64_t earliest_end_ns = 0;
    uint64_t called_ns = 0;
    CallList calls = {};

    bool has_times() const { return earliest_end_ns != 0; }
  };
  // In order.
  const std::vector<Slot>& slots() const { return slots_; }

 private:
  class Placing;

  void Insert(const CallList& list, const Placing& placing);

  const RankCalls* calls_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> ended_ns_;    // the latest end of the slots up to each
  uint64_t begin_ns_ = ~uint64_t{0};  // of those with times
  uint64_t end_ns_ = 0;
};

}  // namespace xpu
