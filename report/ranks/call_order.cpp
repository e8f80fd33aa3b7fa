#include "report/ranks/call_order.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "report/base/median.h"

namespace xpu {
namespace {

constexpr size_t kNoSlot = ~size_t{0};
// Clocks of two hosts do not move further apart in one second.
constexpr uint64_t kDriftNsPerSecond = 100'000;
// Clocks of hosts differ by no more, unless nobody set them.
constexpr uint64_t kFarthestClocksNs = 1'000'000'000;
constexpr size_t kMostCandidates = 4096;
constexpr size_t kMostClose = 32;  // candidates on one clock
constexpr size_t kSampled = 64;    // collectives that are compared to learn the error of a clock
constexpr size_t kComparedRun = 512;

uint64_t Absolute(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

// Times of damaged captures may be anything, so differences wrap.
int64_t Minus(uint64_t a, uint64_t b) { return static_cast<int64_t>(a - b); }
int64_t Minus(int64_t a, int64_t b) {
  return Minus(static_cast<uint64_t>(a), static_cast<uint64_t>(b));
}

uint64_t Shifted(uint64_t ns, int64_t shift_ns) { return ns + static_cast<uint64_t>(shift_ns); }

}  // namespace

// Finds the slot of each call of a list.
class CallOrder::Placing {
 public:
  // The fields of a call that decide its place.
  struct Entry {
    uint64_t arrived_ns;
    uint64_t end_ns;  // 0: its times are not known
    uint64_t called_ns;
    uint32_t kind;
    bool is_mutual;  // and has times
  };

  Placing(const CallOrder& order, std::span<const uint32_t> list, ClockError error)
      : order_(order), calls_(*order.calls_), slots_(order.slots_), error_(error) {
    // Calls of many ranks lie in one list, in order of time: each is fetched from memory once.
    entries_.reserve(list.size());
    for (const uint32_t i : list) {
      const RankCall& call = calls_.calls[i];
      entries_.push_back({call.part.arrived_ns, call.part.end_ns, call.part.called_ns, call.kind,
                          call.part.has_times() && IsMutual(calls_.kinds[call.kind].operation)});
    }
  }

  // Whether each call fits the slot of its own number. The same calls on all ranks fit whatever
  // their times are.
  bool InOrder() {
    const size_t count = std::min(entries_.size(), slots_.size());
    bool are_same = entries_.size() == slots_.size();
    for (size_t i = 0; i < count && are_same; ++i) are_same = IsSame(i, i);
    if (!error_.is_known) {
      std::vector<int64_t> distances = DistancesFrom(0, 0, false);
      if (!distances.empty()) shift_ns_ = MedianOf(distances);
    }
    places_.assign(entries_.size(), kNoSlot);
    if (!are_same && RunFrom(0, 0, count, false).length < count) return false;
    for (size_t i = 0; i < count; ++i) places_[i] = i;
    shifts_.push_back({0, shift_ns_});
    return true;
  }

  // Searches for stretches that fit, and begins anew after each loss of records. Returns false if
  // too little fits.
  bool Search() {
    const size_t to = entries_.size();
    places_.assign(to, kNoSlot);
    shifts_.clear();
    last_end_ns_ = 0;
    if (!error_.is_known && !FindShift()) return false;
    size_t next_slot = 0;
    size_t tried = 0;
    matched_ = 0;
    for (size_t i = 0; i < to;) {
      const size_t anchor = NextMutual(i, to);
      if (anchor == to) break;
      const size_t slot = BestFor(anchor, next_slot);
      if (IsWithin(anchor)) ++tried;
      if (slot == kNoSlot) {
        i = anchor + 1;
        continue;
      }
      // Calls before it that say nothing by their times belong to the slots before.
      size_t before = 0;
      while (anchor - before > i && slot - before > next_slot &&
             IsSame(anchor - before - 1, slot - before - 1)) {
        ++before;
      }
      shifts_.push_back({anchor - before, shift_ns_});
      const Run whole = RunFrom(anchor, slot, to - anchor, true, true);
      for (size_t k = 0; k < before + whole.length; ++k) {
        places_[anchor - before + k] = slot - before + k;
      }
      matched_ += whole.mutual;
      tried += whole.mutual - 1;
      next_slot = slot + whole.length;
      i = anchor + whole.length;
    }
    return matched_ > 0 && 2 * matched_ >= tried;
  }

  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<size_t>& places() const { return places_; }
  size_t matched() const { return matched_; }
  // Returns the correction of the times of a call of the list.
  int64_t ShiftAt(size_t i) const {
    int64_t shift_ns = shifts_.empty() ? shift_ns_ : shifts_.front().second;
    const auto after = std::upper_bound(
        shifts_.begin(), shifts_.end(), i,
        [](size_t at, const std::pair<size_t, int64_t>& one) { return at < one.first; });
    if (after != shifts_.begin()) shift_ns = std::prev(after)->second;
    return shift_ns;
  }

