#include "report/workload/operators.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "format/base/saturated.h"
#include "report/analysis/gpu_names.h"
#include "report/base/flat_map.h"
#include "report/query/gpu_busy.h"
#include "report/workload/framework_names.h"

namespace xpu {
namespace {

// Operators by number, each once for the forward and once for the backward pass.
using OperatorId = Id<struct OperatorTag, uint32_t>;

// Operators within one another that are looked at; programs have a handful.
constexpr size_t kMostNested = 32;

class OperatorTable {
 public:
  OperatorId Intern(std::string_view name, bool is_backward) {
    const auto [found, is_new] = ids_.try_emplace(std::pair(std::string(name), is_backward));
    if (is_new) {
      rows_.push_back({.name = std::string(name), .is_backward = is_backward});
      found->second = OperatorId{static_cast<uint32_t>(rows_.size())};
    }
    return found->second;
  }
  OperatorCost& operator[](OperatorId id) { return rows_[id.value - 1]; }
  std::vector<OperatorCost> Take() { return std::move(rows_); }

 private:
  std::vector<OperatorCost> rows_;  // by id - 1
  std::map<std::pair<std::string, bool>, OperatorId> ids_;
};

// The operator that each path of a tree is in.
class PathOperators {
 public:
  // All must outlive this.
  PathOperators(const FrameTable& frames, const CallTree& tree, OperatorTable& operators)
      : frames_(frames), tree_(tree), operators_(operators) {}

  struct At {
    OperatorId innermost;
    PathId outer;  // the next path outwards that is in another operator; none: there is none
    bool is_backward = false;
    bool is_python_node = false;  // in a node whose class is not known yet
  };
  const At& Of(PathId path) {
    while (known_.size() < tree_.nodes().size()) Add(tree_.nodes()[known_.size()]);
    return path ? known_[path.value - 1] : none_;
  }

 private:
  void Add(const CallTree::Node& node) {
    At at = node.parent ? known_[node.parent.value - 1] : At{};
    const NamedFrame& frame = frames_[node.frame];
    std::string name;
    bool replaces = false;
    if (frame.origin == FrameOrigin::kPython && at.is_python_node) {
      name = PythonNodeOf(frame.name);
      replaces = !name.empty();
    } else if (frame.origin == FrameOrigin::kUser) {
      name = AutogradNodeOf(frame.name);
      at.is_python_node = name == kPythonNode || (name.empty() && at.is_python_node);
      at.is_backward = at.is_backward || !name.empty() || IsAutogradEngine(frame.name);
      if (name.empty()) name = AtenOperatorOf(frame.name);
    }
    if (!name.empty()) {
      const OperatorId id = operators_.Intern(name, at.is_backward);
      // An operator that calls itself again, for another device for instance, is one.
      if (!replaces && id != at.innermost) at.outer = node.parent;
      at.innermost = id;
      if (replaces) at.is_python_node = false;
    }
    known_.push_back(at);
  }

  const FrameTable& frames_;
  const CallTree& tree_;
  OperatorTable& operators_;
  std::vector<At> known_;  // by path - 1
  const At none_;
};

class Costs {
 public:
  Costs(Analysis& analysis, CallPaths& paths)
      : analysis_(analysis),
        paths_(paths),
        names_(analysis, KernelNames::kFull),
        at_path_(analysis.frames, paths_.tree(), operators_) {
    paths_.NameAhead({.launches = true});
  }

  std::vector<OperatorCost> Take(const std::vector<GpuBusy>& busy) {
    of_launch_.resize(analysis_.correlation.launches.size());
    for (const uint32_t place : analysis_.Work().places()) AddWork(place);
    for (uint32_t launch = 0; launch < of_launch_.size(); ++launch) {
      if (of_launch_[launch]) AddLaunch(launch, of_launch_[launch]);
    }
    for (const GpuBusy& gpu : busy) {
      VisitGaps(analysis_, gpu, [this](const IdleGap& gap) { AddGap(gap); });
    }
    for (auto& [of, libraries] : libraries_) operators_[of].libraries = TextOf(libraries);
    std::vector<OperatorCost> rows = operators_.Take();
    std::erase_if(rows, [](const OperatorCost& row) {
      return row.work == 0 && row.total_ns == 0 && row.launches == 0;
    });
    std::sort(rows.begin(), rows.end(), [](const OperatorCost& a, const OperatorCost& b) {
      return std::tie(b.self_ns, b.total_ns, a.name, a.is_backward) <
             std::tie(a.self_ns, a.total_ns, b.name, b.is_backward);
    });
    return rows;
  }

 private:
  using Libraries = std::map<std::string_view, uint64_t>;

  void AddWork(uint32_t place) {
    const GpuWork& work = analysis_.correlation.work[place];
    if (work.kind == WorkKind::kSynchronization) return;
    const PathOperators::At at = at_path_.Of(paths_.OfWork(work));
    const OperatorId self = SelfOf(work, at);
    OperatorCost& cost = operators_[self];
    cost.self_ns = AddSaturated(cost.self_ns, work.duration_ns);
    ++cost.work;
    AddTotal(self, at, work.duration_ns);
    if (work.kind == WorkKind::kKernel) {
      uint64_t& ns = libraries_[self][LibraryOf(work)];
      ns = AddSaturated(ns, work.duration_ns);
    }
    if (work.launch != GpuWork::kNoLaunch && !of_launch_[work.launch]) {
      of_launch_[work.launch] = work.origin == NodeOrigin::kNoNode ? self : OfCall(work);
    }
  }

