#include "report/workload/recurrence.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

namespace xpu {
namespace {

// Fewer repetitions are no loop.
constexpr size_t kFewest = 4;
// So much of what lies between the first and the last visit of a site is in regular windows.
constexpr double kCovered = 0.6;
// An outer loop has at least so many rounds, and each at most so many of an inner one.
constexpr size_t kOuterRounds = 8;
constexpr size_t kMostInner = 130;
constexpr uint64_t kLongestRoundNs = 10'000'000'000;
constexpr size_t kMostCuts = 64;
// Windows of at least so many launches are alike if they have nearly as many.
constexpr size_t kManyLaunches = 20;
constexpr size_t kAlikePart = 20;

uint64_t Scramble(uint64_t number) {
  number = (number + 1) * 0x9e3779b97f4a7c15ull;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9ull;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebull;
  return number ^ (number >> 31);
}

// A site that cuts the sequence into windows.
struct Cut {
  uint32_t site = 0;
  size_t windows = 0;
  uint64_t mode = 0;      // what the launches of most windows add up to
  size_t mode_begin = 0;  // of one such window
  size_t length = 0;      // of such a window
  size_t alike = 0;       // launches in windows like it
  double covered = 0;     // their part of all from the first visit to the last
};

class Search {
 public:
  Search(std::span<const SiteVisit> visits, std::span<const SitePath> paths)
      : visits_(visits),
        paths_(paths),
        places_(paths.size()),
        sums_(visits.size() + 1),
        ranks_(paths.size()) {
    for (size_t i = 0; i < visits.size(); ++i) {
      places_[visits[i].site].push_back(i);
      sums_[i + 1] = sums_[i] + Scramble(visits[i].site);
    }
    std::vector<uint32_t> order(paths.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return paths[a].callers < paths[b].callers; });
    for (uint32_t i = 0; i < order.size(); ++i) ranks_[order[i]] = i;
  }

  std::optional<Cut> BestCut() {
    std::vector<Cut> cuts;
    for (uint32_t site = 0; site < places_.size(); ++site) {
      if (places_[site].size() <= kFewest) continue;
      const Cut cut = CutAt(site);
      if (cut.covered >= kCovered) cuts.push_back(cut);
    }
    // A loop that fills the GPU's memory at the start is none of steps.
    size_t most = 0;
    for (const Cut& cut : cuts) most = std::max(most, cut.alike);
    std::erase_if(cuts, [most](const Cut& cut) { return cut.alike < most / 2; });
    // The shortest first; of those of one loop the one that is there in most of its rounds.
    std::sort(cuts.begin(), cuts.end(), [this](const Cut& a, const Cut& b) {
      return std::tuple(a.length, b.covered, b.windows, places_[a.site].front()) <
             std::tuple(b.length, a.covered, a.windows, places_[b.site].front());
    });
    // One of each length; a hostile capture may have any number of loops.
    const auto has_length = [](const Cut& a, const Cut& b) { return a.length == b.length; };
    cuts.erase(std::unique(cuts.begin(), cuts.end(), has_length), cuts.end());
    cuts.resize(std::min(cuts.size(), kMostCuts));
    std::optional<Cut> best;
    for (const Cut& cut : cuts) {
      if (!best || IsOuter(*best, cut)) best = cut;
    }
    return best;
  }

  Recurrence RoundsOf(const Cut& cut, std::optional<uint32_t> first) {
    Recurrence found;
    found.launches = cut.length;
    const size_t back = BackOf(cut, first, found.begins_by_code);
    const std::vector<size_t>& at = places_[cut.site];
    const uint32_t begin_site = visits_[cut.mode_begin + (cut.length - back) % cut.length].site;
    std::vector<size_t> begins;
    for (size_t i = 0; i < at.size(); ++i) {
      const size_t lowest = i == 0 ? 0 : at[i - 1] + (back > 0 ? 1 : 0);
      begins.push_back(BeginOf(at[i], lowest, back, begin_site));
    }
    const bool is_first_whole = visits_[begins.front()].site == begin_site;
    if (!is_first_whole) begins.front() = at.front();
    PrependRounds(cut, is_first_whole, begins);
    if (found.begins_by_code) AppendRounds(begin_site, begins);
    for (size_t i = 0; i < begins.size(); ++i) {
      const bool is_last = i + 1 == begins.size();
      const size_t end = is_last ? EndOfLast(begins.front(), begins[i]) : begins[i + 1];
      found.rounds.push_back(RoundOf(begins[i], end, cut));
      found.regular += found.rounds.back().is_regular ? 1 : 0;
    }
    return found;
  }

 private:
  uint64_t SumOf(size_t begin, size_t end) const { return sums_[end] - sums_[begin]; }

