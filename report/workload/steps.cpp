#include "report/workload/steps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "format/base/check.h"
#include "format/base/counted.h"
#include "format/base/saturated.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "report/analysis/filter.h"
#include "report/base/intervals.h"
#include "report/base/median.h"
#include "report/base/text.h"
#include "report/query/gpu_busy.h"
#include "report/workload/recurrence.h"

namespace xpu {
namespace {

// A thread that launches less has no steps.
constexpr size_t kFewestLaunches = 8;
// The most callers of all sites of a thread; real programs have thousands of sites with up to a
// hundred callers.
constexpr size_t kMostCallers = size_t{1} << 23;
// The first steps are a warm-up as long as each takes so many times the median.
constexpr uint64_t kWarmUpTimes = 3;

bool IsGpuWork(const GpuWork& work) { return work.kind != WorkKind::kSynchronization; }

uint64_t MedianNs(const StepSeries& series) {
  std::vector<uint64_t> durations;
  for (const Step& step : series.steps) durations.push_back(step.end_ns - step.start_ns);
  return MedianOf(durations);
}

// Facts about each launch, by its place in Correlation::launches.
struct LaunchFacts {
  std::vector<bool> has_work;
  std::vector<bool> moves_data;
  std::vector<StringId> kernels;
};

LaunchFacts FactsOf(const Analysis& analysis) {
  const Correlation& correlation = analysis.correlation;
  const LoadedEvents& events = analysis.model.events;
  const size_t size = correlation.launches.size();
  LaunchFacts facts{std::vector<bool>(size), std::vector<bool>(size), std::vector<StringId>(size)};
  for (const GpuWork& work : correlation.work) {
    if (work.launch == GpuWork::kNoLaunch) continue;
    if (IsCpuWait(events, work)) facts.moves_data[work.launch] = true;
    if (!IsGpuWork(work)) continue;
    facts.has_work[work.launch] = true;
    if (work.kind == WorkKind::kKernel) {
      facts.kernels[work.launch] = events.kernels.Get<&Kernel::name>(work.index);
    }
    if (work.kind == WorkKind::kMemcpy) {
      // CUpti_ActivityMemcpyKind: HtoD, DtoH.
      const uint8_t kind = events.memcpys.Get<&Memcpy::copy_kind>(work.index);
      if (kind == 1 || kind == 2) facts.moves_data[work.launch] = true;
    }
  }
  return facts;
}

// The launches of one thread, in order of time.
struct ThreadLaunches {
  Owner owner;
  std::vector<uint32_t> places;  // in Correlation::launches
};

// Launches that start GPU work. Not of what is captured into a graph.
std::vector<ThreadLaunches> ThreadsOf(const Analysis& analysis, const LaunchFacts& facts) {
  const LaunchList& launches = analysis.correlation.launches;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> threads;
  for (uint32_t i = 0; i < launches.size(); ++i) {
    const LaunchStatus status = LaunchStatusOf(launches[i]);
    if (!facts.has_work[i] && status != LaunchStatus::kProbed && status != LaunchStatus::kUnmatched)
      continue;
    threads[{launches[i].pid, launches[i].tid}].push_back(i);
  }
  std::vector<ThreadLaunches> found;
  for (auto& [key, places] : threads) {
    if (places.size() < kFewestLaunches) continue;
    std::stable_sort(places.begin(), places.end(), [&](uint32_t a, uint32_t b) {
      return launches[a].start_ns < launches[b].start_ns;
    });
    found.push_back({launches[places.front()].owner(), std::move(places)});
  }
  return found;
}

// The sites of the launches of a thread.
class Sites {
 public:
  Sites(const Analysis& analysis, const LaunchFacts& facts) : analysis_(analysis), facts_(facts) {}

  uint32_t Of(uint32_t place) {
    const Launch& launch = analysis_.correlation.launches[place];
    const bool has_stack = launch.stack || launch.python_stack;
    const StringId kernel = has_stack ? StringId{} : facts_.kernels[place];
    const auto [found, is_new] = sites_.try_emplace(
        std::tuple(launch.stack, launch.python_stack, launch.callback_id, kernel),
        static_cast<uint32_t>(paths_.size()));
    if (is_new) {
      paths_.push_back(PathOf(launch.python_stack ? launch.python_stack : launch.stack));
    }
    return found->second;
  }
  const std::vector<SitePath>& paths() const { return paths_; }