 private:
  // Calls that fit one after the other.
  struct Run {
    size_t length = 0;
    size_t mutual = 0;    // that have times, and end on no rank before all have begun
    uint64_t off_ns = 0;  // by how much their ends differ, added up
  };

  bool IsSame(size_t i, size_t slot) const { return entries_[i].kind == slots_[slot].kind; }
  bool IsTimed(size_t i) const { return entries_[i].is_mutual; }
  bool AreTimed(size_t i, size_t slot) const { return slots_[slot].has_times() && IsTimed(i); }

  size_t NextMutual(size_t i, size_t to) const {
    while (i < to && !IsTimed(i)) ++i;
    return i;
  }

  // While other ranks have calls: what is before or after says nothing.
  bool IsWithin(size_t i) const {
    return Shifted(entries_[i].end_ns, shift_ns_) >= order_.begin_ns_ &&
           Shifted(entries_[i].arrived_ns, shift_ns_) <= order_.end_ns_;
  }

  // Returns the time from the end of the call to that of the slot.
  int64_t Distance(size_t i, size_t slot) const {
    return Minus(slots_[slot].earliest_end_ns, entries_[i].end_ns);
  }

  bool Overlap(size_t i, size_t slot, uint64_t tolerance_ns) const {
    const auto tolerance = static_cast<int64_t>(tolerance_ns);
    const uint64_t start_ns = Shifted(entries_[i].arrived_ns, shift_ns_);
    return Minus(start_ns, slots_[slot].earliest_end_ns) <= tolerance &&
           !StartsAfter(i, slot, tolerance_ns);
  }
  // Whether some rank entered the slot after this call had ended.
  bool StartsAfter(size_t i, size_t slot, uint64_t tolerance_ns) const {
    const uint64_t end_ns = Shifted(entries_[i].end_ns, shift_ns_);
    return Minus(slots_[slot].latest_start_ns, end_ns) > static_cast<int64_t>(tolerance_ns);
  }

  // Follows clocks that drift apart, where the run is `kept`.
  Run RunFrom(size_t i, size_t slot, size_t most, bool same_kinds, bool is_kept = false) {
    const int64_t first_shift_ns = shift_ns_;
    Run run;
    uint64_t before_ns = last_end_ns_;
    for (; run.length < most && i < entries_.size() && slot < slots_.size(); ++i, ++slot) {
      if (same_kinds && !IsSame(i, slot)) break;
      if (AreTimed(i, slot)) {
        const uint64_t tolerance_ns = ToleranceNs(i, before_ns);
        if (!Overlap(i, slot, tolerance_ns)) break;
        const int64_t off_ns = Minus(Distance(i, slot), shift_ns_);
        run.off_ns += std::min<uint64_t>(Absolute(off_ns), uint64_t{1} << 40);
        ++run.mutual;
        // A rank that was held up by something else says little: clocks drift slowly.
        if (follows()) {
          const auto most_ns = static_cast<int64_t>(tolerance_ns);
          shift_ns_ += std::clamp(off_ns, -most_ns, most_ns) / 8;
          if (is_kept) shifts_.push_back({i + 1, shift_ns_});
        }
        before_ns = entries_[i].end_ns;
      }
      ++run.length;
    }
    if (is_kept) {
      last_end_ns_ = before_ns;
    } else {
      shift_ns_ = first_shift_ns;
    }
    return run;
  }
  // Clocks may have drifted since the call before.
  uint64_t ToleranceNs(size_t i, uint64_t before_ns) const {
    uint64_t tolerance_ns = kClockToleranceNs + error_.ns;
    if (!follows() || before_ns == 0) return tolerance_ns;
    const uint64_t since_ns = entries_[i].end_ns - std::min(entries_[i].end_ns, before_ns);
    return tolerance_ns + since_ns / 1'000'000'000 * kDriftNsPerSecond;
  }
  bool follows() const { return !error_.is_known || error_.ns != 0; }

