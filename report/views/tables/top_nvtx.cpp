// Tables of the ranges that the program marked: nvtx_sum, nvtx_kern_sum.
#include <map>
#include <set>
#include <span>

#include "report/analysis/call_paths.h"
#include "report/trace/nvtx.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

struct RangeTimes {
  Statistics times;
  NvtxStyle style;
};

std::vector<RangeTimes> RangeRows(const Analysis& analysis) {
  std::map<std::pair<std::string, NvtxStyle>, std::vector<uint64_t>> values;
  for (const NvtxRange& range : analysis.Ranges()) {
    if (range.style == NvtxStyle::kMark) continue;
    values[{analysis.nvtx.NameOf(range), range.style}].push_back(range.end_ns - range.start_ns);
  }
  std::vector<RangeTimes> rows;
  rows.reserve(values.size());
  for (auto& [key, times] : values) rows.push_back({Summarize(key.first, times), key.second});
  SortByTotal(rows);
  return rows;
}

struct KernelKey {
  std::string range;
  NvtxStyle style;
  uint32_t pid;
  uint32_t tid;
  std::string kernel;
  friend auto operator<=>(const KernelKey&, const KernelKey&) = default;
};

struct KernelTimesInRange {
  Statistics times;
  KernelKey key;
  size_t ranges = 0;
};

class KernelsInRanges {
 public:
  explicit KernelsInRanges(TableSource& source)
      : analysis_(source.analysis), names_(source.names) {}

  std::vector<KernelTimesInRange> Rows() {
    for (const GpuWork& work : analysis_.Work()) {
      if (work.kind == WorkKind::kKernel && work.timed && work.launch != GpuWork::kNoLaunch) {
        Add(work);
      }
    }
    std::vector<KernelTimesInRange> rows;
    for (auto& [key, found] : found_) {
      rows.push_back({Summarize({}, found.times), key, found.ranges.size()});
    }
    SortByTotal(rows);
    return rows;
  }

 private:
  struct Found {
    std::vector<uint64_t> times;
    std::set<uint32_t> ranges;
  };

  // A kernel counts once in each range around its launch.
  void Add(const GpuWork& work) {
    const Launch& launch = analysis_.correlation.launches[work.launch];
    const StringId name = analysis_.model.events.kernels.Get<&Kernel::name>(work.index);
    std::set<Found*> counted;  // a range within one of the same name
    const std::vector<uint32_t> all = analysis_.nvtx.RangesOf(analysis_.nvtx.At(launch));
    for (const uint32_t index : std::span(all).last(std::min(all.size(), NvtxRanges::kMostShown))) {
      if (!analysis_.shown.nvtx_ranges.Has(index)) continue;
      const NvtxRange& range = analysis_.nvtx.all()[index];
      Found& found =
          found_[{analysis_.nvtx.NameOf(range), range.style, launch.pid,
                  range.style == NvtxStyle::kPushPop ? launch.tid : 0, names_.KernelName(name)}];
      found.ranges.insert(index);
      if (counted.insert(&found).second) found.times.push_back(work.duration_ns);
    }
  }

  const Analysis& analysis_;
  const GpuNames& names_;
  std::map<KernelKey, Found> found_;
};

}  // namespace

void FillRanges(TableSource& source, Table& table) {
  std::vector<RangeTimes> rows = RangeRows(source.analysis);
  const uint64_t whole = WholeOf(rows);
  SetRows(table, std::move(rows), [whole](const RangeTimes& row, Row& cells) {
    AppendTimes(row.times, whole, cells);
    cells.emplace_back(StyleText(row.style));
    cells.push_back(row.times.name);
  });
}

void FillKernelsInRanges(TableSource& source, Table& table) {
  SetRows(table, KernelsInRanges(source).Rows(), [](const KernelTimesInRange& row, Row& cells) {
    Row times;
    AppendTimes(row.times, 0, times);
    cells.assign({row.key.range, std::string(StyleText(row.key.style)), std::to_string(row.key.pid),
                  row.key.tid == 0 ? "" : std::to_string(row.key.tid), std::to_string(row.ranges),
                  std::to_string(row.times.count), std::to_string(row.times.total)});
    cells.insert(cells.end(), times.begin() + 3, times.end());
    cells.push_back(row.key.kernel);
  });
}

}  // namespace xpu
