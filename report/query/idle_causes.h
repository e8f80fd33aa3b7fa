// Causes of idle time of a GPU, in the words of a user: activities of call paths.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/query/gpu_idle.h"

namespace xpu {

enum class Activity : uint8_t {
  kNone,  // nothing that has a name here
  kImport,
  kTorchCompile,
  kXla,
  kGpuCompiler,
  kCudnn,
  kLoadCode,
  kInitialize,
  kDataLoader,
  kProfiler,
};
// "importing Python modules"; "" for kNone.
std::string_view ActivityName(Activity activity);

// Adds up parts, of one phase for instance.
class IdleCauses {
 public:
  // All must outlive this.
  IdleCauses(Analysis& analysis, CallPaths& paths, IdlePaths& idle_paths)
      : analysis_(analysis), paths_(paths), idle_paths_(idle_paths) {}

  void Add(const IdlePart& part);
  uint64_t whole_ns() const { return whole_ns_; }

  struct Share {
    Activity activity = Activity::kNone;
    uint64_t ns = 0;
    uint64_t meanwhile_ns = 0;  // of it in other threads, while the one that launches did not run
  };
  // The largest first.
  std::vector<Share> Shares() const;
  // The innermost frame that at least half of the time of an activity is below; "" when that is
  // just a thread.
  std::string PlaceOf(Activity activity);

 private:
  Activity Of(PathId path);

  Analysis& analysis_;
  CallPaths& paths_;
  IdlePaths& idle_paths_;
  std::vector<Activity> activities_;  // by path - 1, as far as they are known
  std::map<Activity, Share> shares_;
  std::map<Activity, std::map<PathId, uint64_t>> times_;
  uint64_t whole_ns_ = 0;
};

}  // namespace xpu
