#include "report/ranks/collectives.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

namespace xpu {
namespace {

// The calls of one rank in one communicator, in order.
using CallList = std::vector<RankCall>;

// One list has all calls; in another one, some are missing, because a part of its capture is. Which
// ones, is found by when the collectives ended, which is about the same on all ranks, up to the
// distance of the clocks, which changes slowly.
class Alignment {
 public:
  Alignment(const CallList& all, const CallList& some) : all_(all), some_(some) {}

  // The place in `all` of each of `some`.
  std::vector<size_t> Find() {
    std::vector<size_t> places;
    const size_t missing = all_.size() - some_.size();
    size_t skipped = 0;
    for (size_t i = 0; i < some_.size(); ++i) {
      skipped = Best(i, skipped, missing);
      places.push_back(i + skipped);
      const std::optional<int64_t> distance = Distance(i, i + skipped);
      if (distance) distance_ns_ = *distance;
    }
    return places;
  }

 private:
  std::optional<int64_t> Distance(size_t some, size_t all) const {
    if (some_[some].part.end_ns == 0 || all_[all].part.end_ns == 0) return std::nullopt;
    return static_cast<int64_t>(some_[some].part.end_ns - all_[all].part.end_ns);
  }
  static uint64_t Absolute(int64_t value) {
    return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  }

  size_t Best(size_t i, size_t skipped, size_t missing) const {
    size_t best = skipped;
    uint64_t best_ns = ~uint64_t{0};
    const size_t most = std::min(missing, skipped + kMostAtOnce);
    for (size_t skip = skipped; skip <= most; ++skip) {
      const RankCall& other = all_[i + skip];
      if (other.operation != some_[i].operation || other.bytes != some_[i].bytes) continue;
      const std::optional<int64_t> distance = Distance(i, i + skip);
      if (!distance) {
        if (best_ns == ~uint64_t{0}) best = skip;
        break;
      }
      const uint64_t off_ns = Absolute(static_cast<int64_t>(static_cast<uint64_t>(*distance) -
                                                            static_cast<uint64_t>(distance_ns_)));
      if (off_ns >= best_ns) {
        if (*distance < distance_ns_) break;  // those that follow end later still
        continue;
      }
      best_ns = off_ns;
      best = skip;
    }
    return best;
  }

  // More are not looked for.
  static constexpr size_t kMostAtOnce = 16384;

  const CallList& all_;
  const CallList& some_;
  int64_t distance_ns_ = 0;
};

void Measure(Collective& collective) {
  std::vector<CollectivePart>& parts = collective.parts;
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const CollectivePart& a, const CollectivePart& b) { return a.rank < b.rank; });
  for (size_t i = 0; i < parts.size(); ++i) {
    const CollectivePart& part = parts[i];
    if (!part.has_times()) continue;
    const bool is_first = collective.arrived++ == 0;
    collective.end_ns = std::max(collective.end_ns, part.end_ns);
    if (is_first || part.arrived_ns < collective.first_arrival_ns) {
      collective.first_arrival_ns = part.arrived_ns;
    }
    if (is_first) {
      collective.last_arrival_ns = collective.second_last_arrival_ns = part.arrived_ns;
      collective.last = i;
    } else if (part.arrived_ns > collective.last_arrival_ns) {
      collective.second_last_arrival_ns = collective.last_arrival_ns;
      collective.last_arrival_ns = part.arrived_ns;
      collective.last = i;
    } else if (collective.arrived == 2) {
      collective.second_last_arrival_ns = part.arrived_ns;
    } else {
      collective.second_last_arrival_ns =
          std::max(collective.second_last_arrival_ns, part.arrived_ns);
    }
  }
  // Clocks of hosts that are off may have the last one arrive after the end.
  collective.end_ns = std::max(collective.end_ns, collective.last_arrival_ns);
  collective.ranks =
      std::max<uint32_t>(collective.ranks, static_cast<uint32_t>(collective.parts.size()));
}

class Matcher {
 public:
  explicit Matcher(const Trace& trace) : trace_(trace), calls_(FindRankCalls(trace)) {}

  Collectives Match() {
    // The calls of each rank, by communicator.
    std::map<std::pair<CollectiveMatch, uint64_t>, std::map<uint32_t, CallList>> communicators;
    for (RankCall& call : calls_.calls) {
      communicators[{call.match, call.communicator}][call.part.rank].push_back(std::move(call));
    }
    for (auto& [key, lists] : communicators) MatchOne(key.first, key.second, lists);
    for (Collective& collective : found_.all) Measure(collective);
    std::stable_sort(found_.all.begin(), found_.all.end(),
                     [](const Collective& a, const Collective& b) {
                       if ((a.arrived == 0) != (b.arrived == 0)) return b.arrived == 0;
                       return a.first_arrival_ns < b.first_arrival_ns;
                     });
    found_.unmatched_kernels = calls_.unmatched_kernels;
    found_.point_to_point = calls_.point_to_point;
    return std::move(found_);
  }

 private:
  // The list with the most calls: on the same host, whose clock is the same, if it is complete.
  const CallList& ReferenceFor(uint32_t rank, const std::map<uint32_t, CallList>& lists) const {
    const CallList* longest = nullptr;
    for (const auto& [other, list] : lists) {
      if (longest == nullptr || list.size() > longest->size()) longest = &list;
    }
    for (const auto& [other, list] : lists) {
      const bool is_neighbor = trace_.job.ranks()[other].host == trace_.job.ranks()[rank].host;
      if (is_neighbor && list.size() == longest->size()) return list;
    }
    return *longest;
  }

  void MatchOne(CollectiveMatch match, uint64_t communicator,
                const std::map<uint32_t, CallList>& lists) {
    const size_t begin = found_.all.size();
    size_t count = 0;
    for (const auto& [rank, list] : lists) count = std::max(count, list.size());
    uint32_t ranks = 0;
    if (const auto known = calls_.sizes.find(communicator);
        match == CollectiveMatch::kByNvtx && known != calls_.sizes.end()) {
      ranks = known->second;
    }
    for (size_t i = 0; i < count; ++i) {
      Collective& collective = found_.all.emplace_back();
      collective.communicator = communicator;
      collective.sequence = i;
      collective.match = match;
      collective.ranks = ranks;
    }
    for (const auto& [rank, list] : lists) {
      const CallList& reference = ReferenceFor(rank, lists);
      std::vector<size_t> places;
      if (list.size() < reference.size()) places = Alignment(reference, list).Find();
      for (size_t i = 0; i < list.size(); ++i) {
        Add(list[i], found_.all[begin + (places.empty() ? i : places[i])]);
      }
    }
  }

  static void Add(const RankCall& call, Collective& collective) {
    if (collective.parts.empty()) {
      collective.operation = call.operation;
      collective.reduction = call.reduction;
      collective.bytes = call.bytes;
    } else if (collective.operation != call.operation || collective.bytes != call.bytes) {
      collective.agrees = false;
    }
    collective.parts.push_back(call.part);
  }

  const Trace& trace_;
  RankCalls calls_;
  Collectives found_;
};

}  // namespace

bool MayHaveCollectives(const Model& model) {
  std::unordered_set<StringId> seen;
  const KernelList& kernels = model.events.kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const StringId name = kernels.Get<&Kernel::name>(i);
    if (seen.insert(name).second && IsNcclKernel(model.Text(name))) return true;
  }
  return false;
}

Collectives FindCollectives(const Trace& trace) { return Matcher(trace).Match(); }

}  // namespace xpu
