// Hits of the probes that the user asked for, as moments on the tracks of their threads.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "report/analysis.h"
#include "report/call_paths.h"
#include "report/trace_tracks.h"
#include "report/trace_writer.h"
#include "report/user_probes.h"

namespace xpu {

class TraceHits {
 public:
  // All must outlive this.
  TraceHits(Analysis& analysis, CallPaths& paths, TraceTracks& tracks, TraceWriter& writer);

  // In order of time.
  const std::vector<const ProbeHit*>& hits() const { return hits_; }
  // One of them.
  void Write(const ProbeHit& hit);

 private:
  std::string StackOf(const ProbeHit& hit);

  Analysis& analysis_;
  CallPaths& paths_;
  TraceTracks& tracks_;
  TraceWriter& writer_;
  const UserProbes probes_;
  std::vector<const ProbeHit*> hits_;
  std::unordered_map<const Probe*, TraceName> names_;
};

}  // namespace xpu
