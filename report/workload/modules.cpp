#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "format/base/saturated.h"
#include "report/workload/framework_names.h"
#include "report/workload/operators.h"

namespace xpu {
namespace {

using ModuleId = Id<struct ModuleTag, uint32_t>;  // none: outside modules

class ModuleTable {
 public:
  // `called_at`: none if that is not known.
  ModuleId Intern(ModuleId outer, std::string_view name, FrameId called_at) {
    const auto [found, is_new] = ids_.try_emplace(std::tuple(outer, std::string(name), called_at));
    if (is_new) {
      modules_.push_back({outer, std::string(name), called_at});
      found->second = ModuleId{static_cast<uint32_t>(modules_.size())};
    }
    return found->second;
  }

  struct Module {
    ModuleId outer;
    std::string name;
    FrameId called_at;
  };
  // Outer ones come before those in them.
  const std::vector<Module>& all() const { return modules_; }
  const Module& operator[](ModuleId id) const { return modules_[id.value - 1]; }

 private:
  std::vector<Module> modules_;  // by id - 1
  std::map<std::tuple<ModuleId, std::string, FrameId>, ModuleId> ids_;
};

// The module that each path of a tree is in.
class PathModules {
 public:
  // All must outlive this.
  PathModules(const FrameTable& frames, const CallTree& tree, ModuleTable& modules)
      : frames_(frames), tree_(tree), modules_(modules) {}

  ModuleId Of(PathId path) {
    while (known_.size() < tree_.nodes().size()) Add(tree_.nodes()[known_.size()]);
    return path ? known_[path.value - 1].module : ModuleId{};
  }

 private:
  struct At {
    ModuleId module;
    ModuleId outer;               // of `module`, while that has only the class of a __call__
    FrameId caller;               // the last Python function that is not part of a call
    FrameId call;                 // the __call__ that `caller` called
    FrameId called_at;            // where the module was called whose forward is to come
    bool awaits_forward = false;  // in Module._call_impl
    bool is_wrapper = false;      // the last Python function was Module._wrapped_call_impl
    bool is_provisional = false;  // of `module`
    bool is_backward = false;
    bool is_python_node = false;  // in a node whose class is not known yet
  };

  void Add(const CallTree::Node& node) {
    At at = node.parent ? known_[node.parent.value - 1] : At{};
    const NamedFrame& frame = frames_[node.frame];
    if (frame.origin == FrameOrigin::kPython) AddPython(node.frame, frame.name, at);
    if (frame.origin == FrameOrigin::kUser) AddNative(frame.name, at);
    known_.push_back(at);
  }

  void AddPython(FrameId id, std::string_view name, At& at) {
    const bool was_wrapper =
        std::exchange(at.is_wrapper, name.ends_with(":Module._wrapped_call_impl"));
    if (at.is_wrapper || name.ends_with(":Module._call_impl")) {
      if (!was_wrapper) BeginCall(at);
      return;
    }
    if (at.is_python_node) {
      const std::string node = PythonNodeOf(name);
      if (!node.empty()) at.module = modules_.Intern(BackwardPass(), node, {});
      at.is_python_node = node.empty();
    }
    // Its forward is none of a module.
    if (name.ends_with(":Function.apply")) at.awaits_forward = false;
    const std::string_view forward = ClassOf(name, ".forward");
    if (at.awaits_forward && !forward.empty()) {
      const ModuleId outer = at.is_provisional ? at.outer : at.module;
      at.module = modules_.Intern(outer, forward, at.called_at);
      at.awaits_forward = at.is_provisional = false;
    }
    if (!ClassOf(name, ".__call__").empty()) {
      at.call = id;
    } else {
      at.caller = id;
      at.call = {};
    }
  }

  void BeginCall(At& at) {
    at.called_at = at.caller;
    at.awaits_forward = true;
    at.is_provisional = static_cast<bool>(at.call);
    at.outer = at.module;
    if (!at.call) return;
    // A module that torch.compile has compiled calls no forward function.
    at.module =
        modules_.Intern(at.outer, ClassOf(frames_[at.call].name, ".__call__"), at.called_at);
    at.call = {};
  }

  void AddNative(std::string_view name, At& at) {
    const std::string node = AutogradNodeOf(name);
    if (node.empty() && (at.is_backward || !IsAutogradEngine(name))) return;
    at.is_backward = true;
    at.is_python_node = node == kPythonNode;
    at.module = node.empty() || at.is_python_node ? BackwardPass()
                                                  : modules_.Intern(BackwardPass(), node, {});
  }

  ModuleId BackwardPass() { return modules_.Intern({}, kBackwardPass, {}); }

