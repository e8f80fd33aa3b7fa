// Converts the times of another clock to CLOCK_MONOTONIC.
//
// Each pair holds the other clock's time between two readings of CLOCK_MONOTONIC; the middle of
// the two is the best guess of when. Between two pairs the clocks are taken as straight lines, so
// a clock that NTP speeds up or slows down is followed. CUPTI's clock is CLOCK_REALTIME by default
// and may be set: where two adjacent pairs disagree about the rate by more than any slewing
// explains, each side keeps its own line.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "format/events.h"
#include "report/model/model.h"

namespace xpu {

class ClockFit {
 public:
  // `pairs` of one clock of one instance, in any order.
  explicit ClockFit(std::span<const ClockPair> pairs);

  // Grows with `clock_ns` between two steps of the clock. With no pair at all: `clock_ns` itself.
  uint64_t ToMonotonic(uint64_t clock_ns) const;

  // Converts a time of a clock that was set, so that it may stand for two instants: to the earliest
  // of them that is not before `not_before_ns` (by more than the fit's error).
  uint64_t ToMonotonic(uint64_t clock_ns, uint64_t not_before_ns) const;

  size_t pairs_used() const { return points_.size(); }
  size_t pairs_discarded() const { return discarded_; }
  // Times that the clock was set.
  size_t steps() const { return pieces_.empty() ? 0 : pieces_.size() - 1; }
  // Half the widest window among the pairs used: how wrong a converted time may be.
  uint64_t uncertainty_ns() const { return uncertainty_ns_; }

 private:
  struct Point {
    uint64_t monotonic_ns = 0;
    uint64_t clock_ns = 0;
  };
  // Points [begin, end): between two steps of the clock, ascending in both clocks.
  struct Piece {
    size_t begin = 0;
    size_t end = 0;
  };
  static bool IsStep(const Point& a, const Point& b);
  void Connect(const std::vector<Point>& points);
  uint64_t InPiece(const Piece& piece, uint64_t clock_ns) const;

  std::vector<Point> points_;  // by monotonic time
  std::vector<Piece> pieces_;
  size_t discarded_ = 0;
  uint64_t uncertainty_ns_ = 0;
};

// The clocks of a capture, one per instance.
class Clocks {
 public:
  explicit Clocks(const Model& model);
  // The fit of an instance; of the start of the recording when the instance has no pairs.
  const ClockFit& Of(InstanceId instance) const;
  const std::unordered_map<InstanceId, ClockFit>& fits() const { return fits_; }

 private:
  std::unordered_map<InstanceId, ClockFit> fits_;
  ClockFit fallback_;  // CLOCK_REALTIME at the start of the recording
};

}  // namespace xpu
