#include "report/views/chrome_trace/trace_hits.h"

namespace xpu {

TraceHits::TraceHits(const Analysis& analysis, CallPaths& paths, const TraceNames& names,
                     TraceTracks& tracks, TraceWriter& writer)
    : analysis_(analysis),
      paths_(paths),
      names_(names),
      tracks_(tracks),
      writer_(writer),
      probes_(analysis.model) {
  for (const ProbeHit& hit : analysis.model.events.probe_hits) {
    if (probes_.Of(hit) != nullptr) hits_.push_back(&hit);
  }
}

void TraceHits::Write(const ProbeHit& hit) {
  const Probe& probe = *probes_.Of(hit);
  const auto [name, is_new] = titles_.try_emplace(&probe);
  if (is_new) name->second = TraceName(probes_.NameOf(probe), "probe");
  writer_.Instant(tracks_.ThreadOf(OwnerOf(analysis_, hit)), name->second, hit.time_ns);
  writer_.ArgText("probe", probes_.TitleOf(probe));
  if (IsReturn(probe)) writer_.Arg("result", hit.return_value);
  if (hit.stack) writer_.ArgText("stack", names_.StackOf(paths_.OfHit(hit)));
}

}  // namespace xpu
