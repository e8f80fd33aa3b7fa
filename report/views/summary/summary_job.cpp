#include <algorithm>
#include <map>

#include "format/base/counted.h"
#include "format/base/text.h"
#include "report/base/text.h"
#include "report/ranks/rank_sums.h"
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

std::string KernelsText(uint64_t count) {
  return Format("{} kernel{}", WithThousands(count), count == 1 ? "" : "s");
}

void WriteCollectives(const Analysis& analysis, SummaryText& text) {
  const std::shared_ptr<const Collectives> shown = ShownCollectives(analysis);
  const Collectives& found = *shown;
  if (found.all.empty()) {
    if (found.unmatched_kernels == 0) return;
    return text.Paragraph("NCCL", Format("{}, whose collectives could not be matched: at no offset "
                                         "between the ranks does each end after all have begun",
                                         KernelsText(found.unmatched_kernels)));
  }
  size_t complete = 0;
  size_t by_order = 0;
  for (const Collective& collective : found.all) {
    complete += collective.is_complete() ? 1 : 0;
    by_order += collective.match == CollectiveMatch::kByOrder ? 1 : 0;
  }
  std::string line =
      Format("{}, {} with all ranks", WithThousands(found.all.size()), WithThousands(complete));
  if (by_order != 0) AppendFormat(line, ", {} matched by order", WithThousands(by_order));
  if (found.unmatched_kernels != 0) {
    AppendFormat(line, "; {} not matched", KernelsText(found.unmatched_kernels));
  }
  text.Paragraph("NCCL", line + ": --table collective_sum");
  if (found.hidden != 0) {
    text.Paragraph("",
                   Format("{} calls are in CUDA graphs, whose replays are recorded as a whole: who "
                          "waits in them is not known (xpu-record --cuda-graph-trace=node)",
                          WithThousands(found.hidden)));
  }
  if (AreImpossible(found)) text.Paragraph("", kImpossible);
}

}  // namespace

void WriteJob(const Analysis& analysis, SummaryText& text) {
  WriteRanks(analysis, text);
  WriteClocks(analysis, text);
  WriteCollectives(analysis, text);
}

void WriteRankSums(Analysis& analysis, const std::vector<GpuBusy>& busy,
                   const StepDefinition& steps, SummaryText& text) {
  constexpr size_t kMost = 8;
  const std::vector<RankSum> rows = FindRankSums(analysis, busy, steps);
  if (rows.size() < 2) return;
  text.Heading("Ranks", ", the most waited for first");
  text.Names("       step  busy%  exposed%    waiting  waited for  rank");
  for (size_t i = 0; i < std::min(rows.size(), kMost); ++i) {
    const RankSum& row = rows[i];
    const JobRank& rank = analysis.job.ranks()[row.rank];
    const std::string host =
        analysis.job.hosts().size() > 1 ? " on " + analysis.job.hosts()[rank.host] : "";
    text.Row(Format("  {:>9} {:>6.1f} {:>9.1f} {:>10} {:>11}  ",
                    row.step_ns == 0 ? "-" : HumanDuration(row.step_ns),
                    PercentOf(row.busy_ns, row.active_ns), row.communication.exposed_percent(),
                    HumanDuration(row.waited_ns), HumanDuration(row.awaited_ns)),
             Format("{}{} (pid {})", rank.number, host, HostId(rank.pid)));
  }
  text.Names(rows.size() > kMost ? Format("  ... {} more: --top --table rank_sum",
                                          WithThousands(rows.size() - kMost))
                                 : "  why: --top --table straggler_sum");
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