 private:
  // Empty when all paths together have become too long.
  SitePath PathOf(StackId stack) {
    SitePath path;
    while (stack && callers_left_ > 0 && !analysis_.model.tables->IsLost(stack)) {
      --callers_left_;
      const StackNode node = analysis_.model.tables->Node(stack);
      path.callers.push_back(stack.value);
      const bool is_python = node.frame.kind == FrameKind::kPython;
      path.places.push_back(is_python ? PythonFrame::OfBits(node.frame.address).offset
                                      : node.frame.address);
      stack = node.caller;
    }
    if (callers_left_ == 0) return {};
    std::reverse(path.callers.begin(), path.callers.end());
    std::reverse(path.places.begin(), path.places.end());
    return path;
  }

  const Analysis& analysis_;
  const LaunchFacts& facts_;
  std::map<std::tuple<StackId, StackId, uint32_t, StringId>, uint32_t> sites_;
  std::vector<SitePath> paths_;
  size_t callers_left_ = kMostCallers;
};

class Finder {
 public:
  explicit Finder(Analysis& analysis)
      : analysis_(analysis), facts_(FactsOf(analysis)), interruptions_(analysis.model) {}

  std::vector<StepSeries> Detect() {
    return BestOfEach([this](const ThreadLaunches& thread) {
      return SeriesOf(thread, thread.places, std::nullopt);
    });
  }

  std::vector<StepSeries> OfFunction(const NamePattern& pattern) {
    CallPaths paths(analysis_, {});
    paths.NameAhead({.launches = true});
    std::unordered_map<PathId, bool> inside;
    return BestOfEach([&](const ThreadLaunches& thread) {
      std::vector<uint32_t> places;
      std::optional<StepSeries> calls = StepSeries{.thread = thread.owner, .steps = {}};
      bool was_inside = false;
      for (const uint32_t place : thread.places) {
        const Launch& launch = analysis_.correlation.launches[place];
        const PathId path = paths.OfLaunch(launch);
        const auto [known, is_new] = inside.try_emplace(path);
        if (is_new) known->second = IsInside(paths.tree(), path, pattern);
        if (known->second) {
          places.push_back(place);
          if (!was_inside) calls->steps.push_back({launch.start_ns, launch.end_ns});
          calls->steps.back().end_ns = std::max(launch.end_ns, calls->steps.back().end_ns);
        }
        was_inside = known->second;
      }
      return CallsOrRounds(thread, places, std::move(*calls));
    });
  }

  std::vector<StepSeries> OfRanges(const NamePattern& pattern) const {
    std::map<std::pair<uint32_t, uint32_t>, StepSeries> threads;
    std::map<std::pair<uint32_t, uint32_t>, std::vector<std::pair<uint64_t, uint64_t>>> open;
    for (const NvtxRange& range : analysis_.nvtx.all()) {
      if (range.style == NvtxStyle::kMark || !pattern.FoundIn(analysis_.nvtx.NameOf(range))) {
        continue;
      }
      const Owner owner = range.owner();
      StepSeries& series = threads[{owner.pid, owner.tid}];
      series.thread = owner;
      // The outermost of ranges within one another are the steps.
      if (!series.steps.empty() && range.start_ns < series.steps.back().end_ns) continue;
      series.steps.push_back({range.start_ns, range.end_ns});
    }
    std::vector<StepSeries> found;
    for (auto& [key, series] : threads) {
      series.regular = series.steps.size();
      found.push_back(std::move(series));
    }
    return OnePerProcess(std::move(found));
  }

 private:
  template <typename Make>
  std::vector<StepSeries> BestOfEach(Make make) {
    std::vector<StepSeries> found;
    for (const ThreadLaunches& thread : ThreadsOf(analysis_, facts_)) {
      std::optional<StepSeries> series = make(thread);
      if (series && !series->steps.empty()) found.push_back(*std::move(series));
    }
    return OnePerProcess(std::move(found));
  }

  // Keeps the thread of a process whose steps take most of the time. The first one is preferred:
  // others may work for it, as those of autograd.
  std::vector<StepSeries> OnePerProcess(std::vector<StepSeries> all) const {
    std::map<uint32_t, StepSeries> best;
    for (StepSeries& series : all) {
      DropPaused(series);
      if (series.steps.empty()) continue;
      const uint32_t pid = series.thread.pid;
      const auto [at, is_new] = best.try_emplace(pid);
      if (is_new || WeightOf(series) > WeightOf(at->second)) at->second = std::move(series);
    }
    std::vector<StepSeries> found;
    for (auto& [pid, series] : best) found.push_back(std::move(series));
    return found;
  }
  // While the recording paused nobody knows how many began: one that seems to last from one window
  // of it to the next is none.
  void DropPaused(StepSeries& series) const {
    std::erase_if(series.steps, [&](const Step& step) {
      const bool is_cut = interruptions_.Cut(step.start_ns, step.end_ns);
      if (is_cut && step.is_regular && series.regular > 0) --series.regular;
      return is_cut;
    });
  }
  // Their median counts: a loop of the start has few that take long; and how regular they are.
  static double WeightOf(const StepSeries& series) {
    const bool is_first = series.thread.pid == series.thread.tid;
    const double ns =
        static_cast<double>(MedianNs(series)) * static_cast<double>(series.steps.size());
    const double regular =
        static_cast<double>(series.regular) / static_cast<double>(series.steps.size());
    return ns * regular * (is_first ? 4 : 1);
  }

