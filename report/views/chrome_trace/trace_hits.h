// Hits of the probes that the user asked for, as moments on the tracks of their threads.
#pragma once

#include <unordered_map>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_paths.h"
#include "report/trace/user_probes.h"
#include "report/views/chrome_trace/trace_names.h"
#include "report/views/chrome_trace/trace_tracks.h"
#include "report/views/chrome_trace/trace_writer.h"

namespace xpu {

class TraceHits {
 public:
  // All must outlive this.
  TraceHits(const Analysis& analysis, CallPaths& paths, const TraceNames& names,
            TraceTracks& tracks, TraceWriter& writer);

  // In order of time.
  const std::vector<const ProbeHit*>& hits() const { return hits_; }
  // One of them.
  void Write(const ProbeHit& hit);

 private:
  const Analysis& analysis_;
  CallPaths& paths_;
  const TraceNames& names_;
  TraceTracks& tracks_;
  TraceWriter& writer_;
  const UserProbes probes_;
  std::vector<const ProbeHit*> hits_;
  std::unordered_map<const Probe*, TraceName> titles_;
};

}  // namespace xpu
