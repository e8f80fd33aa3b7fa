// critical_path_sum.
#include "report/critical_path/what_if.h"

#include <algorithm>
#include <charconv>
#include <tuple>
#include <unordered_map>

#include "format/base/check.h"
#include "format/base/saturated.h"
#include "format/base/text.h"
#include "report/analysis/filter.h"
#include "report/query/gpu_idle.h"
#include "report/query/off_cpu_sums.h"
#include "report/query/off_cpu_waits.h"
#include "report/query/readable_paths.h"
#include "report/workload/framework_names.h"

namespace xpu {
namespace {

constexpr std::pair<std::string_view, Speedup::Kind> kKinds[] = {
    {"kernel:", Speedup::Kind::kKernel},
    {"function:", Speedup::Kind::kFunction},
    {"thread:", Speedup::Kind::kThread}};

// Less than this part of the path is no candidate.
constexpr double kMuchOfPath = 0.02;

// Whether a thread works itself, or waits for something outside the program.
bool IsOfThread(const Edge& edge) {
  const bool is_wait = edge.kind == EdgeKind::kWait && edge.index != UINT32_MAX;
  return edge.kind == EdgeKind::kRunning || edge.kind == EdgeKind::kCall || is_wait;
}

// So that a name is found as it is.
std::string Quoted(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::string_view(".[]{}()\\*+?|^$").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text;
}

std::string NameOf(const Analysis& analysis, const WaitReasons& reasons, const GpuNames& names,
                   const Edge& edge) {
  switch (edge.kind) {
    case EdgeKind::kKernel:
    case EdgeKind::kMemory:
    case EdgeKind::kGraph:
    case EdgeKind::kLaunch:
    case EdgeKind::kQueue:
    case EdgeKind::kStreamWait: {
      const GpuWork& work = analysis.correlation.work[edge.index];
      if (work.kind != WorkKind::kKernel) return names.Title(work);
      return names.KernelName(analysis.model.events.kernels.Get<&Kernel::name>(work.index));
    }
    case EdgeKind::kCall:
    case EdgeKind::kGpuWait:
      return ApiNameOf(analysis.api_names, analysis.correlation.launches[edge.index]);
    case EdgeKind::kWait:
      if (edge.index == UINT32_MAX) return "[unknown]";
      return reasons.Of(analysis.model.events.off_cpu_waits[edge.index]);
    default:
      return {};
  }
}

// The innermost function in Python that runs; native code below it would part the time into too
// many rows to read.
PathId InPython(const Analysis& analysis, const CallTree& tree, PathId path) {
  for (PathId at = path; at; at = tree[at].parent) {
    if (analysis.frames[tree[at].frame].origin == FrameOrigin::kPython) return at;
  }
  return path;
}

}  // namespace

Result<Speedup> ParseSpeedup(std::string_view text) {
  const size_t equals = text.rfind('=');
  for (const auto& [name, kind] : kKinds) {
    if (!text.starts_with(name) || equals == std::string_view::npos) continue;
    Speedup speedup{kind, std::string(text.substr(name.size(), equals - name.size()))};
    const std::string_view factor = text.substr(equals + 1);
    const auto [end, error] =
        std::from_chars(factor.data(), factor.data() + factor.size(), speedup.factor);
    const bool is_number = error == std::errc() && end == factor.data() + factor.size();
    if (speedup.pattern.empty() || !is_number || !(speedup.factor >= 0 && speedup.factor <= 1000)) {
      break;
    }
    const Result<NamePattern> pattern = NamePattern::Compile(speedup.pattern, name);
    if (!pattern.ok()) return pattern.error();
    return speedup;
  }
  return Error{ErrorKind::kUsage,
               Format("'{}': expected kernel:REGEX=FACTOR, function:REGEX=FACTOR or "
                      "thread:REGEX=FACTOR",
                      text),
               "for example --what-if 'kernel:softmax=0.5': twice as fast"};
}

std::string SpeedupText(const Speedup& speedup) {
  for (const auto& [name, kind] : kKinds) {
    if (kind == speedup.kind) return Format("{}{}", name, speedup.pattern);
  }
  return {};
}

// Which part of an edge a speedup is about.
class WhatIf::Scale {
 public:
  Scale(WhatIf& what_if, const Speedup& speedup)
      : analysis_(what_if.analysis_),
        paths_(what_if.paths_),
        critical_(what_if.critical_),
        kind_(speedup.kind),
        pattern_(Compiled(speedup)),
        names_(analysis_, KernelNames::kFull) {}

