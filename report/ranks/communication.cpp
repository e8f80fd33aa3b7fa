#include "report/ranks/communication.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_set>
#include <utility>

#include "report/base/intervals.h"
#include "report/ranks/collectives.h"
#include "report/workload/step_selection.h"

namespace xpu {
namespace {

// A kernel, and when it was launched: that says which step it is of, whenever the GPU ran it.
struct RankKernel {
  uint64_t launched_ns = 0;
  Interval ran;
  bool communicates = false;
};
using RankKernels = std::vector<RankKernel>;

// In order of their launches.
std::map<uint32_t, RankKernels> KernelsOf(const Analysis& analysis) {
  std::map<uint32_t, RankKernels> all;
  std::map<StringId, bool> is_nccl;
  std::unordered_set<uint32_t> collective;  // kernels of other libraries too
  for (const Collective& one : CollectivesOf(analysis).all) {
    for (const CollectivePart& part : one.parts) collective.insert(part.work);
  }
  for (const uint32_t i : analysis.Work().places()) {
    const GpuWork work = analysis.correlation.work[i];
    if (work.kind != WorkKind::kKernel || !work.timed) continue;
    const uint32_t rank = analysis.job.Of(work.instance);
    if (rank == Job::kNone) continue;
    const StringId name = analysis.model.events.kernels.Get<&Kernel::name>(work.index);
    const auto [known, is_new] = is_nccl.try_emplace(name);
    if (is_new) known->second = IsNcclKernel(analysis.model.Text(name));
    all[rank].push_back(
        {work.called_ns, {work.start_ns, work.end_ns}, known->second || collective.contains(i)});
  }
  for (auto& [rank, kernels] : all) {
    std::stable_sort(kernels.begin(), kernels.end(), [](const RankKernel& a, const RankKernel& b) {
      return a.launched_ns < b.launched_ns;
    });
  }
  return all;
}

// The steps of each process, by pid.
struct RankSteps {
  std::vector<Step> steps;
  size_t warm_up = 0;
};

std::map<uint32_t, RankSteps> StepsOf(Analysis& analysis, const StepDefinition& definition) {
  std::map<uint32_t, RankSteps> found;
  for (StepSeries& series : ShownSteps(FindSteps(analysis, definition), {}, analysis.shown)) {
    RankSteps& of = found[series.thread.pid];
    if (!of.steps.empty()) continue;
    of.steps = std::move(series.steps);
    of.warm_up = series.warm_up;
  }
  return found;
}

// Adds the kernels [begin, end) that belong together.
void Add(const RankKernel* begin, const RankKernel* end, Communication& row) {
  std::vector<Interval> communication;
  std::vector<Interval> computation;
  for (const RankKernel* kernel = begin; kernel != end; ++kernel) {
    (kernel->communicates ? communication : computation).push_back(kernel->ran);
  }
  Unite(communication);
  Unite(computation);
  row.communication_ns += LengthNs(communication);
  row.computation_ns += LengthNs(computation);
  row.both_ns += LengthNs(Intersection(communication, computation));
}

Communication OfStep(const RankKernels& kernels, const Step& step, uint32_t rank, size_t number) {
  const auto place = [&](uint64_t ns) {
    return std::lower_bound(
        kernels.data(), kernels.data() + kernels.size(), ns,
        [](const RankKernel& kernel, uint64_t time) { return kernel.launched_ns < time; });
  };
  Communication row{.rank = rank, .steps = 1, .step = number};
  row.duration_ns = step.end_ns - step.start_ns;
  Add(place(step.start_ns), place(step.end_ns), row);
  return row;
}

Communication OfAll(const RankKernels& kernels, uint32_t rank) {
  Communication row{.rank = rank};
  uint64_t first_ns = std::numeric_limits<uint64_t>::max();
  uint64_t last_ns = 0;
  for (const RankKernel& kernel : kernels) {
    first_ns = std::min(first_ns, kernel.ran.start_ns);
    last_ns = std::max(last_ns, kernel.ran.end_ns);
  }
  row.duration_ns = last_ns - first_ns;
  Add(kernels.data(), kernels.data() + kernels.size(), row);
  return row;
}

Communication SumOf(const std::vector<Communication>& steps, size_t warm_up) {
  Communication sum = steps.back();
  for (size_t i = std::min(warm_up, steps.size() - 1); i + 1 < steps.size(); ++i) {
    ++sum.steps;
    sum.duration_ns += steps[i].duration_ns;
    sum.communication_ns += steps[i].communication_ns;
    sum.computation_ns += steps[i].computation_ns;
    sum.both_ns += steps[i].both_ns;
  }
  return sum;
}

}  // namespace

std::vector<Communication> FindCommunication(Analysis& analysis, const StepDefinition& steps,
                                             bool each_step) {
  std::vector<Communication> rows;
  const std::map<uint32_t, RankSteps> all_steps = StepsOf(analysis, steps);
  for (const auto& [rank, kernels] : KernelsOf(analysis)) {
    const auto communicates = [](const RankKernel& kernel) { return kernel.communicates; };
    if (std::none_of(kernels.begin(), kernels.end(), communicates)) continue;
    std::vector<Communication> each;
    const auto found = all_steps.find(analysis.job.ranks()[rank].pid);
    if (found != all_steps.end()) {
      for (size_t i = 0; i < found->second.steps.size(); ++i) {
        each.push_back(OfStep(kernels, found->second.steps[i], rank, i));
      }
    }
    // The steps that recur most often may be something else than training.
    const bool has_any = std::any_of(each.begin(), each.end(), [](const Communication& step) {
      return step.communication_ns != 0;
    });
    if (!has_any) {
      rows.push_back(OfAll(kernels, rank));
    } else if (each_step) {
      rows.insert(rows.end(), each.begin(), each.end());
    } else {
      rows.push_back(SumOf(each, found->second.warm_up));
    }
  }
  return rows;
}

}  // namespace xpu