  // "Block" of "model.py:Block.forward" and "model.py:main.<locals>.Block.forward"; "" of others.
  static std::string_view ClassOf(std::string_view function, std::string_view method) {
    if (!function.ends_with(method)) return {};
    function.remove_suffix(method.size());
    const size_t begin = function.find_last_of(".:");
    if (begin != std::string_view::npos) function.remove_prefix(begin + 1);
    return function == "<locals>" ? std::string_view() : function;
  }

  const FrameTable& frames_;
  const CallTree& tree_;
  ModuleTable& modules_;
  std::vector<At> known_;  // by path - 1
};

class ModuleSums {
 public:
  ModuleSums(Analysis& analysis, const PathOptions& options)
      : analysis_(analysis),
        paths_(analysis, options),
        at_path_(analysis.frames, paths_.tree(), modules_),
        is_counted_(analysis.correlation.launches.size()) {
    paths_.NameAhead({.launches = true});
  }

  std::vector<ModuleCost> Take() {
    for (const uint32_t place : analysis_.Work().places()) AddWork(place);
    // [outside modules] alone, or with the backward pass, are no modules.
    const auto& modules = modules_.all();
    const bool has_any = std::any_of(modules.begin(), modules.end(), [](const auto& module) {
      return static_cast<bool>(module.called_at);
    });
    if (!has_any) return {};
    Name();
    AddTotals();
    std::erase_if(costs_,
                  [](const ModuleCost& cost) { return cost.total_ns == 0 && cost.work == 0; });
    std::stable_sort(costs_.begin(), costs_.end(), [](const ModuleCost& a, const ModuleCost& b) {
      return a.total_ns > b.total_ns;
    });
    return std::move(costs_);
  }

 private:
  using Site = std::pair<StackId, StackId>;

  ModuleCost& Of(ModuleId id) {
    if (costs_.size() <= modules_.all().size()) costs_.resize(modules_.all().size() + 1);
    return costs_[id.value];
  }

  void AddWork(uint32_t place) {
    const GpuWork& work = analysis_.correlation.work[place];
    if (work.kind == WorkKind::kSynchronization) return;
    const ModuleId module = at_path_.Of(paths_.OfWork(work));
    ModuleCost& cost = Of(module);
    cost.self_ns = AddSaturated(cost.self_ns, work.duration_ns);
    ++cost.work;
    if (work.launch == GpuWork::kNoLaunch || is_counted_[work.launch]) return;
    is_counted_[work.launch] = true;
    const Launch& launch = analysis_.correlation.launches[work.launch];
    ++cost.launches;
    cost.launch_ns = AddSaturated(cost.launch_ns, launch.end_ns - launch.start_ns);
    ++sites_[module][{launch.stack, launch.python_stack}];
  }

  void Name() {
    Of({}).name = Of({}).path = kOutsideModules;
    for (uint32_t i = 1; i <= modules_.all().size(); ++i) {
      const ModuleTable::Module& module = modules_[ModuleId{i}];
      ModuleCost& cost = Of(ModuleId{i});
      cost.name = module.name;
      cost.path = module.outer ? Of(module.outer).path + ";" + module.name : module.name;
      const auto sites = sites_.find(ModuleId{i});
      const bool is_one = module.outer || module.called_at;
      if (is_one && sites != sites_.end()) cost.calls = TypicalCount(sites->second);
      if (module.called_at) cost.called_at = analysis_.frames[module.called_at].Label();
    }
  }

  // The modules in a module come after it.
  void AddTotals() {
    Of({}).total_ns = Of({}).self_ns;
    for (size_t i = modules_.all().size(); i > 0; --i) {
      const ModuleId id{static_cast<uint32_t>(i)};
      ModuleCost& cost = Of(id);
      cost.total_ns = AddSaturated(cost.total_ns, cost.self_ns);
      const ModuleId outer = modules_[id].outer;
      if (!outer) continue;
      ModuleCost& around = Of(outer);
      around.total_ns = AddSaturated(around.total_ns, cost.total_ns);
    }
  }

  // The median over launches: a first call may have sites of its own.
  static uint64_t TypicalCount(const std::map<Site, uint64_t>& sites) {
    std::vector<uint64_t> counts;
    uint64_t launches = 0;
    for (const auto& [site, count] : sites) {
      counts.push_back(count);
      launches += count;
    }
    std::sort(counts.begin(), counts.end());
    uint64_t before = 0;
    for (const uint64_t count : counts) {
      before += count;
      if (before * 2 >= launches) return count;
    }
    return 0;
  }

  Analysis& analysis_;
  CallPaths paths_;
  ModuleTable modules_;
  PathModules at_path_;
  std::vector<ModuleCost> costs_;  // by module id, 0: outside
  std::vector<bool> is_counted_;   // by place in Correlation::launches
  std::map<ModuleId, std::map<Site, uint64_t>> sites_;
};

}  // namespace

std::vector<ModuleCost> ModuleCosts(Analysis& analysis, const PathOptions& paths) {
  return ModuleSums(analysis, paths).Take();
}

}  // namespace xpu