  // Returns the slot that the call belongs to with the calls after it; kNoSlot: it has none.
  size_t BestFor(size_t anchor, size_t next_slot) {
    const uint64_t tolerance_ns = ToleranceNs(anchor, last_end_ns_);
    const uint64_t start_ns = Shifted(entries_[anchor].arrived_ns, shift_ns_);
    const std::vector<uint64_t>& ended_ns = order_.ended_ns_;
    const auto from = std::partition_point(
        ended_ns.begin() + static_cast<ptrdiff_t>(next_slot), ended_ns.end(),
        [&](uint64_t ns) { return Minus(start_ns, ns) > static_cast<int64_t>(tolerance_ns); });
    size_t best = kNoSlot;
    Run best_run;
    size_t candidates = 0;
    for (auto slot = static_cast<size_t>(from - ended_ns.begin());
         slot < slots_.size() && candidates < kMostClose; ++slot) {
      if (!slots_[slot].has_times()) continue;
      if (StartsAfter(anchor, slot, tolerance_ns)) break;
      if (!IsSame(anchor, slot) || !Overlap(anchor, slot, tolerance_ns)) continue;
      ++candidates;
      const Run run = RunFrom(anchor, slot, kComparedRun, true);
      if (best != kNoSlot && !IsBetter(run, best_run)) continue;
      best = slot;
      best_run = run;
    }
    return best;
  }

  // The longer one, of similar ones the one whose ends differ less.
  static bool IsBetter(const Run& a, const Run& b) {
    const size_t enough = std::min<size_t>(std::max(a.mutual, b.mutual), kSampled);
    const bool a_is_long = a.mutual >= enough;
    const bool b_is_long = b.mutual >= enough;
    if (a_is_long != b_is_long) return a_is_long;
    return a.off_ns / std::max<size_t>(a.mutual, 1) < b.off_ns / std::max<size_t>(b.mutual, 1);
  }

  std::vector<int64_t> DistancesFrom(size_t i, size_t slot, bool same_kinds) const {
    std::vector<int64_t> distances;
    for (; i < entries_.size() && slot < slots_.size() && distances.size() < kSampled;
         ++i, ++slot) {
      if (same_kinds && !IsSame(i, slot)) return {};
      if (AreTimed(i, slot)) distances.push_back(Distance(i, slot));
    }
    return distances;
  }

  // Finds by how much the clocks of two hosts differ, as wall clocks have them: of the differences
  // with which a stretch fits, the smallest.
  bool FindShift() {
    std::optional<int64_t> best;
    const size_t anchor = NextMutual(0, entries_.size());
    if (anchor == entries_.size()) return false;
    size_t candidates = 0;
    const auto try_pair = [&](size_t i, size_t slot) {
      std::vector<int64_t> distances = DistancesFrom(i, slot, true);
      if (distances.empty()) return;
      const int64_t median = MedianOf(distances);
      if (best && Absolute(*best) <= Absolute(median)) return;
      std::vector<uint64_t> off;
      for (const int64_t distance : distances) off.push_back(Absolute(Minus(distance, median)));
      if (MedianOf(off) <= kClockToleranceNs) best = median;
    };
    for (size_t slot = 0; slot < slots_.size() && candidates < kMostCandidates; ++slot) {
      if (!slots_[slot].has_times() || !IsSame(anchor, slot)) continue;
      if (Absolute(Distance(anchor, slot)) > kFarthestClocksNs) continue;
      ++candidates;
      try_pair(anchor, slot);
    }
    // The list may begin before the slots do.
    const auto first = static_cast<size_t>(
        std::find_if(slots_.begin(), slots_.end(),
                     [&](const Slot& slot) {
                       return slot.has_times() && IsMutual(calls_.kinds[slot.kind].operation);
                     }) -
        slots_.begin());
    for (size_t i = anchor + 1;
         first < slots_.size() && i < entries_.size() && candidates < 2 * kMostCandidates; ++i) {
      if (!IsTimed(i) || !IsSame(i, first)) continue;
      if (Absolute(Distance(i, first)) > kFarthestClocksNs) continue;
      ++candidates;
      try_pair(i, first);
    }
    if (best) shift_ns_ = *best;
    return best.has_value();
  }