  std::optional<StepSeries> SeriesOf(const ThreadLaunches& thread,
                                     const std::vector<uint32_t>& places,
                                     std::optional<uint32_t> first_place) {
    const LaunchList& launches = analysis_.correlation.launches;
    Sites sites(analysis_, facts_);
    std::vector<SiteVisit> visits;
    for (const uint32_t place : places) {
      visits.push_back({sites.Of(place), launches[place].start_ns, facts_.moves_data[place]});
    }
    std::optional<uint32_t> first;
    if (first_place) first = sites.Of(*first_place);
    const std::optional<Recurrence> found = FindRecurrence(visits, sites.paths(), first);
    if (!found) return std::nullopt;
    StepSeries series{.thread = thread.owner,
                      .steps = {},
                      .launches = found->launches,
                      .regular = found->regular,
                      .is_detected = true,
                      .begins_by_code = found->begins_by_code};
    for (size_t i = 0; i < found->rounds.size(); ++i) {
      const Recurrence::Round& round = found->rounds[i];
      if (round.end <= round.begin) continue;
      const bool goes_on = i + 1 < found->rounds.size() && found->rounds[i + 1].begin == round.end;
      const uint64_t end_ns =
          goes_on ? launches[places[round.end]].start_ns : launches[places[round.end - 1]].end_ns;
      series.steps.push_back({visits[round.begin].time_ns, end_ns, round.is_regular});
    }
    return series;
  }

  // Calls are seen only by what they launch: two calls in a row, with nothing between them, by that
  // they launch the same again.
  std::optional<StepSeries> CallsOrRounds(const ThreadLaunches& thread,
                                          const std::vector<uint32_t>& places, StepSeries calls) {
    if (places.empty()) return std::nullopt;
    std::optional<StepSeries> rounds = SeriesOf(thread, places, places.front());
    calls.regular = calls.steps.size();
    if (!rounds || rounds->steps.size() <= calls.steps.size()) return calls;
    return rounds;
  }

  bool IsInside(const CallTree& tree, PathId path, const NamePattern& pattern) const {
    for (; path && tree[path].parent; path = tree[path].parent) {
      const NamedFrame& frame = analysis_.frames[tree[path].frame];
      if (frame.IsFunction() && pattern.FoundIn(frame.name)) return true;
    }
    return false;
  }