  double Of(const Edge& edge) {
    switch (kind_) {
      case Speedup::Kind::kKernel:
        return IsGpuWork(edge.kind) && OfWork(analysis_.correlation.work[edge.index]) ? 1 : 0;
      case Speedup::Kind::kFunction:
        return OfCode(edge);
      case Speedup::Kind::kThread:
        return IsOfThread(edge) && OfThread(critical_.OwnerOf(edge)) ? 1 : 0;
    }
    return 0;
  }

 private:
  static NamePattern Compiled(const Speedup& speedup) {
    Result<NamePattern> pattern = NamePattern::Compile(speedup.pattern, "--what-if");
    XPU_CHECK(pattern.ok());
    return std::move(pattern).value();
  }
  bool OfWork(const GpuWork& work) {
    if (work.kind != WorkKind::kKernel) return pattern_.FoundIn(names_.Title(work));
    const StringId name = analysis_.model.events.kernels.Get<&Kernel::name>(work.index);
    const auto [known, is_new] = kernels_.try_emplace(name);
    if (is_new) known->second = pattern_.FoundIn(names_.KernelName(name));
    return known->second;
  }
  bool OfThread(const Owner& owner) {
    const StringId name = analysis_.tracks[owner.track].name;
    const auto [known, is_new] = threads_.try_emplace(name);
    if (is_new) known->second = pattern_.FoundIn(std::string(analysis_.model.Text(name)));
    return known->second;
  }
  // A function of the pattern is on the path.
  bool OfPath(PathId path) {
    const CallTree& tree = paths_.tree();
    while (inside_.size() < tree.nodes().size()) {
      const CallTree::Node& node = tree.nodes()[inside_.size()];
      const NamedFrame& frame = analysis_.frames[node.frame];
      inside_.push_back(node.parent && (inside_[node.parent.value - 1] ||
                                        (frame.IsFunction() && pattern_.FoundIn(frame.name))));
    }
    return path && inside_[path.value - 1];
  }
  double OfCode(const Edge& edge) {
    if (!IsOfThread(edge)) return 0;
    if (edge.kind != EdgeKind::kRunning) return OfPath(critical_.PathOf(edge)) ? 1 : 0;
    const std::vector<CodeShare>& code = critical_.CodeOf(edge);
    const auto [known, is_new] = shares_.try_emplace(&code);
    if (is_new) {
      for (const CodeShare& part : code) known->second += OfPath(part.path) ? part.share : 0;
    }
    return known->second;
  }

