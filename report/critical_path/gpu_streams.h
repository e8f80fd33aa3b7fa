// The work of each stream of a GPU in order of time: what ran when, and what of it a call waits
// for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "report/analysis/analysis.h"

namespace xpu {

// A part of a recording: what lies in it, and what its ends cut.
struct RecordingPart {
  uint64_t from_ns = 0;
  uint64_t to_ns = UINT64_MAX;

  bool Has(uint64_t start_ns, uint64_t end_ns) const {
    return end_ns >= from_ns && start_ns <= to_ns;
  }
};

// The work of one stream. All lists have one entry each.
struct GpuStream {
  InstanceId instance;
  uint32_t device = 0;
  uint32_t id = 0;
  std::vector<uint32_t> work;         // in Correlation::work, by start
  std::vector<uint64_t> launched_ns;  // when this and all before it had been launched
  std::vector<uint64_t> ended_ns;     // when this and all before it had ended
  std::vector<uint32_t> last;         // of this and all before it, the work that ended last

  // The last work to end, not later than `ended_ns`, of what was launched before `launched_ns`.
  // nullopt: none.
  std::optional<uint32_t> LastOf(uint64_t launched_ns, uint64_t ended_ns) const;
  // How much of what was launched before then had not ended.
  size_t PendingAt(uint64_t time_ns) const;
};

class GpuStreams {
 public:
  explicit GpuStreams(const Analysis& analysis, const RecordingPart& part = {});

  const std::vector<GpuStream>& all() const { return all_; }
  // The streams of one instance of the injected library. A program with more than kMost of them
  // gets no dependencies between the others: finding those takes time for each stream.
  static constexpr size_t kMost = 16;
  std::span<const GpuStream> Of(InstanceId instance) const;
  const GpuStream* Find(InstanceId instance, uint32_t stream) const;
  // Whether it ran, and so is in a list.
  bool Has(const GpuWork& work) const;

 private:
  std::span<const GpuStream> AllOf(InstanceId instance) const;

  RecordingPart part_;
  std::vector<GpuStream> all_;  // by instance, stream, device
};

// The work that a call waits for.
struct GpuWait {
  static constexpr uint32_t kNothing = UINT32_MAX;
  uint32_t work = kNothing;  // in Correlation::work: until it has ended
  bool is_assumed = false;
  bool is_full_queue = false;  // it waits because the GPU has too much to do already
};
// For each launch: synchronizations, copies that block, launches while the queue is full.
std::vector<GpuWait> FindGpuWaits(const Analysis& analysis, const GpuStreams& streams);

}  // namespace xpu
