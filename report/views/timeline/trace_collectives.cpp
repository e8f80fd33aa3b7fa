#include "report/views/timeline/trace_collectives.h"

#include <algorithm>
#include <string>

#include "format/base/text.h"

namespace xpu {

void TraceCollectives::Find() {
  if (!MayHaveCollectives(analysis_.model)) return;
  found_ = FindCollectives(analysis_.trace());
  first_.resize(found_.all.size());
  for (size_t i = 0; i < found_.all.size(); ++i) {
    const Collective& collective = found_.all[i];
    for (size_t part = 0; part < collective.parts.size(); ++part) {
      const uint32_t work = collective.parts[part].work;
      if (work != CollectivePart::kNone && analysis_.shown.work.Has(work)) {
        slices_.push_back({i, part});
      }
    }
  }
  std::stable_sort(slices_.begin(), slices_.end(), [this](const Slice& a, const Slice& b) {
    return PartOf(a).arrived_ns < PartOf(b).arrived_ns;
  });
}

void TraceCollectives::Write(size_t at, uint32_t& arrows) {
  const Collective& collective = found_.all[slices_[at].collective];
  const CollectivePart& part = PartOf(slices_[at]);
  const JobRank& rank = analysis_.job.ranks()[part.rank];
  const TraceTrack track = tracks_.Collectives(rank, part.arrived_ns, part.end_ns);
  sink_.Slice(track, sink_.Name(collective.operation, "collective"), part.arrived_ns, part.end_ns);
  First& first = first_[slices_[at].collective];
  const bool is_last = slices_[at].part == collective.last;
  const bool is_first = first.track.tid == 0;
  const uint32_t last_work = collective.parts[collective.last].work;
  if (is_first && !is_last && analysis_.shown.work.Has(last_work)) {
    first = {track, ++arrows, part.arrived_ns};
    sink_.BeginArrows(first.arrow, 1);
  }
  sink_.ArgText("communicator", collective.match == CollectiveMatch::kByNvtx
                                    ? Format("{:#x}", collective.communicator)
                                    : Format("stream {}", collective.communicator));
  sink_.Arg("sequence", collective.sequence);
  if (collective.bytes != 0) sink_.Arg("bytes", collective.bytes);
  if (!collective.reduction.empty()) sink_.ArgText("reduction", collective.reduction);
  sink_.Arg("ranks", collective.ranks);
  if (collective.match == CollectiveMatch::kByOrder) sink_.ArgText("matched", "by order");
  if (part.is_grouped) sink_.ArgText("kernel", "of a group");
  sink_.ArgThousandths("waited_us", collective.last_arrival_ns - part.arrived_ns);
  if (collective.arrived < 2) return;
  sink_.Arg("last_rank", analysis_.job.ranks()[collective.parts[collective.last].rank].number);
  if (!is_last || first.arrow == 0) return;
  sink_.Arrow("wait", first.arrow, first.track, first.arrived_ns, track, part.arrived_ns);
}

}  // namespace xpu
