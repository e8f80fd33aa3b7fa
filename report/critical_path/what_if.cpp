#include "report/critical_path/what_if.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

#include "format/base/check.h"
#include "format/base/text.h"
#include "report/analysis/filter.h"
#include "report/query/gpu_idle.h"

namespace xpu {
namespace {

constexpr std::pair<std::string_view, Speedup::Kind> kKinds[] = {
    {"kernel:", Speedup::Kind::kKernel},
    {"function:", Speedup::Kind::kFunction},
    {"thread:", Speedup::Kind::kThread}};

// Less than this part of the path is no candidate.
constexpr double kMuchOfPath = 0.02;
constexpr size_t kMostOfKind = 3;

bool IsWork(ArrowKind kind) {
  return kind == ArrowKind::kKernel || kind == ArrowKind::kMemory || kind == ArrowKind::kGraph;
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

}  // namespace

Result<Speedup> ParseSpeedup(std::string_view text) {
  const size_t equals = text.rfind('=');
  for (const auto& [name, kind] : kKinds) {
    if (!text.starts_with(name) || equals == std::string_view::npos) continue;
    Speedup change{kind, std::string(text.substr(name.size(), equals - name.size()))};
    const std::string_view factor = text.substr(equals + 1);
    const auto [end, error] =
        std::from_chars(factor.data(), factor.data() + factor.size(), change.factor);
    const bool is_number = error == std::errc() && end == factor.data() + factor.size();
    if (change.pattern.empty() || !is_number || !(change.factor >= 0 && change.factor <= 1000)) {
      break;
    }
    const Result<NamePattern> pattern = NamePattern::Compile(change.pattern, name);
    if (!pattern.ok()) return pattern.error();
    return change;
  }
  return Error{ErrorKind::kUsage,
               Format("'{}': expected kernel:REGEX=FACTOR, function:REGEX=FACTOR or "
                      "thread:REGEX=FACTOR",
                      text),
               "for example --what-if 'kernel:softmax=0.5': twice as fast"};
}

std::string SpeedupText(const Speedup& change) {
  for (const auto& [name, kind] : kKinds) {
    if (kind == change.kind) return Format("{}{}", name, change.pattern);
  }
  return {};
}

// Which part of an arrow a change is about.
class WhatIf::Scale {
 public:
  Scale(WhatIf& what_if, const Speedup& change)
      : analysis_(what_if.analysis_),
        paths_(what_if.paths_),
        critical_(what_if.critical_),
        kind_(change.kind),
        pattern_(Compiled(change)),
        names_(analysis_, KernelNames::kFull) {}

  double Of(const Arrow& arrow) {
    switch (kind_) {
      case Speedup::Kind::kKernel:
        return IsWork(arrow.kind) && OfWork(analysis_.correlation.work[arrow.index]) ? 1 : 0;
      case Speedup::Kind::kFunction:
        return OfCode(arrow);
      case Speedup::Kind::kThread:
        return IsOfThread(arrow) && OfThread(critical_.OwnerOf(arrow)) ? 1 : 0;
    }
    return 0;
  }

