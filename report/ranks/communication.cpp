#include "report/ranks/communication.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "report/ranks/collectives.h"

namespace xpu {
namespace {

struct Span {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};
using Spans = std::vector<Span>;

Spans United(Spans spans) {
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.start_ns < b.start_ns; });
  Spans united;
  for (const Span& span : spans) {
    if (united.empty() || span.start_ns > united.back().end_ns) {
      united.push_back(span);
    } else {
      united.back().end_ns = std::max(united.back().end_ns, span.end_ns);
    }
  }
  return united;
}

Spans Common(const Spans& a, const Spans& b) {
  Spans common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint64_t start_ns = std::max(a[i].start_ns, b[j].start_ns);
    const uint64_t end_ns = std::min(a[i].end_ns, b[j].end_ns);
    if (start_ns < end_ns) common.push_back({start_ns, end_ns});
    (a[i].end_ns < b[j].end_ns ? i : j) += 1;
  }
  return common;
}

uint64_t Within(const Spans& spans, const Span& window) {
  uint64_t ns = 0;
  auto at = std::lower_bound(spans.begin(), spans.end(), window.start_ns,
                             [](const Span& span, uint64_t time) { return span.end_ns <= time; });
  for (; at != spans.end() && at->start_ns < window.end_ns; ++at) {
    ns += std::min(at->end_ns, window.end_ns) - std::max(at->start_ns, window.start_ns);
  }
  return ns;
}

struct RankSpans {
  Spans communication;
  Spans computation;
  Spans both;
};

std::map<uint32_t, RankSpans> SpansOf(const Analysis& analysis) {
  std::map<uint32_t, RankSpans> all;
  std::map<StringId, bool> is_nccl;
  for (const GpuWork& work : analysis.Work()) {
    if (work.kind != WorkKind::kKernel || !work.timed) continue;
    const uint32_t rank = analysis.job.Of(work.instance);
    if (rank == Job::kNone) continue;
    const StringId name = analysis.model.events.kernels.Get<&Kernel::name>(work.index);
    const auto [known, is_new] = is_nccl.try_emplace(name);
    if (is_new) known->second = IsNcclKernel(analysis.model.Text(name));
    RankSpans& spans = all[rank];
    (known->second ? spans.communication : spans.computation)
        .push_back({work.start_ns, work.end_ns});
  }
  for (auto& [rank, spans] : all) {
    spans.communication = United(std::move(spans.communication));
    spans.computation = United(std::move(spans.computation));
    spans.both = Common(spans.communication, spans.computation);
  }
  return all;
}

// The windows of the steps of each process, by pid.
std::map<uint32_t, std::pair<std::vector<Span>, size_t>> StepsOf(Analysis& analysis,
                                                                 const StepDefinition& definition) {
  std::map<uint32_t, std::pair<std::vector<Span>, size_t>> steps;
  for (const StepSeries& series : FindSteps(analysis, definition)) {
    auto& [windows, warm_up] = steps[series.thread.pid];
    if (!windows.empty()) continue;
    for (const Step& step : series.steps) windows.push_back({step.begin_ns, step.end_ns});
    warm_up = series.warm_up;
  }
  return steps;
}

void Add(const RankSpans& spans, const Span& window, Communication& row) {
  row.duration_ns += window.end_ns - window.start_ns;
  row.communication_ns += Within(spans.communication, window);
  row.computation_ns += Within(spans.computation, window);
  row.both_ns += Within(spans.both, window);
}

Span WholeOf(const RankSpans& spans) {
  Span whole = {spans.communication.front().start_ns, spans.communication.back().end_ns};
  if (spans.computation.empty()) return whole;
  whole.start_ns = std::min(whole.start_ns, spans.computation.front().start_ns);
  whole.end_ns = std::max(whole.end_ns, spans.computation.back().end_ns);
  return whole;
}

}  // namespace

std::vector<Communication> FindCommunication(Analysis& analysis, const StepDefinition& steps,
                                             bool each_step) {
  std::vector<Communication> rows;
  const auto windows = StepsOf(analysis, steps);
  for (const auto& [rank, spans] : SpansOf(analysis)) {
    if (spans.communication.empty()) continue;
    const auto found = windows.find(analysis.job.ranks()[rank].pid);
    Communication row{.rank = rank};
    if (found == windows.end() || found->second.first.empty()) {
      Add(spans, WholeOf(spans), row);
      rows.push_back(row);
      continue;
    }
    const auto& [of_rank, warm_up] = found->second;
    for (size_t i = each_step ? 0 : std::min(warm_up, of_rank.size() - 1); i < of_rank.size();
         ++i) {
      ++row.steps;
      row.step = i;
      Add(spans, of_rank[i], row);
      if (!each_step) continue;
      rows.push_back(row);
      row = {.rank = rank};
    }
    if (!each_step) rows.push_back(row);
  }
  return rows;
}

}  // namespace xpu
