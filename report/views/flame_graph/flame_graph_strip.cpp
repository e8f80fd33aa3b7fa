#include "report/views/flame_graph/flame_graph_strip.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "format/base/text.h"
#include "report/base/median.h"

namespace xpu {
namespace {

// More lanes, of jobs with many processes, have no room above a picture; all can be chosen by the
// numbers of the first ones.
constexpr size_t kMostLanes = 8;
// Bars of steps that take so many times the median are cut: a warm-up would make the others flat.
constexpr double kTopTimes = 3;

std::string LaneName(const Analysis& analysis, const Owner& thread) {
  if (const auto rank = analysis.tracks[thread.track].rank) return Format("rank{}", *rank);
  return analysis.processes.ThreadTitle(thread.process, thread.pid);
}

// `each` steps are a bar. From slice `first` to `last`.
StripLane LaneOf(const Analysis& analysis, const StepSeries& series, uint32_t each, uint32_t first,
                 uint32_t last) {
  StripLane lane{.name = LaneName(analysis, series.thread), .bars = {}, .first_slice = 0};
  const std::vector<Step>& steps = series.steps;
  std::vector<uint64_t> lengths;
  for (size_t slice = first; slice <= last && slice * each < steps.size(); ++slice) {
    const size_t end = std::min(steps.size(), (slice + 1) * each);
    lane.bars.push_back({steps[slice * each].start_ns, steps[end - 1].end_ns});
    lengths.push_back(lane.bars.back().end_ns - lane.bars.back().start_ns);
  }
  if (lengths.empty()) return lane;
  const auto longest = static_cast<double>(*std::max_element(lengths.begin(), lengths.end()));
  lane.top = std::min(longest, kTopTimes * static_cast<double>(MedianOf(lengths)));
  return lane;
}

void WriteLane(const StripLane& lane, uint64_t start_ns, PageData& data) {
  data.Raw("{\"name\":");
  data.String(lane.name);
  data.Raw(",\"unit\":");
  data.String(lane.unit);
  if (lane.is_heat) data.Raw(",\"heat\":true");
  data.Numbers(",\"top\":{:.6g},\"first\":", lane.top);
  data.Number(lane.first_slice);
  data.Raw(",\n");
  uint64_t end_ns = start_ns;
  data.Array("gap", lane.bars, [&](const StripLane::Bar& bar) {
    data.Number(bar.start_ns - std::min(bar.start_ns, end_ns));
    end_ns = std::max(bar.end_ns, bar.start_ns);
  });
  data.Raw(",\n");
  data.Array("length", lane.bars, [&](const StripLane::Bar& bar) {
    data.Number(bar.end_ns - std::min(bar.end_ns, bar.start_ns));
  });
  data.Raw(",\n");
  if (lane.values.empty()) {
    data.Raw("\"value\":null}");
    return;
  }
  data.Array("value", lane.values, [&](double value) {
    data.Numbers("{:.6g}", std::isfinite(value) ? value : 0.0);  // JSON has no others
  });
  data.Raw("}");
}

void WriteChoice(const FlameStrip& strip, const std::vector<uint32_t>& node_of_path,
                 PageData& data) {
  struct Cell {
    uint32_t slice;
    uint32_t node;
    uint64_t ns;
    uint64_t count;
  };
  std::vector<Cell> cells;
  for (const SlicedTimes::Part& part : strip.parts) {
    const uint32_t node = node_of_path[part.path.value - 1];
    if (node != kNoNode) cells.push_back({part.slice, node, part.ns, part.count});
  }
  std::sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
    return std::tie(a.slice, a.node) < std::tie(b.slice, b.node);
  });
  std::vector<uint32_t> sizes(strip.slices);
  for (const Cell& cell : cells) ++sizes[cell.slice];
  data.Raw("{\"what\":");
  data.String(strip.what);
  data.Raw(",\"text\":");
  data.String(strip.text);
  data.Numbers(",\"first\":{},\"each\":{},\n", strip.first, strip.each);
  data.Array("size", sizes, [&](uint32_t size) { data.Number(size); });
  data.Raw(",\n");
  const Cell* before = nullptr;
  data.Array("node", cells, [&](const Cell& cell) {
    const bool is_first = before == nullptr || before->slice != cell.slice;
    data.Number(cell.node - (is_first ? 0 : before->node));
    before = &cell;
  });
  data.Raw(",\n");
  data.Array("ns", cells, [&](const Cell& cell) { data.Number(cell.ns); });
  data.Raw(",\n");
  data.Array("count", cells, [&](const Cell& cell) { data.Number(cell.count); });
  data.Raw("}");
}

}  // namespace

std::optional<FlameStrip> StripOfSteps(const Analysis& analysis, const StepDefinition& definition,
                                       const std::vector<StepSeries>& all,
                                       const SlicedTimes& sliced) {
  FlameStrip strip{.lanes = {}, .what = "step", .each = sliced.each(), .parts = sliced.Parts()};
  if (strip.parts.empty()) return std::nullopt;
  // A filter of time or steps leaves nothing of the others.
  const uint32_t first = strip.parts.front().slice;
  const uint32_t last = strip.parts.back().slice;
  if (first == last) return std::nullopt;
  for (SlicedTimes::Part& part : strip.parts) part.slice -= first;
  strip.first = uint64_t{first} * strip.each;
  strip.slices = last - first + 1;
  for (const StepSeries& series : all) {
    if (strip.lanes.size() == kMostLanes) break;
    StripLane lane = LaneOf(analysis, series, strip.each, first, last);
    if (lane.bars.empty()) continue;
    const bool is_first = strip.lanes.empty();
    strip.from_ns =
        is_first ? lane.bars.front().start_ns : std::min(strip.from_ns, lane.bars.front().start_ns);
    strip.to_ns = std::max(strip.to_ns, lane.bars.back().end_ns);
    strip.lanes.push_back(std::move(lane));
  }
  strip.text = HowFound(all.front(), definition);
  if (all.size() > strip.lanes.size()) {
    AppendFormat(strip.text, "; {} of {} processes are shown", strip.lanes.size(), all.size());
  }
  return strip;
}

void WriteStrip(const FlameStrip* strip, uint64_t start_ns,
                const std::vector<uint32_t>& node_of_path, PageData& data) {
  if (strip == nullptr) {
    data.Raw("\"strip\":null,\n");
    return;
  }
  data.Numbers("\"strip\":{{\"fromNs\":{},\"toNs\":{},\n",
               strip->from_ns - std::min(strip->from_ns, start_ns),
               strip->to_ns - std::min(strip->to_ns, start_ns));
  data.Array("lanes", strip->lanes,
             [&](const StripLane& lane) { WriteLane(lane, start_ns, data); });
  data.Raw(",\n\"choice\":");
  if (strip->what.empty()) {
    data.Raw("null");
  } else {
    WriteChoice(*strip, node_of_path, data);
  }
  data.Raw("},\n");
}

}  // namespace xpu