  Analysis& analysis_;
  const LaunchFacts facts_;
  const Interruptions interruptions_;
};

void CountWarmUp(StepSeries& series) {
  const uint64_t median = MedianNs(series);
  while (series.warm_up < series.steps.size() / 4 &&
         series.steps[series.warm_up].end_ns - series.steps[series.warm_up].start_ns >
             kWarmUpTimes * median) {
    ++series.warm_up;
  }
}

// A filter that leaves nothing of what a process launches, such as one of ranks, leaves its steps
// out.
void KeepShown(const Analysis& analysis, std::vector<StepSeries>& found) {
  if (analysis.shown.filter_text.empty()) return;
  std::set<uint32_t> pids;
  for (const Launch& launch : analysis.Launches()) pids.insert(launch.pid);
  const std::optional<std::set<uint32_t>>& wanted = analysis.shown.pids;
  std::erase_if(found, [&](const StepSeries& series) {
    const uint32_t pid = series.thread.pid;
    if (wanted && !wanted->contains(pid)) return true;
    return !pids.empty() && !pids.contains(pid);  // a kernel that nobody launched chooses nobody
  });
}

}  // namespace

Result<StepDefinition> ParseStepDefinition(std::string_view text) {
  using Kind = StepDefinition::Kind;
  if (text == "auto") return StepDefinition{};
  for (const auto& [name, kind] :
       {std::pair<std::string_view, Kind>{"nvtx:", Kind::kNvtx},
        std::pair<std::string_view, Kind>{"function:", Kind::kFunction}}) {
    if (!text.starts_with(name) || text.size() == name.size()) continue;
    StepDefinition definition{kind, std::string(text.substr(name.size()))};
    const Result<NamePattern> pattern = NamePattern::Compile(definition.pattern, name);
    if (!pattern.ok()) return pattern.error();
    return definition;
  }
  return Error{ErrorKind::kUsage, Format("'{}': expected auto, nvtx:REGEX or function:REGEX", text),
               "for example --step function:train_step"};
}

namespace {

std::vector<StepSeries> FindAllSteps(Analysis& analysis, const StepDefinition& definition) {
  Finder finder(analysis);
  std::vector<StepSeries> found;
  if (definition.kind == StepDefinition::Kind::kDetected) {
    found = finder.Detect();
  } else {
    const Result<NamePattern> pattern = NamePattern::Compile(definition.pattern, "--step");
    XPU_CHECK(pattern.ok());
    found = definition.kind == StepDefinition::Kind::kNvtx ? finder.OfRanges(pattern.value())
                                                           : finder.OfFunction(pattern.value());
  }
  std::erase_if(found, [](const StepSeries& series) { return series.steps.empty(); });
  for (StepSeries& series : found) CountWarmUp(series);
  return found;
}

}  // namespace

std::vector<StepSeries> FindSteps(Analysis& analysis, const StepDefinition& definition) {
  const std::string key = Format("{}:{}", static_cast<int>(definition.kind), definition.pattern);
  std::vector<StepSeries> found = analysis.memo.Get<std::vector<StepSeries>>(
      key, [&] { return FindAllSteps(analysis, definition); });
  KeepShown(analysis, found);
  return found;
}

bool IsCredible(const StepSeries& series) {
  return !series.is_detected || series.regular * 2 >= series.steps.size();
}

std::string HowFound(const StepSeries& series, const StepDefinition& definition) {
  const size_t steps = series.steps.size();
  if (definition.kind == StepDefinition::Kind::kNvtx) {
    return Format("NVTX ranges that match '{}'", ForOneLine(definition.pattern));
  }
  std::string text = definition.kind == StepDefinition::Kind::kFunction
                         ? Format("calls of '{}'", ForOneLine(definition.pattern))
                         : "detected";
  if (!series.is_detected) return text;
  AppendFormat(text, ": {} repeated, the same in {} of {} steps",
               Counted(series.launches, "launch", "launches"), WithThousands(series.regular),
               WithThousands(steps));
  if (definition.kind == StepDefinition::Kind::kDetected && !series.begins_by_code &&
      series.launches > 1) {
    text += "; where in the loop a step begins is uncertain";
  }
  return text;
}

std::vector<StepCost> StepCosts(const Analysis& analysis, const StepSeries& series) {
  const std::vector<Step>& steps = series.steps;
  const LoadedEvents& events = analysis.model.events;
  std::vector<StepCost> costs(steps.size());
  std::vector<std::vector<BusySpan>> spans(steps.size());
  for (const uint32_t place : analysis.Work().places()) {
    const GpuWork& work = analysis.correlation.work[place];
    if (!IsGpuWork(work) || work.launch == GpuWork::kNoLaunch) continue;
    if (work.pid != series.thread.pid) continue;
    const Step* const step = FindAt(steps, work.called_ns);
    if (step == nullptr) continue;
    const auto index = static_cast<size_t>(step - steps.data());
    StepCost& cost = costs[index];
    cost.gpu_ns = AddSaturated(cost.gpu_ns, work.duration_ns);
    if (work.timed && work.end_ns > work.start_ns) {
      spans[index].push_back({work.start_ns, work.end_ns, place, place});
      cost.end_ns = std::max(cost.end_ns, work.end_ns);
    }
    cost.kernels += work.kind == WorkKind::kKernel ? 1 : 0;
    cost.graphs += work.kind == WorkKind::kGraph ? 1 : 0;
    const bool copies = work.kind == WorkKind::kMemcpy;
    if (!copies && work.kind != WorkKind::kMemset) continue;
    ++cost.copies;
    cost.bytes =
        AddSaturated(cost.bytes, copies ? events.memcpys.Get<&Memcpy::size_bytes>(work.index)
                                        : events.memsets.Get<&Memset::size_bytes>(work.index));
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    costs[i].duration_ns = steps[i].end_ns - steps[i].start_ns;
    UniteSpans(spans[i]);
    costs[i].busy_ns = LengthNs(spans[i]);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    if (spans[i].empty()) continue;
    const bool goes_on =
        i + 1 < steps.size() && !spans[i + 1].empty() && steps[i + 1].start_ns == steps[i].end_ns;
    const uint64_t until_ns = goes_on ? spans[i + 1].front().start_ns : spans[i].back().end_ns;
    const uint64_t from_ns = spans[i].front().start_ns;
    const uint64_t window_ns = until_ns - std::min(until_ns, from_ns);
    costs[i].idle_ns = window_ns - std::min(window_ns, costs[i].busy_ns);
  }
  return costs;
}

}  // namespace xpu
