// Finds what the CPU did while a GPU had nothing to do.
//
// The thread whose call ended a gap is the one that kept the GPU waiting: its samples are what the
// time of the gap is divided over. Only where that thread did not run do others count.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/sampled_events.h"
#include "report/query/gpu_busy.h"
#include "report/query/statistics.h"

namespace xpu {

// A place in a list of CPU samples that there is none at.
inline constexpr uint32_t kNoSample = std::numeric_limits<uint32_t>::max();

// Which CPU samples stand for a stretch of time.
//
// Most gaps of a GPU are shorter than the sampling period, so most samples lie in no gap or in one
// of hundreds: a sample stands for the time around it, half a period to either side, or half the
// way to the next sample of its thread where that one is not far.
class IdleSamples {
 public:
  // Both must outlive this.
  IdleSamples(Analysis& analysis, CallPaths& paths);

  struct Share {
    uint32_t sample = kNoSample;  // in LoadedEvents::cpu_samples
    uint64_t ns = 0;
  };
  struct Stretch {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
  };
  // Appends the shares of the thread's samples, and the stretches in which it did not run.
  void OfThread(const Owner& owner, Stretch stretch, std::vector<Share>& shares,
                std::vector<Stretch>& rest);
  // Appends the shares of what else ran in the process and those that descend from it, threads that
  // only spin for work left out. Returns how long nothing did.
  uint64_t SharesOfOtherThreads(const Owner& owner, Stretch stretch, std::vector<Share>& shares);
  // Whether more samples were asked for than the idle time of a program needs: a hostile capture
  // has as many GPUs as samples, or a sampling period as long as all of its gaps.
  bool IsExhausted() const { return samples_left_ == 0; }

 private:
  using Places = std::vector<uint32_t>;  // in all_, ascending

  uint64_t TimeOf(uint32_t sample) const { return all_.Get<&CpuSample::time_ns>(sample); }
  Stretch AroundOf(const Places& thread, size_t at) const;
  const Places& BelowProcess(ProcessId process);
  bool Spins(uint32_t sample);
  void Count(size_t samples) { samples_left_ -= std::min<uint64_t>(samples_left_, samples); }

  Analysis& analysis_;
  CallPaths& paths_;
  const SampleList& all_;
  const uint64_t period_ns_;
  uint64_t samples_left_;
  std::map<ThreadKey, Places> threads_;  // also those that a filter leaves out
  std::map<ProcessId, Places> below_;    // by the root of the tree
  std::map<ProcessId, std::vector<const Places*>> threads_below_;  // likewise
  std::unordered_map<uint32_t, bool> spins_;                       // by path
};

// A part of the time in which a GPU had nothing to do.
struct IdlePart {
  enum class Cause : uint8_t {
    kSample,       // the thread that ended the gap ran: `sample`
    kOtherThread,  // it did not, and this did: likewise
    kWait,         // it did not, as it was in a synchronization: `wait`, and `launch` where known
    kLaunch,       // it did not, and nothing else is known of it: `launch`
    kQueued,       // what ended the gap had been launched before it
    kUnknown,      // the launch of what ended it is not known, and no sample is there
    kUndivided,    // IdleSamples::IsExhausted
  };
  uint32_t gpu = 0;  // as the report numbers them
  Cause cause = Cause::kUnknown;
  uint64_t ns = 0;
  // In LoadedEvents::cpu_samples; may be one that a filter leaves out, as the others.
  uint32_t sample = kNoSample;
  uint32_t wait = kNoWork;               // in Correlation::work
  uint32_t launch = GpuWork::kNoLaunch;  // in Correlation::launches
};

// In paths of time in which nothing ran.
inline constexpr std::string_view kNoSampleFrame = "[no CPU sample]";

// The thread of the call that ended the gap; of an unknown call the main thread of the process,
// where that is known.
Owner OwnerOf(const Analysis& analysis, const IdleGap& gap);

// Divides the time of a gap over what the CPU did.
class IdleParts {
 public:
  // Both must outlive this. The stacks of samples better are named ahead.
  IdleParts(Analysis& analysis, CallPaths& paths);

  // They add up to the gap: what lies in a pause is left out. Holds until the next call.
  const std::vector<IdlePart>& Of(const IdleGap& gap);
  // Divides time that is no gap: what a thread did before its first work, for instance.
  const std::vector<IdlePart>& Of(const Owner& thread, uint64_t start_ns, uint64_t end_ns);

 private:
  struct Wait {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint32_t work = kNoWork;               // in Correlation::work
    uint32_t launch = GpuWork::kNoLaunch;  // in Correlation::launches; kNoLaunch: it is not known
  };
  // `otherwise`: what the time counts for in which nothing ran.
  void AddThread(const Owner& owner, IdleSamples::Stretch stretch, IdlePart otherwise);
  const Wait* WaitAround(const Owner& owner, IdleSamples::Stretch stretch) const;

  Analysis& analysis_;
  IdleSamples samples_;
  UncountedTimes uncounted_;
  // Waits by thread; no thread where the launch is not known. They are in order of both start and
  // end: a wait that lies in an earlier one is left out.
  std::map<std::optional<uint32_t>, std::vector<Wait>> waits_;
  std::vector<IdlePart> parts_;
  std::vector<IdleSamples::Share> shares_;
  std::vector<IdleSamples::Stretch> rest_;
};

// All gaps of all GPUs, those of each in order.
std::vector<IdleGap> FindAllGaps(const Analysis& analysis);

// The call paths of parts:
// the stack of the sample;
// the stack that waits and [no CPU sample];
// thread, [no CPU sample], and the rest of the stack of the launch that ended the gap;
// [launched before], [not divided], and [unknown launch] in [no CPU sample].
class IdlePaths {
 public:
  // Both must outlive this.
  IdlePaths(Analysis& analysis, CallPaths& paths);

  PathId Of(const IdlePart& part);
  // The thread that the path is of; none for parts without one.
  Owner OwnerOf(const IdlePart& part) const;
  // The deepest path that at least half of the time of the parts is below; none without parts.
  PathId MostOf(const std::vector<IdlePart>& parts);

 private:
  PathId BelowNoSample(const Launch& launch);

  Analysis& analysis_;
  CallPaths& paths_;
  const FrameId no_sample_;
  const FrameId queued_;
  const FrameId unknown_;
  const FrameId undivided_;
};

// Finds it from the time of each path.
PathId MostOf(const CallTree& tree, const std::map<PathId, uint64_t>& times);

// Idle time by innermost function. With several GPUs, names begin with "GPU 0: ".
std::vector<Statistics> IdleTimes(Analysis& analysis, const std::vector<GpuBusy>& busy);

}  // namespace xpu
