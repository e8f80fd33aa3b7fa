#include <algorithm>
#include <map>

#include "format/base/counted.h"
#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/base/text.h"
#include "report/ranks/collectives.h"
#include "report/views/summary/summary_sections.h"

namespace xpu {
namespace {

// "0-6, 8-29"; `numbers` in order.
std::string RangesText(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] <= numbers[last] + 1) ++last;
    AppendFormat(text, "{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (last != i) AppendFormat(text, "-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

std::string_view RuntimeName(ContainerRuntime runtime) {
  switch (runtime) {
    case ContainerRuntime::kDocker:
      return "Docker";
    case ContainerRuntime::kContainerd:
      return "containerd";
    case ContainerRuntime::kCriO:
      return "CRI-O";
    case ContainerRuntime::kPodman:
      return "Podman";
    case ContainerRuntime::kUnknown:
      break;
  }
  return {};
}

void WriteRanks(const Analysis& analysis, SummaryText& text) {
  std::vector<uint32_t> numbers;
  std::map<uint32_t, size_t> hosts;
  int32_t world_size = -1;
  for (const JobRank& rank : analysis.job.ranks()) {
    if (!rank.is_known) continue;
    numbers.push_back(rank.number);
    ++hosts[rank.host];
    world_size = std::max(world_size, rank.world_size);
  }
  if (numbers.empty()) return;
  std::string line = RangesText(numbers);
  if (world_size > 0) AppendFormat(line, " of {}", world_size);
  if (hosts.size() > 1) AppendFormat(line, ", on {} hosts", hosts.size());
  std::string jobs;
  for (const RankInfo& info : analysis.model.events.rank_infos) {
    const std::string_view job = analysis.model.Text(info.job_id);
    if (!job.empty() && jobs.empty()) jobs = Format(", job {}", job);
  }
  text.Paragraph("ranks", line + jobs);
}

void WriteClocks(const Analysis& analysis, SummaryText& text) {
  const std::vector<HostClock>& clocks = analysis.model.host_clocks;
  if (clocks.size() < 2) return;
  const HostClock* worst = nullptr;
  size_t refined = 0;
  for (const HostClock& clock : clocks) {
    if (clock.collectives == 0) continue;
    ++refined;
    if (worst == nullptr || clock.residual_ns > worst->residual_ns) worst = &clock;
  }
  if (worst == nullptr) return text.Paragraph("clocks", "of the hosts are aligned by wall clock");
  std::string line = Format("of {} hosts are aligned by collectives, to within {} ({})",
                            refined + 1, HumanDuration(worst->residual_ns), worst->host);
  if (refined + 1 < clocks.size()) {
    AppendFormat(line, "; of {} by wall clock", clocks.size() - refined - 1);
  }
  text.Paragraph("clocks", line + ": --table host_clock_sum");
}

void WriteCollectives(const Analysis& analysis, SummaryText& text) {
  if (!MayHaveCollectives(analysis.model)) return;
  const Collectives found = FindCollectives(analysis.trace());
  if (found.all.empty()) return;
  size_t complete = 0;
  size_t by_order = 0;
  uint64_t waited_ns = 0;
  std::map<uint32_t, uint64_t> by_rank;
  for (const Collective& collective : found.all) {
    complete += collective.is_complete() ? 1 : 0;
    by_order += collective.match == CollectiveMatch::kByOrder ? 1 : 0;
    if (collective.arrived < 2) continue;
    waited_ns = AddSaturated(waited_ns, collective.waited_ns());
    uint64_t& of_rank = by_rank[collective.parts[collective.last].rank];
    of_rank = AddSaturated(of_rank, collective.waited_ns());
  }
  std::string line =
      Format("{}, {} with all ranks", WithThousands(found.all.size()), WithThousands(complete));
  if (by_order != 0) AppendFormat(line, ", {} matched by order", WithThousands(by_order));
  line += ": --table collective_sum";
  text.Paragraph("NCCL", line);
  if (by_rank.empty() || waited_ns == 0) return;
  const auto worst =
      std::max_element(by_rank.begin(), by_rank.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const JobRank& rank = analysis.job.ranks()[worst->first];
  const std::string& host = analysis.job.hosts()[rank.host];
  text.Paragraph("", Format("ranks waited {} for others, {:.0f} % of it for rank {}{}{}: "
                            "--table straggler_sum",
                            HumanDuration(waited_ns), PercentOf(worst->second, waited_ns),
                            rank.number, host.empty() ? "" : " on ", host));
}

}  // namespace

void WriteJob(const Analysis& analysis, SummaryText& text) {
  WriteRanks(analysis, text);
  WriteClocks(analysis, text);
  WriteCollectives(analysis, text);
}

void WriteContainers(const Analysis& analysis, SummaryText& text) {
  constexpr size_t kMost = 8;
  constexpr size_t kShortId = 12;
  std::map<std::string, std::pair<const ContainerInfo*, size_t>> found;  // by name: processes in it
  for (uint32_t i = 1; i <= analysis.processes.size(); ++i) {
    const ContainerInfo* container = analysis.containers.Of(ProcessId{i}, UINT64_MAX);
    if (container == nullptr) continue;
    auto& [info, count] = found[analysis.containers.NameOf(*container)];
    info = container;
    ++count;
  }
  if (found.empty()) return;
  std::string line;
  size_t named = 0;
  for (const auto& [name, of] : found) {
    if (named++ == kMost) {
      AppendFormat(line, ", ... {} in all", found.size());
      break;
    }
    const auto& [info, count] = of;
    const std::string_view id = analysis.model.Text(info->id).substr(0, kShortId);
    AppendFormat(line, "{}{} (", line.empty() ? "" : ", ", name);
    if (info->runtime != ContainerRuntime::kUnknown) {
      AppendFormat(line, "{} ", RuntimeName(info->runtime));
    }
    if (name != id) AppendFormat(line, "{}, ", id);
    AppendFormat(line, "{})", Counted(count, "process", "processes"));
  }
  text.Paragraph("container", line);
}

}  // namespace xpu