  const CallOrder& order_;
  const RankCalls& calls_;
  const std::vector<Slot>& slots_;
  std::vector<Entry> entries_;
  const ClockError error_;
  int64_t shift_ns_ = 0;
  std::vector<std::pair<size_t, int64_t>> shifts_;  // from which call on
  std::vector<size_t> places_;
  size_t matched_ = 0;
  uint64_t last_end_ns_ = 0;  // of the last call that has a place
};

bool CallOrder::Add(const CallList& list, ClockError error, bool is_numbered) {
  Placing placing(*this, list, error);
  if (!slots_.empty() && !(is_numbered && placing.InOrder()) && !placing.Search()) return false;
  Insert(list, placing);
  return true;
}

size_t CallOrder::CountMatches(const CallList& list, ClockError error) const {
  constexpr size_t kEnough = 2048;
  const auto begin =
      !error.is_known
          ? list.begin()
          : std::partition_point(list.begin(), list.end(), [&](uint32_t i) {
              return calls_->calls[i].part.end_ns + error.ns + kClockToleranceNs < begin_ns_;
            });
  const std::span<const uint32_t> rest(begin, list.end());
  Placing placing(*this, rest.first(std::min(rest.size(), kEnough)), error);
  return placing.Search() ? placing.matched() : 0;
}

// Calls without a slot get one, between those of the calls before and after them, in order of time.
void CallOrder::Insert(const CallList& list, const Placing& placing) {
  std::vector<size_t> places = placing.places();
  places.resize(list.size(), kNoSlot);
  std::vector<size_t> next_place(list.size(), slots_.size());  // of the calls after each
  for (size_t i = list.size(); i-- > 1;) {
    next_place[i - 1] = places[i] == kNoSlot ? next_place[i] : places[i];
  }
  std::vector<Slot> merged;
  merged.reserve(std::max(slots_.size(), list.size()));
  size_t next = 0;
  const auto move_until = [&](size_t slot) {
    for (; next < slot; ++next) merged.push_back(std::move(slots_[next]));
  };
  for (size_t i = 0; i < list.size(); ++i) {
    const Placing::Entry& entry = placing.entries()[i];
    const int64_t shift_ns = placing.ShiftAt(i);
    const auto put = [&](Slot& slot) {
      if (slot.calls.empty()) slot.called_ns = Shifted(entry.called_ns, shift_ns);
      slot.calls.push_back(list[i]);
      if (entry.end_ns == 0) return;
      const uint64_t start_ns = Shifted(entry.arrived_ns, shift_ns);
      const uint64_t end_ns = Shifted(entry.end_ns, shift_ns);
      const bool is_first = !slot.has_times();
      slot.latest_start_ns = is_first ? start_ns : std::max(slot.latest_start_ns, start_ns);
      slot.earliest_end_ns = is_first ? end_ns : std::min(slot.earliest_end_ns, end_ns);
    };
    if (places[i] != kNoSlot) {
      move_until(places[i] + 1);
      put(merged.back());
      continue;
    }
    Slot slot{.kind = entry.kind};
    put(slot);
    while (next < next_place[i] && slots_[next].called_ns <= slot.called_ns) move_until(next + 1);
    merged.push_back(std::move(slot));
  }
  move_until(slots_.size());
  slots_ = std::move(merged);
  ended_ns_.clear();
  begin_ns_ = ~uint64_t{0};
  end_ns_ = 0;
  for (const Slot& slot : slots_) {
    ended_ns_.push_back(end_ns_ = std::max(end_ns_, slot.earliest_end_ns));
    if (slot.has_times()) begin_ns_ = std::min(begin_ns_, slot.latest_start_ns);
  }
}

}  // namespace xpu
