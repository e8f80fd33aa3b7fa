// Moments of a program and what lies between them: which moment can come only after which others,
// and how long after.
//
// Moments are the nodes and arrows the edges, so that a thread that is cut into a thousand pieces
// is a chain. Each moment comes as soon as all of its arrows allow it. What the arrows do not
// explain counts for the one that came last, the binding one: so the binding arrows, followed
// backwards, cover all time without a gap, and their sum is exactly what passed. A graph of
// activities as nodes was rejected: half of what a program does between two moments has no other
// end than the next one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace xpu {

// What an arrow stands for.
enum class ArrowKind : uint8_t {
  kRunning,     // a thread runs
  kCall,        // a thread is in a call of CUDA
  kWait,        // a thread waits for something that is not in the graph: a timer, a disk, unknown
  kRunnable,    // a thread waits for a CPU
  kBlocked,     // a thread waits for what another arrow brings
  kWakeUp,      // from the thread that ends a wait
  kKernel,      // GPU work
  kMemory,      // likewise
  kGraph,       // likewise
  kLaunch,      // from a call to its work
  kQueue,       // from GPU work to the next one on its stream
  kStreamWait,  // from GPU work to what waits for it on another stream
  kGpuWait,     // from GPU work to the call that waits for it
};

struct Arrow {
  uint32_t from = 0;   // a moment
  uint32_t to = 0;     // likewise
  uint64_t ns = 0;     // at least so long after `from`
  uint32_t index = 0;  // of what it stands for, in a list that depends on the kind
  ArrowKind kind = ArrowKind::kRunning;
  bool is_assumed = false;  // nothing recorded says so
};

class DependencyGraph {
 public:
  uint32_t AddMoment(uint64_t time_ns);
  // All of the time between its moments. An arrow back in time is left out.
  void AddActivity(Arrow arrow);
  // `arrow.ns` of it, at most; the rest if it is the binding one.
  void AddDependency(Arrow arrow);
  // After the last of them, before what follows.
  void Finish();

  size_t size() const { return times_.size(); }
  uint64_t TimeOf(uint32_t moment) const { return times_[moment]; }
  const std::vector<Arrow>& arrows() const { return arrows_; }
  // Those that end at the moment.
  std::span<const Arrow> ArrowsTo(uint32_t moment) const {
    return std::span(arrows_).subspan(first_to_[moment], first_to_[moment + 1] - first_to_[moment]);
  }

  // The binding arrows from `from_ns` to the moment, in order of time; those that take no time are
  // left out. Less than that if it leads to a moment that waits for nothing.
  std::vector<Arrow> PathTo(uint32_t moment, uint64_t from_ns) const;

  // When the moment would come if each arrow took scale(arrow) nanoseconds instead. What is not
  // later than `from_ns` stays as it was.
  template <typename Scale>
  uint64_t Reevaluate(uint32_t moment, uint64_t from_ns, Scale&& scale) const;

 private:
  void Order();

  std::vector<uint64_t> times_;
  std::vector<Arrow> arrows_;       // after Finish: by `to`
  std::vector<uint32_t> first_to_;  // by moment: in arrows_
  std::vector<uint32_t> order_;     // moments, each after those that it depends on
};

template <typename Scale>
uint64_t DependencyGraph::Reevaluate(uint32_t moment, uint64_t from_ns, Scale&& scale) const {
  std::vector<uint64_t> times = times_;
  for (const uint32_t at : order_) {
    if (times_[at] <= from_ns || first_to_[at] == first_to_[at + 1]) continue;
    uint64_t ns = 0;
    for (const Arrow& arrow : ArrowsTo(at)) {
      const uint64_t then = times[arrow.from] + scale(arrow);
      if (then > ns) ns = then;
    }
    times[at] = ns;
    if (at == moment) break;
  }
  return times[moment];
}

}  // namespace xpu