  Cut CutAt(uint32_t site) const {
    const std::vector<size_t>& at = places_[site];
    Cut cut{.site = site, .windows = at.size() - 1};
    std::unordered_map<uint64_t, size_t> counts;
    size_t most = 0;
    for (size_t i = 0; i + 1 < at.size(); ++i) {
      const uint64_t sum = SumOf(at[i], at[i + 1]);
      const size_t count = ++counts[sum];
      if (count <= most) continue;
      most = count;
      cut.mode = sum;
      cut.mode_begin = at[i];
      cut.length = at[i + 1] - at[i];
    }
    for (size_t i = 0; i + 1 < at.size(); ++i) {
      const size_t length = at[i + 1] - at[i];
      if (IsAlike(cut, SumOf(at[i], at[i + 1]), length)) cut.alike += length;
    }
    cut.covered = static_cast<double>(cut.alike) / static_cast<double>(at.back() - at.front());
    return cut;
  }

  static bool IsAlike(const Cut& cut, uint64_t sum, size_t length) {
    if (sum == cut.mode) return true;
    const size_t difference = length > cut.length ? length - cut.length : cut.length - length;
    return cut.length >= kManyLaunches && difference <= cut.length / kAlikePart;
  }

  // Whether `outer` is a loop around that of `inner`, and more of a step than it.
  bool IsOuter(const Cut& inner, const Cut& outer) const {
    if (outer.length < inner.length * 3 / 2 || outer.length > inner.length * kMostInner) {
      return false;
    }
    if (outer.windows < kOuterRounds || outer.covered <= inner.covered) return false;
    if (MovesData(inner)) return false;
    // Incomplete stacks have none in common.
    const size_t callers = CommonCallers(inner);
    if (callers > 0 && CommonCallers(outer) >= callers) return false;
    return visits_[outer.mode_begin + outer.length].time_ns - visits_[outer.mode_begin].time_ns <=
           kLongestRoundNs;
  }
  bool MovesData(const Cut& cut) const {
    const auto window = visits_.subspan(cut.mode_begin, cut.length);
    return std::any_of(window.begin(), window.end(),
                       [](const SiteVisit& visit) { return visit.moves_data; });
  }

  // How many callers all sites of a window have in common.
  size_t CommonCallers(const Cut& cut) const {
    if (paths_[cut.site].callers.empty()) return 0;
    // The paths between the first and the last one in order have in common what these two have.
    uint32_t first = cut.site;
    uint32_t last = cut.site;
    for (size_t i = 0; i < cut.length; ++i) {
      const uint32_t site = visits_[cut.mode_begin + i].site;
      if (paths_[site].callers.empty()) continue;
      if (ranks_[site] < ranks_[first]) first = site;
      if (ranks_[site] > ranks_[last]) last = site;
    }
    const std::vector<uint32_t>& callers = paths_[first].callers;
    const std::vector<uint32_t>& others = paths_[last].callers;
    return static_cast<size_t>(
        std::mismatch(callers.begin(), callers.end(), others.begin(), others.end()).first -
        callers.begin());
  }

  // How many launches of a round come before the site of the cut.
  size_t BackOf(const Cut& cut, std::optional<uint32_t> first, bool& by_code) const {
    if (first) {
      for (size_t i = 0; i < cut.length; ++i) {
        if (visits_[cut.mode_begin + i].site == *first) return (cut.length - i) % cut.length;
      }
    }
    if (const std::optional<size_t> begin = BeginByCode(cut)) {
      by_code = true;
      return (cut.length - *begin) % cut.length;
    }
    // Counts the launches that the first round has like the others.
    const size_t at = places_[cut.site].front();
    size_t back = 0;
    while (back + 1 < cut.length && back < at &&
           visits_[at - back - 1].site == visits_[cut.mode_begin + cut.length - back - 1].site) {
      ++back;
    }
    return back;
  }

