#include "report/analysis/gpu_names.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "format/base/counted.h"
#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "symbolize/demangle.h"

namespace xpu {
namespace {

struct CopyKind {
  std::string_view name;
  std::string_view operation;
};
constexpr std::array<CopyKind, 11> kCopyKinds{{
    {"?", "[CUDA memcpy]"},
    {"HtoD", "[CUDA memcpy Host-to-Device]"},
    {"DtoH", "[CUDA memcpy Device-to-Host]"},
    {"HtoA", "[CUDA memcpy Host-to-Array]"},
    {"AtoH", "[CUDA memcpy Array-to-Host]"},
    {"AtoA", "[CUDA memcpy Array-to-Array]"},
    {"AtoD", "[CUDA memcpy Array-to-Device]"},
    {"DtoA", "[CUDA memcpy Device-to-Array]"},
    {"DtoD", "[CUDA memcpy Device-to-Device]"},
    {"HtoH", "[CUDA memcpy Host-to-Host]"},
    {"PtoP", "[CUDA memcpy Peer-to-Peer]"},
}};

constexpr std::array<std::string_view, 5> kSynchronizations = {"?", "event", "stream wait",
                                                               "stream", "context"};

// Names by CUpti_ActivityOverheadKind >> 16; the kinds of CUPTI count from 1 << 16, in steps of as
// much.
constexpr std::array<std::string_view, 9> kOverheads = {
    "unknown",
    "CUPTI buffer flush",
    "CUPTI instrumentation",
    "CUPTI resource",
    "runtime triggered module loading",
    "lazy function loading",
    "command buffer full",
    "activity buffer request",
    "UVM activity init",
};
constexpr uint32_t kDriverCompiler = 1;

const CopyKind& KindOf(uint8_t copy_kind) {
  return copy_kind < kCopyKinds.size() ? kCopyKinds[copy_kind] : kCopyKinds[0];
}

}  // namespace

std::string_view CopyKindName(uint8_t copy_kind) { return KindOf(copy_kind).name; }
std::string_view CopyOperationName(uint8_t copy_kind) { return KindOf(copy_kind).operation; }

std::string_view WorkKindName(WorkKind kind) {
  switch (kind) {
    case WorkKind::kKernel:
      return "kernel";
    case WorkKind::kMemcpy:
      return "memcpy";
    case WorkKind::kMemset:
      return "memset";
    case WorkKind::kGraph:
      return "graph";
    case WorkKind::kSynchronization:
      return "sync";
  }
  return {};
}

std::string_view SynchronizationName(uint32_t type) {
  return type < kSynchronizations.size() ? kSynchronizations[type] : kSynchronizations[0];
}

std::string_view OverheadName(uint32_t overhead_kind) {
  if (overhead_kind == kDriverCompiler) return "driver compiler";
  const uint32_t index = overhead_kind >> 16;
  const bool is_known = index < kOverheads.size() && overhead_kind == index << 16;
  return is_known ? kOverheads[index] : "unknown (newer CUPTI)";
}

std::string KernelOfHostFunction(std::string_view symbol) {
  constexpr std::string_view kStub = "__device_stub__";
  const size_t at = symbol.find(kStub);
  if (at == std::string_view::npos) return std::string(symbol);
  std::string_view kernel = symbol.substr(at + kStub.size());
  // Mangled: the length of the identifier comes before it, the parameters after.
  size_t digits = at;
  while (digits > 0 && symbol[digits - 1] >= '0' && symbol[digits - 1] <= '9') --digits;
  size_t length = 0;
  std::from_chars(symbol.data() + digits, symbol.data() + at, length);
  if (length > kStub.size()) kernel = kernel.substr(0, length - kStub.size());
  return kernel.starts_with('Z') ? "_" + std::string(kernel) : std::string(kernel);
}

std::vector<std::string> KernelNamesOf(const Model& model) {
  std::set<StringId> ids;
  for (size_t i = 0; i < model.events.kernels.size(); ++i) {
    ids.insert(model.events.kernels.Get<&Kernel::name>(i));
  }
  std::set<std::string> names;
  for (const StringId id : ids) names.insert(Demangle(model.Text(id)));
  return {names.begin(), names.end()};
}

std::string GpuNames::ShortName(const std::string& full) const {
  if (short_names_.empty()) {
    std::vector<std::string> names = KernelNamesOf(model_);
    names.insert(names.end(), analysis_.other_kernels.begin(), analysis_.other_kernels.end());
    short_names_ = DistinctKernelNames(names);
    for (const auto& [known, name] : short_names_) taken_names_.insert(name);
  }
  const auto [known, is_new] = short_names_.try_emplace(full);
  if (!is_new) return known->second;
  // The kernel of a launch that has no record is in no list.
  known->second = CompactKernelName(full);
  if (!taken_names_.insert(known->second).second) taken_names_.insert(known->second = full);
  return known->second;
}

std::string GpuNames::KernelName(std::string_view mangled) const {
  std::string name(mangled);
  if (kernel_names_ != KernelNames::kMangled) name = Demangle(mangled);
  if (kernel_names_ == KernelNames::kShort) name = ShortName(name);
  return name.empty() ? "[unnamed]" : name;
}

const std::string& GpuNames::KernelName(StringId name) const {
  const auto [at, is_new] = kernels_.try_emplace(name);
  if (is_new) at->second = KernelName(model_.Text(name));
  return at->second;
}

std::string GpuNames::GraphTitle(const GraphLaunch& graph) const {
  const uint64_t nodes = analysis_.graph_nodes.SizeOf(graph.instance, graph.graph_id).nodes;
  if (nodes == 0) return Format("graph {}", graph.graph_id);
  return Format("graph {} ({})", graph.graph_id, Counted(nodes, "node", "nodes"));
}

std::string GpuNames::CopyTitle(const Memcpy& copy) const {
  std::string title = Format("Memcpy {}", CopyKindName(copy.copy_kind));
  if (copy.peer_to_peer) {
    AppendFormat(title, " {}->{}", analysis_.gpus.Of(copy.instance, copy.source_device_id).number,
                 analysis_.gpus.Of(copy.instance, copy.destination_device_id).number);
  }
  return title;
}

std::string GpuNames::Title(const GpuWork& work) const {
  const LoadedEvents& events = model_.events;
  switch (work.kind) {
    case WorkKind::kKernel:
      return KernelName(events.kernels.Get<&Kernel::name>(work.index));
    case WorkKind::kMemcpy:
      return CopyTitle(events.memcpys[work.index]);
    case WorkKind::kMemset:
      return "Memset";
    case WorkKind::kGraph:
      return GraphTitle(events.graph_launches[work.index]);
    case WorkKind::kSynchronization:
      return Format(
          "Synchronize {}",
          SynchronizationName(events.synchronizations.Get<&Synchronization::type>(work.index)));
  }
  return {};
}

std::string GpuNames::Tag(const GpuWork& work, std::string_view what) const {
  if (!device_tags_) return Format("[GPU_{}]", what);
  return Format("[GPU{}_{}]", work.gpu, what);
}

std::string GpuNames::Leaf(const GpuWork& work) const {
  switch (work.kind) {
    case WorkKind::kKernel:
      return Tag(work, "Kernel") + Title(work);
    case WorkKind::kMemcpy:
      return Tag(work, "Memcpy") +
             std::string(CopyKindName(model_.events.memcpys.Get<&Memcpy::copy_kind>(work.index)));
    case WorkKind::kMemset:
      return Tag(work, "Memset");
    case WorkKind::kGraph:
      return Tag(work, "Graph") + Title(work);
    case WorkKind::kSynchronization:
      break;
  }
  return Tag(work, "Sync");
}

std::string LaunchedKernel(Analysis& analysis, const GpuNames& names, const Launch& launch) {
  if (launch.kernel == 0 || launch.domain != ApiDomain::kRuntime) return {};
  const SpaceId space = analysis.processes.SpaceAt(launch.owner());
  const auto symbol = analysis.resolver.SymbolAt(launch.kernel, space, launch.start_ns);
  return symbol ? names.KernelName(KernelOfHostFunction(*symbol)) : std::string();
}

FrameId GpuLeaves::Of(const GpuWork& work) {
  const auto intern = [&] {
    return analysis_.frames.Intern(names_.Leaf(work), FrameOrigin::kGpuWork);
  };
  const auto known = [&](FlatMap<FrameId>& leaves, uint64_t what) {
    FrameId& leaf = leaves[what << 32 | work.gpu];
    if (!leaf) leaf = intern();
    return leaf;
  };
  const LoadedEvents& events = analysis_.model.events;
  switch (work.kind) {
    case WorkKind::kKernel:
      return known(kernels_, events.kernels.Get<&Kernel::name>(work.index).value);
    case WorkKind::kMemcpy:
      return known(copies_, uint64_t{1} + events.memcpys.Get<&Memcpy::copy_kind>(work.index));
    case WorkKind::kMemset:
      return known(copies_, 0);
    case WorkKind::kGraph:
    case WorkKind::kSynchronization:
      break;
  }
  return intern();
}

FrameId GpuLeaves::InsteadOf(const Launch& launch) {
  switch (LaunchStatusOf(launch)) {
    case LaunchStatus::kUnmatched:
      return analysis_.frames.Intern("[GPU_Launch_Pending]", FrameOrigin::kPending);
    case LaunchStatus::kProbed:
      return analysis_.frames.Intern("[GPU_Launch]" + LaunchedKernel(analysis_, names_, launch),
                                     FrameOrigin::kPending);
    default:
      return FrameId{};
  }
}

}  // namespace xpu
