#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/base/text.h"
#include "report/query/gpu_idle.h"
#include "report/query/off_cpu_sums.h"
#include "report/query/off_cpu_waits.h"
#include "report/query/readable_paths.h"
#include "report/views/summary/summary_sections.h"

namespace xpu {
namespace {

void WriteStates(const Analysis& analysis, SummaryText& text) {
  const std::vector<ThreadStates> threads = FindThreadStates(analysis);
  text.Heading("Threads", ": how they spent their time");
  text.Names("  running%  waiting%  runnable%       time  thread");
  for (size_t i = 0; i < std::min(threads.size(), kSummaryRows); ++i) {
    const ThreadStates& thread = threads[i];
    const uint64_t whole = thread.total_ns();
    text.Row(Format("  {:>8.1f}  {:>8.1f}  {:>9.1f}  {:>9}  ", PercentOf(thread.running_ns, whole),
                    PercentOf(thread.waiting_ns, whole), PercentOf(thread.runnable_ns, whole),
                    HumanDuration(whole)),
             analysis.processes.ThreadTitle(thread.owner.process, thread.owner.tid));
  }
  if (threads.size() > kSummaryRows) {
    text.Names(Format("  ... {} more: --flamegraph --mode wall --by thread",
                      WithThousands(threads.size() - kSummaryRows)));
  }
}

void WriteReasons(const Analysis& analysis, SummaryText& text) {
  const WaitReasons reasons(analysis);
  NamedValues values;
  bool has_kernel_threads = false;
  for (const Owned<OffCpuWait>& wait : analysis.OffCpuWaits()) {
    if (!IsWait(wait.state)) continue;
    if (IsOfKernelThread(analysis, wait)) {
      has_kernel_threads = true;
      continue;
    }
    values[reasons.Of(wait)].push_back(TimesOf(analysis, wait).blocked_ns);
  }
  if (values.empty()) return;
  const std::vector<Statistics> rows = SummarizeByTotal(values);
  const uint64_t whole = SumOfTotals(rows);
  text.Heading("Waits", Format(": {}{}", HumanDuration(whole),
                               has_kernel_threads ? ", without those of kernel threads" : ""));
  text.Names("  time%     total     count   longest  reason");
  for (size_t i = 0; i < std::min(rows.size(), kSummaryRows); ++i) {
    const Statistics& row = rows[i];
    text.Row(Format("  {:>5.1f} {:>9} {:>9} {:>9}  ", PercentOf(row.total, whole),
                    HumanDuration(row.total), WithThousands(row.count), HumanDuration(row.largest)),
             row.name);
  }
  text.Names("  by stack: --top --table off_cpu_sum; who ended them: wakeup_sum, lock_sum");
}

// The time in which a main thread waited and a GPU of its process was idle, by reason and path.
using IdleWaits = std::map<std::pair<std::string, PathId>, uint64_t>;

IdleWaits FindIdleWaits(Analysis& analysis, CallPaths& paths) {
  ReadablePaths readable(analysis, paths.tree());
  std::map<uint32_t, std::vector<const Owned<OffCpuWait>*>> main_waits;
  for (const Owned<OffCpuWait>& wait : analysis.OffCpuWaits()) {
    if (wait.tid == wait.pid && IsWait(wait.state)) main_waits[wait.pid].push_back(&wait);
  }
  for (auto& [pid, waits] : main_waits) {
    std::sort(waits.begin(), waits.end(),
              [](const OffCpuWait* a, const OffCpuWait* b) { return a->start_ns < b->start_ns; });
    // Waits of one thread overlap only in a damaged capture, where each gap would meet all of them.
    uint64_t until_ns = 0;
    std::erase_if(waits, [&](const OffCpuWait* wait) {
      if (wait->start_ns < until_ns || wait->end_ns < wait->start_ns) return true;
      until_ns = wait->end_ns;
      return false;
    });
  }
  const WaitReasons reasons(analysis);
  IdleWaits found;
  const auto add = [&](const Owned<OffCpuWait>& wait, uint64_t ns) {
    uint64_t& sum_ns = found[{reasons.Of(wait), readable.Of(paths.OfWait(wait))}];
    sum_ns = AddSaturated(sum_ns, ns);
  };
  // How many more gaps each wait is in the middle of than the one before it: there may be as many
  // GPUs as waits.
  std::map<uint32_t, std::vector<uint64_t>> middles;
  for (const IdleGap& gap : FindAllGaps(analysis)) {
    const uint32_t pid = OwnerOf(analysis, gap).pid;
    const auto& waits = main_waits[pid];
    const uint64_t gap_end_ns = gap.start_ns + gap.ns;
    const auto first =
        std::lower_bound(waits.begin(), waits.end(), gap.start_ns,
                         [](const OffCpuWait* wait, uint64_t ns) { return wait->end_ns < ns; });
    const auto end =
        std::lower_bound(first, waits.end(), gap_end_ns,
                         [](const OffCpuWait* wait, uint64_t ns) { return wait->start_ns < ns; });
    const auto add_edge = [&](const Owned<OffCpuWait>& wait) {
      const uint64_t end_ns = std::min(wait.start_ns + TimesOf(wait).blocked_ns, gap_end_ns);
      const uint64_t start_ns = std::max(wait.start_ns, gap.start_ns);
      if (end_ns > start_ns) add(wait, end_ns - start_ns);
    };
    if (first != end) add_edge(**first);
    if (end - first < 2) continue;
    add_edge(**std::prev(end));
    std::vector<uint64_t>& more = middles[pid];
    more.resize(waits.size());
    ++more[static_cast<size_t>(first + 1 - waits.begin())];
    --more[static_cast<size_t>(std::prev(end) - waits.begin())];
  }
  for (const auto& [pid, more] : middles) {
    uint64_t gaps = 0;
    for (size_t i = 0; i < more.size(); ++i) {
      gaps += more[i];
      const Owned<OffCpuWait>& wait = *main_waits[pid][i];
      const uint64_t blocked_ns = TimesOf(wait).blocked_ns;
      if (gaps > 0 && blocked_ns > 0) add(wait, MultiplySaturated(gaps, blocked_ns));
    }
  }
  return found;
}

void WriteIdleWaits(Analysis& analysis, SummaryText& text) {
  CallPaths paths(analysis, {});
  const IdleWaits found = FindIdleWaits(analysis, paths);
  if (found.empty()) return;
  std::vector<std::pair<uint64_t, const IdleWaits::value_type*>> order;
  order.reserve(found.size());
  for (const auto& entry : found) order.emplace_back(entry.second, &entry);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  text.Heading("Waits of the main thread while a GPU was idle");
  text.Names("      time  reason, and where");
  for (size_t i = 0; i < std::min(order.size(), kSummaryRows); ++i) {
    const auto& [reason, path] = order[i].second->first;
    text.Row(Format("  {:>8}  ", HumanDuration(order[i].first)),
             Format("{}: {}", reason, FoldedText(analysis.frames, paths.tree().Path(path))));
  }
}

}  // namespace

void WriteDeadlocks(const Analysis& analysis, SummaryText& text) {
  for (const Deadlock& deadlock : FindDeadlocks(analysis)) {
    std::string all;
    for (const Owned<OffCpuWait>* wait : deadlock) {
      if (!all.empty()) all += ", ";
      AppendFormat(all, "{} waits for {:#x}, which {} holds",
                   analysis.processes.ThreadTitle(wait->process, wait->tid), wait->argument,
                   analysis.processes.ThreadTitle(wait->process, wait->lock_holder));
    }
    text.Paragraph("deadlock", all);
  }
}

// The waits that were listed at a moment, when the GPU of their process finished nothing.
void WriteListedWaits(Analysis& analysis, SummaryText& text) {
  CallPaths paths(analysis, {});
  ReadablePaths readable(analysis, paths.tree());
  const WaitReasons reasons(analysis);
  text.Heading("Threads that waited", " while the GPU finished nothing");
  for (const Owned<OffCpuWait>& wait : analysis.OffCpuWaits()) {
    if (!IsListed(wait)) continue;
    text.Row("  ", Format("{}: {}, in {}", analysis.processes.ThreadTitle(wait.process, wait.tid),
                          reasons.Of(wait), readable.OwnFunctions(paths.OfWait(wait))));
  }
}

void WriteOffCpu(Analysis& analysis, SummaryText& text) {
  bool has_listed = false;
  bool has_times = !analysis.OffCpuSums().empty();
  for (const Owned<OffCpuWait>& wait : analysis.OffCpuWaits()) {
    (IsListed(wait) ? has_listed : has_times) = true;
  }
  if (has_listed) WriteListedWaits(analysis, text);
  if (!has_times) return;
  WriteStates(analysis, text);
  WriteReasons(analysis, text);
  WriteIdleWaits(analysis, text);
}

}  // namespace xpu
