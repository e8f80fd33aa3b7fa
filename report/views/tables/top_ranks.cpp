// Tables of jobs of many ranks: collectives, stragglers, overlap, clocks of hosts.
#include <map>
#include <tuple>

#include "report/model/recorded_time.h"
#include "report/ranks/collectives.h"
#include "report/ranks/communication.h"
#include "report/ranks/late_ranks.h"
#include "report/ranks/rank_sums.h"
#include "report/views/tables/top_rows.h"

namespace xpu {
namespace {

std::string CommunicatorText(const Collective& collective) {
  return collective.match == CollectiveMatch::kByNvtx
             ? Format("{:#x}", collective.communicator)
             : Format("stream {}", collective.communicator);
}

std::string MatchText(const Collective& collective) {
  std::string text = collective.match == CollectiveMatch::kByNvtx ? "NVTX" : "order of kernels";
  if (collective.is_grouped()) text += ", grouped";
  if (!collective.agrees) text += ", ranks differ";
  return text;
}

std::string BandwidthText(double gigabytes) {
  return gigabytes == 0 ? "" : Format("{:.3f}", gigabytes);
}

std::string BytesText(const Collective& collective) {
  return collective.bytes == 0 ? "" : std::to_string(collective.bytes);
}

// Collectives of the same sort.
struct CollectiveRow {
  const Collective* first = nullptr;
  uint64_t complete = 0;
  std::vector<uint64_t> transfers_ns;
  uint64_t transfer_ns = 0;
  uint64_t waited_ns = 0;
  uint64_t count = 0;
};

uint64_t MedianOf(std::vector<uint64_t>& values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

std::string RankName(const Analysis& analysis, uint32_t rank) {
  return std::to_string(analysis.job.ranks()[rank].number);
}

// "3", and with its GPU "3/1" of a process that drives several.
std::string MemberName(const Analysis& analysis, const CollectivePart& part) {
  std::string name = RankName(analysis, part.rank);
  if (CollectivesOf(analysis).DrivesSeveral(part.rank)) AppendFormat(name, "/{}", part.gpu);
  return name;
}

std::string HostName(const Analysis& analysis, uint32_t rank) {
  return analysis.job.hosts()[analysis.job.ranks()[rank].host];
}

std::string_view CauseText(LateCause cause) {
  switch (cause) {
    case LateCause::kGpuWork:
      return "GPU work";
    case LateCause::kCpu:
      return "CPU";
    case LateCause::kNotRunning:
      return "not running";
    case LateCause::kUnknown:
      break;
  }
  return "not known";
}

}  // namespace

void FillCollectives(TableSource& source, Table& table) {
  const std::shared_ptr<const Collectives> found = ShownCollectives(source.analysis);
  std::map<std::tuple<uint64_t, CollectiveMatch, std::string, uint64_t, std::string>, CollectiveRow>
      kinds;
  std::map<uint64_t, size_t> most;  // ranks that arrived, by communicator
  for (const Collective& collective : found->all) {
    size_t& of = most[collective.communicator];
    of = std::max(of, collective.arrived);
  }
  for (const Collective& collective : found->all) {
    CollectiveRow& row = kinds[{collective.communicator, collective.match, collective.operation,
                                collective.bytes, MatchText(collective)}];
    if (row.first == nullptr) row.first = &collective;
    ++row.count;
    if (collective.is_complete()) ++row.complete;
    row.waited_ns = AddSaturated(row.waited_ns, collective.waited_ns());
    // When the last one arrived is not known of those that fewer ranks have recorded than others.
    if (collective.arrived < 2 || collective.arrived < most[collective.communicator]) continue;
    row.transfers_ns.push_back(collective.transfer_ns());
    row.transfer_ns = AddSaturated(row.transfer_ns, collective.transfer_ns());
  }
  std::vector<CollectiveRow> rows;
  for (auto& [key, row] : kinds) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [](const CollectiveRow& a, const CollectiveRow& b) {
    return a.transfer_ns > b.transfer_ns;
  });
  SetRows(table, std::move(rows), [found](const CollectiveRow& row, Row& cells) {
    const Collective& one = *row.first;
    std::vector<uint64_t> transfers = row.transfers_ns;
    const uint64_t median = MedianOf(transfers);
    const auto count = static_cast<double>(std::max<size_t>(transfers.size(), 1));
    const double average = static_cast<double>(row.transfer_ns) / count;
    // The kernel of a group moves the data of all of its collectives.
    const Bandwidth bandwidth =
        one.is_grouped() ? Bandwidth{} : BandwidthOf(one.operation, one.bytes, one.ranks, average);
    cells.assign({std::to_string(row.transfer_ns), std::to_string(row.count),
                  std::to_string(row.complete), std::to_string(one.ranks), BytesText(one),
                  Format("{:.1f}", average), std::to_string(median),
                  std::to_string(transfers.empty() ? 0 : transfers.front()),
                  std::to_string(transfers.empty() ? 0 : transfers.back()),
                  BandwidthText(bandwidth.algorithm), BandwidthText(bandwidth.bus),
                  std::to_string(row.waited_ns), one.operation, one.reduction,
                  CommunicatorText(one), MatchText(one)});
  });
}

void FillCollectiveTrace(TableSource& source, Table& table) {
  const Analysis& analysis = source.analysis;
  const uint64_t start_ns = StartOf(analysis.model);
  std::vector<Collective> rows = ShownCollectives(analysis)->all;
  SetRows(table, std::move(rows), [&analysis, start_ns](const Collective& row, Row& cells) {
    const double transfer_ns = static_cast<double>(row.transfer_ns());
    const Bandwidth bandwidth = row.is_grouped()
                                    ? Bandwidth{}
                                    : BandwidthOf(row.operation, row.bytes, row.ranks, transfer_ns);
    std::string arrivals;
    for (const CollectivePart& part : row.parts) {
      AppendFormat(arrivals, "{}{}:", arrivals.empty() ? "" : " ", MemberName(analysis, part));
      arrivals += part.has_times() ? Format("+{}", part.arrived_ns - row.first_arrival_ns) : "?";
    }
    const bool has_last = row.arrived >= 2;
    const uint64_t from_start = row.first_arrival_ns - std::min(row.first_arrival_ns, start_ns);
    cells.assign({row.arrived == 0 ? "" : std::to_string(from_start),
                  std::to_string(row.transfer_ns()), std::to_string(row.sequence),
                  std::to_string(row.arrived), std::to_string(row.ranks), BytesText(row),
                  BandwidthText(bandwidth.algorithm), BandwidthText(bandwidth.bus),
                  std::to_string(row.last_arrival_ns - row.first_arrival_ns),
                  std::to_string(row.waited_ns()),
                  has_last ? RankName(analysis, row.parts[row.last].rank) : "", row.operation,
                  CommunicatorText(row), MatchText(row), std::move(arrivals)});
  });
}

void FillRanks(TableSource& source, Table& table) {
  const Analysis& analysis = source.analysis;
  std::vector<RankSum> rows =
      FindRankSums(source.analysis, source.busy(), source.options.steps.definition);
  SetRows(table, std::move(rows), [&analysis](const RankSum& row, Row& cells) {
    const JobRank& rank = analysis.job.ranks()[row.rank];
    cells.assign(
        {std::to_string(row.awaited_ns), std::to_string(row.waited_ns),
         row.step_ns == 0 ? "" : std::to_string(row.step_ns), Percent(row.busy_ns, row.active_ns),
         Format("{:.1f}", row.communication.exposed_percent()), RankName(analysis, row.rank),
         std::to_string(HostId(rank.pid)), HostName(analysis, row.rank)});
  });
}

void FillStragglers(TableSource& source, Table& table) {
  Analysis& analysis = source.analysis;
  const std::shared_ptr<const Collectives> collectives = ShownCollectives(analysis);
  const auto paths = std::make_shared<CallPaths>(analysis, PathOptions());
  std::vector<Straggler> rows = FindStragglers(analysis, *collectives, *paths);
  if (AreImpossible(*collectives)) AppendFormat(source.notes, "{}\n", kImpossible);
  uint64_t whole = 0;
  for (const Straggler& row : rows) whole = AddSaturated(whole, row.waited_ns);
  SetRows(table, std::move(rows), [&analysis, paths, whole](const Straggler& row, Row& cells) {
    cells.assign({Percent(row.waited_ns, whole), std::to_string(row.waited_ns),
                  std::to_string(row.delay_ns), std::to_string(row.longest_ns),
                  std::to_string(row.count), RankName(analysis, row.rank), std::to_string(row.gpu),
                  HostName(analysis, row.rank), std::string(CauseText(row.cause)),
                  FoldedText(analysis.frames, paths->tree().Path(row.path))});
  });
}

namespace {

void FillCommunication(TableSource& source, bool each_step, Table& table) {
  const Analysis& analysis = source.analysis;
  std::vector<Communication> rows =
      FindCommunication(source.analysis, source.options.steps.definition, each_step);
  SetRows(table, std::move(rows), [&analysis, each_step](const Communication& row, Row& cells) {
    cells.assign(
        {RankName(analysis, row.rank),
         each_step ? (row.steps == 0 ? "" : std::to_string(row.step)) : std::to_string(row.steps),
         std::to_string(row.duration_ns), std::to_string(row.communication_ns),
         std::to_string(row.computation_ns), std::to_string(row.both_ns),
         std::to_string(row.exposed_ns()), Percent(row.both_ns, row.communication_ns),
         Format("{:.1f}", row.exposed_percent()), HostName(analysis, row.rank)});
  });
}

}  // namespace

void FillOverlap(TableSource& source, Table& table) { FillCommunication(source, false, table); }
void FillOverlapTrace(TableSource& source, Table& table) { FillCommunication(source, true, table); }

void FillHostClocks(TableSource& source, Table& table) {
  std::vector<HostClock> rows = source.analysis.model.host_clocks;
  SetRows(table, std::move(rows), [](const HostClock& row, Row& cells) {
    const bool is_refined = row.collectives != 0;
    cells.assign({std::to_string(row.captures), is_refined ? std::to_string(row.ahead_ns) : "",
                  is_refined ? Format("{:.3f}", row.drift * 1e6) : "",
                  is_refined ? std::to_string(row.residual_ns) : "",
                  is_refined ? std::to_string(row.collectives) : "", row.host,
                  is_refined ? "collectives" : "wall clock"});
  });
}

}  // namespace xpu
