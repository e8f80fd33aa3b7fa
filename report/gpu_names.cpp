#include "report/gpu_names.h"

#include <array>

#include "format/base/text.h"
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

const CopyKind& KindOf(uint8_t copy_kind) {
  return copy_kind < kCopyKinds.size() ? kCopyKinds[copy_kind] : kCopyKinds[0];
}

}  // namespace

std::string_view CopyKindName(uint8_t copy_kind) { return KindOf(copy_kind).name; }
std::string_view CopyOperationName(uint8_t copy_kind) { return KindOf(copy_kind).operation; }

std::string_view SynchronizationName(uint32_t type) {
  return type < kSynchronizations.size() ? kSynchronizations[type] : kSynchronizations[0];
}

std::string_view ShortKernelName(std::string_view demangled) {
  std::string_view name = demangled;
  if (name.starts_with("void ")) name.remove_prefix(5);
  if (!name.ends_with(')')) return name;
  // The parenthesis that belongs to the last one opens the parameters.
  int depth = 0;
  for (size_t at = name.size(); at > 0; --at) {
    if (name[at - 1] == ')') ++depth;
    if (name[at - 1] == '(' && --depth == 0) return at > 1 ? name.substr(0, at - 1) : name;
  }
  return name;
}

const std::string& GpuNames::KernelName(StringId name) const {
  const auto [at, is_new] = kernels_.try_emplace(name);
  if (is_new) {
    const std::string_view text = model_.Text(name);
    at->second = kernel_names_ == KernelNames::kDemangled ? Demangle(text) : std::string(text);
    if (at->second.empty()) at->second = "[unnamed]";
  }
  return at->second;
}

std::string GpuNames::Title(const GpuWork& work) const {
  const EventBatch& events = model_.events;
  switch (work.kind) {
    case WorkKind::kKernel:
      return KernelName(events.kernels[work.index].name);
    case WorkKind::kMemcpy:
      return Format("Memcpy {}", CopyKindName(events.memcpys[work.index].copy_kind));
    case WorkKind::kMemset:
      return "Memset";
    case WorkKind::kGraph:
      return Format("graph {}", events.graph_launches[work.index].graph_id);
    case WorkKind::kSynchronization:
      return Format("Synchronize {}",
                    SynchronizationName(events.synchronizations[work.index].type));
  }
  return {};
}

std::string GpuNames::Leaf(const GpuWork& work) const {
  switch (work.kind) {
    case WorkKind::kKernel:
      return "[GPU_Kernel]" + Title(work);
    case WorkKind::kMemcpy:
      return Format("[GPU_Memcpy]{}", CopyKindName(model_.events.memcpys[work.index].copy_kind));
    case WorkKind::kMemset:
      return "[GPU_Memset]";
    case WorkKind::kGraph:
      return "[GPU_Graph]" + Title(work);
    case WorkKind::kSynchronization:
      break;
  }
  return "[GPU_Sync]";
}

}  // namespace xpu