 private:
  static NamePattern Compiled(const Speedup& change) {
    Result<NamePattern> pattern = NamePattern::Compile(change.pattern, "--what-if");
    XPU_CHECK(pattern.ok());
    return std::move(pattern).value();
  }
  // What a thread does itself, or waits for something outside of the program.
  static bool IsOfThread(const Arrow& arrow) {
    const bool is_wait = arrow.kind == ArrowKind::kWait && arrow.index != UINT32_MAX;
    return arrow.kind == ArrowKind::kRunning || arrow.kind == ArrowKind::kCall || is_wait;
  }
  bool OfWork(const GpuWork& work) {
    if (work.kind != WorkKind::kKernel) return pattern_.FoundIn(names_.Title(work));
    const StringId name = analysis_.model.events.kernels.Get<&Kernel::name>(work.index);
    const auto [known, is_new] = kernels_.try_emplace(name);
    if (is_new) known->second = pattern_.FoundIn(names_.KernelName(name));
    return known->second;
  }
  bool OfThread(const Owner& owner) {
    const StringId name = analysis_.processes.NameAt(owner.process, owner.tid, owner.time_ns);
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
  double OfCode(const Arrow& arrow) {
    if (!IsOfThread(arrow)) return 0;
    if (arrow.kind != ArrowKind::kRunning) return OfPath(critical_.PathOf(arrow)) ? 1 : 0;
    double share = 0;
    for (const CodeShare& part : critical_.CodeOf(arrow)) {
      if (OfPath(part.path)) share += part.share;
    }
    return share;
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
};

Prediction WhatIf::Evaluate(const Speedup& change) {
  Scale scale(*this, change);
  Prediction prediction{.change = change};
  double path_ns = 0;
  double assumed_ns = 0;
  for (const CriticalSegment& segment : critical_.segments()) {
    const double ns = scale.Of(segment.arrow) * static_cast<double>(segment.ns());
    path_ns += ns;
    if (segment.arrow.is_assumed) assumed_ns += ns;
  }
  prediction.path_ns = static_cast<uint64_t>(path_ns);
  prediction.assumed_ns = static_cast<uint64_t>(assumed_ns);
  const auto with = [&](double factor) {
    return critical_.Reevaluate([&](const Arrow& arrow) {
      const double part = scale.Of(arrow);
      const auto ns = static_cast<double>(arrow.ns);
      return part == 0 ? arrow.ns : static_cast<uint64_t>(ns * (1 - part * (1 - factor)));
    });
  };
  prediction.predicted_ns = with(change.factor);
  prediction.least_ns = change.factor == 0 ? prediction.predicted_ns : with(0);
  return prediction;
}

std::vector<Speedup> WhatIf::LargestKernels() {
  const GpuNames names(analysis_, KernelNames::kFull);
  std::map<std::string, uint64_t> kernels;
  for (const CriticalSegment& segment : critical_.segments()) {
    if (segment.arrow.kind != ArrowKind::kKernel) continue;
    const GpuWork& work = analysis_.correlation.work[segment.arrow.index];
    kernels[names.KernelName(analysis_.model.events.kernels.Get<&Kernel::name>(work.index))] +=
        segment.ns();
  }
  std::vector<std::pair<uint64_t, std::string>> order;
  for (const auto& [name, ns] : kernels) {
    if (static_cast<double>(ns) < kMuchOfPath * static_cast<double>(critical_.window().ns())) {
      continue;
    }
    order.emplace_back(ns, name);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Speedup> changes;
  for (const auto& [ns, name] : order) {
    if (changes.size() == kMostOfKind) break;
    changes.push_back({Speedup::Kind::kKernel, Format("^{}$", Quoted(name))});
  }
  return changes;
}

// The threads, by name; and of each the function in which it spends most of its time there: a
// function in Python, where it runs Python.
std::vector<Speedup> WhatIf::LargestCode() {
  struct Code {
    uint64_t ns = 0;
    std::map<PathId, uint64_t> paths;
  };
  std::map<std::string, Code> threads;
  for (const CriticalSegment& segment : critical_.segments()) {
    const Arrow& arrow = segment.arrow;
    const bool is_wait = arrow.kind == ArrowKind::kWait && arrow.index != UINT32_MAX;
    if (arrow.kind != ArrowKind::kRunning && arrow.kind != ArrowKind::kCall && !is_wait) continue;
    const Owner owner = critical_.OwnerOf(arrow);
    Code& code = threads[std::string(
        analysis_.processes.ThreadName(owner.process, owner.tid, owner.time_ns))];
    code.ns += segment.ns();
    if (arrow.kind != ArrowKind::kRunning) {
      code.paths[critical_.PathOf(arrow)] += segment.ns();
      continue;
    }
    for (const CodeShare& part : critical_.CodeOf(arrow)) {
      code.paths[part.path] +=
          static_cast<uint64_t>(part.share * static_cast<double>(segment.ns()));
    }
  }
  std::vector<std::pair<std::string, Code*>> order;
  for (auto& [name, code] : threads) order.emplace_back(name, &code);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second->ns > b.second->ns; });
  std::vector<Speedup> changes;
  const CallTree& tree = paths_.tree();
  for (const auto& [name, code] : order) {
    if (changes.size() >= 2 * kMostOfKind) break;
    const double least = kMuchOfPath * static_cast<double>(critical_.window().ns());
    if (name.empty() || static_cast<double>(code->ns) < least) continue;
    changes.push_back({Speedup::Kind::kThread, Format("^{}$", Quoted(name))});
    PathId most = MostOf(tree, code->paths);
    const PathId innermost = most;
    const auto is_python = [&](PathId path) {
      return analysis_.frames[tree[path].frame].origin == FrameOrigin::kPython;
    };
    while (most && !is_python(most)) most = tree[most].parent;
    if (!most) most = innermost;
    if (!most || !tree[most].parent) continue;
    const NamedFrame& frame = analysis_.frames[tree[most].frame];
    if (!frame.IsFunction()) continue;
    changes.push_back({Speedup::Kind::kFunction, Format("^{}$", Quoted(frame.name))});
  }
  return changes;
}

std::vector<Prediction> WhatIf::Candidates(double factor) {
  std::vector<Prediction> found;
  for (const std::vector<Speedup>& changes : {LargestKernels(), LargestCode()}) {
    for (Speedup change : changes) {
      change.factor = factor;
      found.push_back(Evaluate(change));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Prediction& a, const Prediction& b) {
    return a.predicted_ns < b.predicted_ns;
  });
  return found;
}

}  // namespace xpu