  // Each operator on the path once.
  void AddTotal(OperatorId self, const PathOperators::At& innermost, uint64_t ns) {
    std::array<OperatorId, kMostNested> counted{self};
    auto end = counted.begin() + 1;
    PathOperators::At at = innermost;
    while (at.innermost && end != counted.end()) {
      if (std::find(counted.begin(), end, at.innermost) == end) *end++ = at.innermost;
      if (!at.outer) break;
      at = at_path_.Of(at.outer);
    }
    for (auto of = counted.begin(); of != end; ++of) {
      operators_[*of].total_ns = AddSaturated(operators_[*of].total_ns, ns);
    }
  }

  // A replay is launched by one call, whichever operators its nodes are of.
  OperatorId OfCall(const GpuWork& node) {
    const PathOperators::At at = at_path_.Of(paths_.OfLaunchAt(node.launch));
    return at.innermost ? at.innermost : operators_.Intern(kNoOperator, at.is_backward);
  }

  OperatorId SelfOf(const GpuWork& work, const PathOperators::At& at) {
    // Kernels that Inductor compiles have the names of the operators that they compute.
    if (work.kind == WorkKind::kKernel && LibraryOf(work) == kTriton) {
      return operators_.Intern(names_.KernelName(NameOf(work)), at.is_backward);
    }
    if (at.innermost) return at.innermost;
    const std::string xla = XlaOperatorOf(work);
    return operators_.Intern(xla.empty() ? kNoOperator : std::string_view(xla), at.is_backward);
  }

  // "jit_step:fusion.3", as far as the ranges around the launch say it.
  std::string XlaOperatorOf(const GpuWork& work) const {
    if (work.launch == GpuWork::kNoLaunch || analysis_.nvtx.empty()) return {};
    std::string module;
    std::string operation;
    const Launch& launch = analysis_.correlation.launches[work.launch];
    for (const uint32_t index : analysis_.nvtx.RangesOf(analysis_.nvtx.At(launch))) {
      const std::string name = analysis_.nvtx.NameOf(analysis_.nvtx.all()[index]);
      if (const auto found = XlaField(name, "hlo_module"); !found.empty()) module = found;
      if (const auto found = XlaField(name, "hlo_op"); !found.empty()) operation = found;
    }
    if (module.empty() || operation.empty()) return module + operation;
    return module + ":" + operation;
  }

  void AddLaunch(uint32_t place, OperatorId of) {
    const Launch& launch = analysis_.correlation.launches[place];
    OperatorCost& cost = operators_[of];
    ++cost.launches;
    cost.launch_ns = AddSaturated(cost.launch_ns, launch.end_ns - launch.start_ns);
  }

  void AddGap(const IdleGap& gap) {
    if (gap.launch >= of_launch_.size() || !of_launch_[gap.launch]) return;
    uint64_t& idle_ns = operators_[of_launch_[gap.launch]].idle_ns;
    idle_ns = AddSaturated(idle_ns, gap.ns);
  }

  StringId NameOf(const GpuWork& work) const {
    return analysis_.model.events.kernels.Get<&Kernel::name>(work.index);
  }
  std::string_view LibraryOf(const GpuWork& work) {
    const StringId name = NameOf(work);
    const auto [found, is_new] = library_.try_emplace(name);
    if (is_new) found->second = KernelLibraryOf(names_.KernelName(name));
    return found->second;
  }

  static std::string TextOf(const Libraries& libraries) {
    std::vector<std::pair<uint64_t, std::string_view>> sorted;
    for (const auto& [library, ns] : libraries) sorted.emplace_back(ns, library);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string text;
    for (const auto& [ns, library] : sorted) {
      if (!text.empty()) text += ", ";
      text += library;
    }
    return text;
  }

  Analysis& analysis_;
  CallPaths& paths_;
  const GpuNames names_;
  OperatorTable operators_;
  PathOperators at_path_;
  std::vector<OperatorId> of_launch_;  // by place in Correlation::launches; none: it has no work
  std::map<OperatorId, Libraries> libraries_;
  std::unordered_map<StringId, std::string_view> library_;
};

}  // namespace

std::vector<OperatorCost> OperatorCosts(Analysis& analysis, CallPaths& paths,
                                        const std::vector<GpuBusy>& busy) {
  return Costs(analysis, paths).Take(busy);
}

std::vector<Statistics> KernelLibraryTimes(const Analysis& analysis) {
  const GpuNames names(analysis, KernelNames::kFull);
  std::unordered_map<StringId, std::string> libraries;
  NamedValues values;
  for (const GpuWork& work : analysis.Work()) {
    if (work.kind != WorkKind::kKernel || !work.timed) continue;
    const StringId name = analysis.model.events.kernels.Get<&Kernel::name>(work.index);
    const auto [library, is_new] = libraries.try_emplace(name);
    if (is_new) library->second = KernelLibraryOf(names.KernelName(name));
    values[library->second].push_back(work.duration_ns);
  }
  return SummarizeByTotal(values);
}

}  // namespace xpu
