// gpu_gaps: the stretches of time in which a GPU had nothing to do, the longest first.
#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "report/gpu/gpu_idle.h"
#include "report/model/run_time.h"
#include "report/tables/readable_paths.h"
#include "report/tables/top_cells.h"
#include "report/tables/top_rows.h"

namespace xpu {
namespace {

class Gaps {
 public:
  explicit Gaps(TableSource& source)
      : analysis_(source.analysis),
        names_(source.names),
        paths_(source.analysis, {}),
        idle_paths_(source.analysis, paths_),
        readable_(source.analysis, paths_.tree()),
        start_ns_(StartOf(source.analysis.model)),
        parts_(source.analysis, paths_) {
    paths_.NameAhead({.samples = true, .launches = true});
    gaps_ = FindAllGaps(analysis_);
    for (const IdleGap& gap : gaps_) {
      idle_ns_[gap.gpu] = AddSaturated(idle_ns_[gap.gpu], gap.ns);
    }
    order_.resize(gaps_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [this](uint32_t a, uint32_t b) { return gaps_[a].ns > gaps_[b].ns; });
  }

  size_t size() const { return order_.size(); }

  void Make(size_t row, Row& cells) {
    const IdleGap& gap = gaps_[order_[row]];
    const Owner owner = OwnerOf(analysis_, gap);
    const Launch* launch = LaunchAfter(analysis_, gap);
    const uint64_t start_ns = gap.start_ns - std::min(gap.start_ns, start_ns_);
    const std::vector<FrameId> path =
        paths_.tree().Path(readable_.Of(idle_paths_.MostOf(parts_.Of(gap))));
    cells.assign(
        {std::to_string(start_ns), std::to_string(gap.ns), Percent(gap.ns, idle_ns_[gap.gpu]),
         std::to_string(gap.gpu), owner.pid == 0 ? std::string() : std::to_string(owner.pid),
         owner.tid == 0 ? std::string() : std::to_string(owner.tid),
         std::string(analysis_.processes.ThreadName(owner.process, owner.tid, owner.time_ns)),
         TitleOf(gap.before), TitleOf(gap.after),
         launch == nullptr ? std::string() : ApiNameOf(analysis_.api_names, *launch),
         FoldedText(analysis_.frames, path)});
  }

 private:
  std::string TitleOf(uint32_t work) const {
    if (work == IdleGap::kNoWork) return "[other work]";
    return names_.Title(analysis_.correlation.work[work]);
  }

  Analysis& analysis_;
  const GpuNames& names_;
  CallPaths paths_;
  IdlePaths idle_paths_;
  ReadablePaths readable_;
  const uint64_t start_ns_;
  IdleParts parts_;
  std::vector<IdleGap> gaps_;
  std::map<uint32_t, uint64_t> idle_ns_;  // by GPU
  std::vector<uint32_t> order_;
};

}  // namespace

void FillGaps(TableSource& source, Table& table) {
  const auto gaps = std::make_shared<Gaps>(source);
  table.row_count = gaps->size();
  table.row = [gaps](size_t index, Row& cells) { gaps->Make(index, cells); };
}

}  // namespace xpu