  Analysis& analysis_;
  CallPaths& paths_;
  CriticalPath& critical_;
  const Speedup::Kind kind_;
  const NamePattern pattern_;
  const GpuNames names_;
  std::unordered_map<StringId, bool> kernels_;
  std::unordered_map<StringId, bool> threads_;
  std::vector<bool> inside_;  // by path - 1
  std::unordered_map<const std::vector<CodeShare>*, double> shares_;
};

Prediction WhatIf::Evaluate(const Speedup& speedup) {
  Scale scale(*this, speedup);
  Prediction prediction{.speedup = speedup, .name = {}};
  double path_ns = 0;
  double assumed_ns = 0;
  for (const CriticalSegment& segment : critical_.segments()) {
    const double ns = scale.Of(segment.edge) * static_cast<double>(segment.ns());
    path_ns += ns;
    if (segment.edge.is_assumed) assumed_ns += ns;
  }
  prediction.path_ns = ToSaturated(path_ns);
  prediction.assumed_ns = ToSaturated(assumed_ns);
  prediction.matches = path_ns > 0;
  const auto with = [&](double factor) {
    return critical_.Reevaluate([&](const Edge& edge) {
      const double part = scale.Of(edge);
      prediction.matches = prediction.matches || part > 0;
      const auto ns = static_cast<double>(edge.ns);
      return part == 0 ? edge.ns : ToSaturated(ns * (1 - part * (1 - factor)));
    });
  };
  prediction.predicted_ns = with(speedup.factor);
  prediction.least_ns = speedup.factor == 0 ? prediction.predicted_ns : with(0);
  return prediction;
}

void WhatIf::AddKernels(size_t most, Named& named) {
  std::map<StringId, uint64_t> kernels;
  for (const CriticalSegment& segment : critical_.segments()) {
    if (segment.edge.kind != EdgeKind::kKernel) continue;
    const GpuWork& work = analysis_.correlation.work[segment.edge.index];
    kernels[analysis_.model.events.kernels.Get<&Kernel::name>(work.index)] += segment.ns();
  }
  std::vector<std::pair<uint64_t, StringId>> order;
  for (const auto& [name, ns] : kernels) {
    if (ns >= LeastNs()) order.emplace_back(ns, name);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const GpuNames names(analysis_, KernelNames::kFull);
  for (size_t i = 0; i < std::min(order.size(), most); ++i) {
    named.emplace_back(names.KernelName(order[i].second), Speedup::Kind::kKernel);
  }
}

uint64_t WhatIf::LeastNs() const {
  return ToSaturated(kMuchOfPath * static_cast<double>(critical_.window().ns()));
}

// The threads, by name; and of each the functions in which it spends most of its time there: those
// in Python, where it runs Python.
void WhatIf::AddCode(size_t most, Named& named) {
  struct Code {
    uint64_t ns = 0;
    std::map<PathId, uint64_t> paths;
  };
  std::map<std::string, Code> threads;
  for (const CriticalSegment& segment : critical_.segments()) {
    const Edge& edge = segment.edge;
    if (!IsOfThread(edge)) continue;
    const Owner owner = critical_.OwnerOf(edge);
    Code& code = threads[std::string(analysis_.tracks.NameOf(owner))];
    code.ns += segment.ns();
    if (edge.kind != EdgeKind::kRunning) {
      code.paths[critical_.PathOf(edge)] += segment.ns();
      continue;
    }
    for (const CodeShare& part : critical_.CodeOf(edge)) {
      code.paths[part.path] += ToSaturated(part.share * static_cast<double>(segment.ns()));
    }
  }
  std::vector<std::pair<std::string, Code*>> order;
  for (auto& [name, code] : threads) {
    if (!name.empty() && code.ns >= LeastNs()) order.emplace_back(name, &code);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second->ns > b.second->ns; });
  for (size_t i = 0; i < std::min(order.size(), most); ++i) {
    named.emplace_back(order[i].first, Speedup::Kind::kThread);
    for (const FrameId function : FunctionsOf(order[i].second->paths)) {
      const std::pair<std::string, Speedup::Kind> candidate{analysis_.frames[function].name,
                                                            Speedup::Kind::kFunction};
      if (std::ranges::find(named, candidate) == named.end()) named.push_back(candidate);
    }
  }
}

// The function below which at least half of the time is; or, if that does little itself, those that
// it calls.
std::vector<FrameId> WhatIf::FunctionsOf(const std::map<PathId, uint64_t>& times) const {
  constexpr size_t kMostCalled = 3;
  constexpr double kMuchOfTime = 0.6;
  const CallTree& tree = paths_.tree();
  const auto frame_of = [&](PathId path) -> const NamedFrame& {
    return analysis_.frames[tree[path].frame];
  };
  const PathId innermost = MostOf(tree, times);
  PathId most = innermost;
  while (most && (frame_of(most).origin != FrameOrigin::kPython ||
                  FrameFamilyOf(frame_of(most)) != FrameFamily::kNone)) {
    most = tree[most].parent;
  }
  const bool is_python = static_cast<bool>(most);
  if (!most) most = innermost;
  if (!most || !tree[most].parent || !frame_of(most).IsFunction()) return {};
  std::map<FrameId, uint64_t> called;
  uint64_t whole_ns = 0;
  for (const auto& [path, ns] : times) {
    PathId function;
    PathId at = path;
    for (; at && at != most; at = tree[at].parent) {
      const NamedFrame& frame = frame_of(at);
      // Code that only passes calls on is not what to make faster.
      if (FrameFamilyOf(frame) != FrameFamily::kNone) continue;
      const bool is_one = is_python ? frame.origin == FrameOrigin::kPython : frame.IsFunction();
      if (is_one) function = at;
    }
    if (!at) continue;
    whole_ns += ns;
    if (function) called[tree[function].frame] += ns;
  }
  std::vector<std::pair<uint64_t, FrameId>> order;
  for (const auto& [frame, ns] : called) {
    if (ns >= LeastNs()) order.emplace_back(ns, frame);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (order.size() > kMostCalled) order.resize(kMostCalled);
  uint64_t sum_ns = 0;
  for (const auto& [ns, frame] : order) sum_ns += ns;
  const bool calls_all = static_cast<double>(sum_ns) >= kMuchOfTime * static_cast<double>(whole_ns);
  if (order.empty() || !calls_all) return {tree[most].frame};
  std::vector<FrameId> functions;
  for (const auto& [ns, frame] : order) functions.push_back(frame);
  return functions;
}

std::vector<Prediction> WhatIf::Candidates(double factor, size_t most) {
  Named named;
  AddKernels(most, named);
  AddCode(most, named);
  std::vector<Prediction> found;
  for (const auto& [name, kind] : named) {
    found.push_back(Evaluate({kind, Format("^{}$", Quoted(name)), factor}));
    found.back().name = name;
  }
  std::stable_sort(found.begin(), found.end(), [](const Prediction& a, const Prediction& b) {
    return a.predicted_ns < b.predicted_ns;
  });
  return found;
}

std::vector<CriticalSum> CriticalSums(Analysis& analysis, CallPaths& paths, CriticalPath& critical,
                                      const GpuNames& names) {
  ReadablePaths readable(analysis, paths.tree());
  const WaitReasons reasons(analysis);
  struct Times {
    std::vector<uint64_t> durations;
    double assumed_ns = 0;
    double sum_ns = 0;
  };
  using Key = std::tuple<EdgeKind, std::string, std::string, PathId>;
  std::map<Key, Times> all;
  std::map<ThreadKey, std::string> threads;
  for (const CriticalSegment& segment : critical.segments()) {
    const Edge& edge = segment.edge;
    const Owner owner = critical.OwnerOf(edge);
    std::string& thread = threads[owner.thread()];
    if (thread.empty()) thread = analysis.processes.ThreadTitle(owner.process, owner.tid);
    const auto add = [&](PathId path, double share, EdgeKind kind, std::string what) {
      Times& times = all[{kind, thread, std::move(what), readable.Of(path)}];
      const double ns = share * static_cast<double>(segment.ns());
      times.durations.push_back(ToSaturated(ns));
      times.sum_ns += ns;
      if (edge.is_assumed) times.assumed_ns += ns;
    };
    if (edge.kind != EdgeKind::kRunning) {
      add(critical.PathOf(edge), 1, edge.kind, NameOf(analysis, reasons, names, edge));
      continue;
    }
    for (const CodeShare& part : critical.CodeOf(edge)) {
      const PathId outer = paths.tree()[part.path].parent;
      const bool waits =
          outer && analysis.frames[paths.tree()[part.path].frame].name == kNoSampleFrame;
      add(InPython(analysis, paths.tree(), waits ? outer : part.path), part.share,
          waits ? EdgeKind::kWait : edge.kind, waits ? std::string(kNoSampleFrame) : "");
    }
  }
  std::vector<CriticalSum> rows;
  for (auto& [key, times] : all) {
    CriticalSum row{.times = Summarize({}, times.durations),
                    .assumed_ns = ToSaturated(times.assumed_ns + 0.5),
                    .kind = std::get<0>(key),
                    .thread = std::get<1>(key),
                    .what = std::get<2>(key),
                    .path = std::get<3>(key)};
    row.times.total = ToSaturated(times.sum_ns + 0.5);
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const CriticalSum& a, const CriticalSum& b) {
    return a.times.total > b.times.total;
  });
  return rows;
}

}  // namespace xpu
