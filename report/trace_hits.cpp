#include "report/trace_hits.h"

#include "report/text.h"

namespace xpu {

TraceHits::TraceHits(Analysis& analysis, CallPaths& paths, TraceTracks& tracks, TraceWriter& writer)
    : analysis_(analysis),
      paths_(paths),
      tracks_(tracks),
      writer_(writer),
      probes_(analysis.model) {
  for (const ProbeHit& hit : analysis.model.events.probe_hits) {
    if (probes_.Of(hit) != nullptr) hits_.push_back(&hit);
  }
}

// Outermost first, without the name of the thread, whose track it is on.
std::string TraceHits::StackOf(const ProbeHit& hit) {
  std::string text;
  bool is_thread = true;
  for (const FrameId frame : paths_.tree().Path(paths_.OfHit(hit))) {
    if (!text.empty()) text += ';';
    if (!is_thread) text += ToFoldedFrame(analysis_.frames[frame].Label());
    is_thread = false;
  }
  return text;
}

void TraceHits::Write(const ProbeHit& hit) {
  const Probe& probe = *probes_.Of(hit);
  const auto [name, is_new] = names_.try_emplace(&probe);
  if (is_new) name->second = TraceName(probes_.NameOf(probe), "probe");
  writer_.Instant(tracks_.ThreadOf(OwnerOf(analysis_, hit)), name->second, hit.time_ns);
  writer_.ArgText("probe", probes_.TitleOf(probe));
  if (IsReturn(probe)) writer_.Arg("result", hit.return_value);
  if (hit.stack) writer_.ArgText("stack", StackOf(hit));
}

}  // namespace xpu
