#include "report/model/clock_fit.h"

#include <algorithm>
#include <limits>

#include "report/base/median.h"

namespace xpu {
namespace {

__extension__ using Wide = __int128;
__extension__ using WideUnsigned = unsigned __int128;

// The kernel slews by at most 500 ppm, and a crystal is off by less than 100.
constexpr int64_t kMaxDriftPpm = 1000;
constexpr int64_t kStepSlackNs = 100'000;  // what two bad middles may add
// Windows are a few hundred ns; one that is much wider was interrupted in the middle.
constexpr uint64_t kWindowFactor = 4;
constexpr uint64_t kWindowSlackNs = 1000;
constexpr size_t kMaxPieces = 64;  // a clock that is set more often is no clock

uint64_t WindowOf(const ClockPair& pair) { return pair.after_ns - pair.before_ns; }

uint64_t Clamp(Wide value) {
  if (value < 0) return 0;
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  return value > static_cast<Wide>(kMax) ? kMax : static_cast<uint64_t>(value);
}

Wide Minus(uint64_t a, uint64_t b) { return static_cast<Wide>(a) - static_cast<Wide>(b); }

Wide Magnitude(Wide value) { return value < 0 ? -value : value; }

}  // namespace

bool ClockFit::IsStep(const Point& a, const Point& b) {
  const Wide monotonic = Minus(b.monotonic_ns, a.monotonic_ns);
  const Wide difference = Minus(b.clock_ns, a.clock_ns) - monotonic;
  return Magnitude(difference) > kStepSlackNs + monotonic * kMaxDriftPpm / 1'000'000;
}

ClockFit::ClockFit(std::span<const ClockPair> pairs) {
  std::vector<uint64_t> windows;
  for (const ClockPair& pair : pairs) {
    if (pair.after_ns >= pair.before_ns) windows.push_back(WindowOf(pair));
  }
  if (windows.empty()) {
    discarded_ = pairs.size();
    return;
  }
  const uint64_t median = MedianOf(windows);
  const uint64_t widest = median > std::numeric_limits<uint64_t>::max() / 8
                              ? median
                              : median * kWindowFactor + kWindowSlackNs;
  std::vector<Point> points;
  for (const ClockPair& pair : pairs) {
    if (pair.after_ns < pair.before_ns || WindowOf(pair) > widest) continue;
    uncertainty_ns_ = std::max(uncertainty_ns_, WindowOf(pair) / 2);
    points.push_back(
        {.monotonic_ns = pair.before_ns + WindowOf(pair) / 2, .clock_ns = pair.clock_ns});
  }
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    if (a.monotonic_ns != b.monotonic_ns) return a.monotonic_ns < b.monotonic_ns;
    return a.clock_ns < b.clock_ns;
  });
  Connect(points);
  discarded_ = pairs.size() - points_.size();
}

void ClockFit::Connect(const std::vector<Point>& points) {
  for (const Point& point : points) {
    if (points_.empty() || IsStep(points_.back(), point)) {
      if (pieces_.size() == kMaxPieces) return;
      pieces_.push_back({.begin = points_.size(), .end = points_.size()});
    } else if (point.clock_ns <= points_.back().clock_ns ||
               point.monotonic_ns == points_.back().monotonic_ns) {
      continue;  // adds no direction
    }
    points_.push_back(point);
    pieces_.back().end = points_.size();
  }
}

uint64_t ClockFit::InPiece(const Piece& piece, uint64_t clock_ns) const {
  const auto first = points_.begin() + static_cast<ptrdiff_t>(piece.begin);
  const auto last = points_.begin() + static_cast<ptrdiff_t>(piece.end);
  const auto after = std::upper_bound(first, last, clock_ns, [](uint64_t time, const Point& point) {
    return time < point.clock_ns;
  });
  // Outside a piece its nearest point counts, at the rate of CLOCK_MONOTONIC.
  const Point& a = after == first ? *first : *std::prev(after);
  if (after == first || after == last) {
    return Clamp(static_cast<Wide>(a.monotonic_ns) + Minus(clock_ns, a.clock_ns));
  }
  // Within a piece both clocks go forward, so nothing here is negative. The product of two 64-bit
  // spans takes all 128 bits.
  const uint64_t passed = clock_ns - a.clock_ns;
  const uint64_t clock_span = after->clock_ns - a.clock_ns;
  const uint64_t monotonic_span = after->monotonic_ns - a.monotonic_ns;
  return a.monotonic_ns + static_cast<uint64_t>(WideUnsigned{passed} * monotonic_span / clock_span);
}

uint64_t ClockFit::ToMonotonic(uint64_t clock_ns) const {
  // A time that two pieces claim (the clock was set back) goes to the earlier one, a time that
  // none claims (it was set forward) to the nearest.
  const Piece* best = nullptr;
  Wide best_distance = 0;
  for (const Piece& piece : pieces_) {
    const Point& first = points_[piece.begin];
    const Point& last = points_[piece.end - 1];
    const Wide distance =
        std::max({Wide{0}, Minus(first.clock_ns, clock_ns), Minus(clock_ns, last.clock_ns)});
    if (best != nullptr && distance >= best_distance) continue;
    best = &piece;
    best_distance = distance;
  }
  return best == nullptr ? clock_ns : InPiece(*best, clock_ns);
}

uint64_t ClockFit::ToMonotonic(uint64_t clock_ns, uint64_t not_before_ns) const {
  // A piece lasts at most to the first point of the next: what would be later there came after the
  // clock was set forward.
  const auto is_before = [](uint64_t a, uint64_t b) { return Minus(a, b) < -Wide{kStepSlackNs}; };
  for (size_t i = 0; pieces_.size() > 1 && i < pieces_.size(); ++i) {
    const uint64_t time_ns = InPiece(pieces_[i], clock_ns);
    const bool is_later =
        i + 1 < pieces_.size() && is_before(points_[pieces_[i + 1].begin].monotonic_ns, time_ns);
    if (!is_later && !is_before(time_ns, not_before_ns)) return time_ns;
  }
  return ToMonotonic(clock_ns);
}

namespace {

std::vector<ClockPair> StartOfRecording(const Model& model) {
  if (model.events.recording_info.empty()) return {};
  const RecordingInfo& info = model.events.recording_info.front();
  return {{.instance = {},
           .clock = ClockKind::kCupti,
           .before_ns = info.start_ns,
           .clock_ns = info.start_realtime_ns,
           .after_ns = info.start_ns}};
}

}  // namespace

Clocks::Clocks(const Model& model) : fallback_(StartOfRecording(model)) {
  std::unordered_map<InstanceId, std::vector<ClockPair>> pairs;
  for (const ClockPair& pair : model.events.clock_pairs) {
    if (pair.clock == ClockKind::kCupti) pairs[pair.instance].push_back(pair);
  }
  for (const auto& [instance, list] : pairs) fits_.emplace(instance, ClockFit(list));
}

const ClockFit& Clocks::Of(InstanceId instance) const {
  const auto found = fits_.find(instance);
  return found == fits_.end() ? fallback_ : found->second;
}

}  // namespace xpu