  // In the function of the loop the calls of a round come one after the other, but at its end the
  // next one lies before: there a round begins. None: that is at no place, or at several.
  std::optional<size_t> BeginByCode(const Cut& cut) const {
    const size_t depth = CommonCallers(cut);
    const auto place_at = [&](size_t i) -> std::optional<uint64_t> {
      const SitePath& path = paths_[visits_[cut.mode_begin + i].site];
      if (path.places.size() <= depth) return std::nullopt;
      return path.places[depth];
    };
    std::unordered_map<uint32_t, size_t> counts;
    for (size_t i = 0; i < cut.length; ++i) ++counts[visits_[cut.mode_begin + i].site];
    // Sites that are in no inner loop, and where in the window they are.
    std::vector<std::pair<uint64_t, size_t>> places;
    for (size_t i = 0; i < cut.length; ++i) {
      const auto place = place_at(i);
      if (place && counts[visits_[cut.mode_begin + i].site] == 1) places.emplace_back(*place, i);
    }
    if (places.size() < 2) return std::nullopt;
    std::optional<size_t> last;  // in `places`, of a round
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[(i + 1) % places.size()].first >= places[i].first) continue;
      if (last) return std::nullopt;
      last = i;
    }
    if (!last) return std::nullopt;
    const auto& next = places[(*last + 1) % places.size()];
    // An inner loop may come before it.
    size_t begin = (places[*last].second + 1) % cut.length;
    while (begin != next.second && place_at(begin).value_or(UINT64_MAX) > next.first) {
      begin = (begin + 1) % cut.length;
    }
    return begin;
  }

  size_t BeginOf(size_t at, size_t lowest, size_t back, uint32_t site) const {
    if (at >= lowest + back && visits_[at - back].site == site) return at - back;
    // A round that is not like the others.
    for (size_t i = at + 1; i-- > lowest;) {
      if (visits_[i].site == site) return i;
    }
    return std::max(lowest, at - std::min(at, back));
  }

  // The first rounds may go another way, while code is compiled for instance. What is launched
  // within the loop before all rounds is one of them, each time that the loop goes back.
  void PrependRounds(const Cut& cut, bool is_first_whole, std::vector<size_t>& begins) const {
    const size_t depth = CommonCallers(cut);
    const SitePath& first = paths_[cut.site];
    if (depth == 0 || first.callers.empty()) return;
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (size_t i = 0; i < cut.length; ++i) {
      const SitePath& path = paths_[visits_[cut.mode_begin + i].site];
      const uint64_t place = path.places.size() > depth ? path.places[depth] : 0;
      least = std::min(least, place);
      most = std::max(most, place);
    }
    const auto place_of = [&](size_t i) -> std::optional<uint64_t> {
      const SitePath& path = paths_[visits_[i].site];
      if (path.callers.size() < depth || path.callers[depth - 1] != first.callers[depth - 1]) {
        return std::nullopt;
      }
      const uint64_t place = path.places.size() > depth ? path.places[depth] : 0;
      const bool is_one = first.callers.size() == depth;  // the loop has a single call
      return is_one || (place >= least && place <= most) ? std::optional(place) : std::nullopt;
    };
    std::vector<size_t> more;  // where rounds begin, backwards
    size_t begin = begins.front();
    bool is_open = !is_first_whole;
    uint64_t next = is_open ? place_of(begin).value_or(most) : 0;
    while (begin > 0) {
      const std::optional<uint64_t> place = place_of(begin - 1);
      if (!place) break;
      if (is_open && *place > next) more.push_back(begin);
      is_open = true;
      next = *place;
      --begin;
    }
    if (is_open) more.push_back(begin);
    size_t known = begins.front();
    size_t taken = 0;
    for (; taken < more.size(); ++taken) {
      const bool is_of_first = taken == 0 && !is_first_whole;
      // Less than half of a round is what goes before the loop.
      if (!is_of_first && (known - more[taken]) * 2 < cut.length) break;
      if (is_of_first) begins.erase(begins.begin());
      known = more[taken];
    }
    more.resize(taken);
    begins.insert(begins.begin(), more.rbegin(), more.rend());
  }

  // The last one may end before it comes to the site of the cut.
  void AppendRounds(uint32_t begin_site, std::vector<size_t>& begins) const {
    const size_t first = begins.front();
    const size_t end = EndOfLast(first, begins.back());
    for (size_t at = begins.back() + 1; at < end; ++at) {
      if (visits_[at].site == begin_site && !IsOften(begin_site, begins)) begins.push_back(at);
    }
  }
  // The site comes several times in a round.
  bool IsOften(uint32_t site, const std::vector<size_t>& begins) const {
    return places_[site].size() > begins.size() + 1;
  }

  // Launches that earlier rounds have too belong to the last one.
  size_t EndOfLast(size_t first, size_t begin) const {
    size_t end = begin;
    while (end < visits_.size()) {
      const std::vector<size_t>& at = places_[visits_[end].site];
      const auto before = std::lower_bound(at.begin(), at.end(), first);
      if (before == at.end() || *before >= begin) break;
      ++end;
    }
    return std::max(end, begin + 1);
  }

  // Launches that follow a whole round and are as long as half of one do not belong to it: what the
  // program does between two loops.
  Recurrence::Round RoundOf(size_t begin, size_t end, const Cut& cut) const {
    const size_t length = end - begin;
    const size_t rest = std::max<size_t>(cut.length / 2, 8);
    if (length >= cut.length + rest && SumOf(begin, begin + cut.length) == cut.mode) {
      return {begin, begin + cut.length, true};
    }
    return {begin, end, SumOf(begin, end) == cut.mode};
  }

  const std::span<const SiteVisit> visits_;
  const std::span<const SitePath> paths_;
  std::vector<std::vector<size_t>> places_;  // of each site, in the sequence
  std::vector<uint64_t> sums_;               // of the scrambled sites before each place
  std::vector<uint32_t> ranks_;              // of the callers of each site, in their order
};

}  // namespace

std::optional<Recurrence> FindRecurrence(std::span<const SiteVisit> visits,
                                         std::span<const SitePath> paths,
                                         std::optional<uint32_t> first) {
  Search search(visits, paths);
  const std::optional<Cut> cut = search.BestCut();
  if (!cut) return std::nullopt;
  return search.RoundsOf(*cut, first);
}

}  // namespace xpu
