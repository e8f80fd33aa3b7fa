// Names of GPU work.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/kernel_name.h"
#include "report/base/flat_map.h"

namespace xpu {

enum class KernelNames : uint8_t {
  kFull,   // demangled
  kShort,  // DistinctKernelNames of all of the capture
  kMangled,
};

// "HtoD" of a CUpti_ActivityMemcpyKind; "?" for one that we do not know.
std::string_view CopyKindName(uint8_t copy_kind);
// "[CUDA memcpy Host-to-Device]", as nsys says it.
std::string_view CopyOperationName(uint8_t copy_kind);
// "lazy function loading" of a CUpti_ActivityOverheadKind.
std::string_view OverheadName(uint32_t overhead_kind);
// "kernel", "memcpy", "memset", "graph", "sync".
std::string_view WorkKindName(WorkKind kind);
// "stream" of a CUpti_ActivitySynchronizationType.
std::string_view SynchronizationName(uint32_t type);

// The kernel that a function of the program stands for: `<<<>>>` calls with the address of a
// function that has the kernel's own (mangled) name, or that of its stub,
// _Z29__device_stub__Z6matmulPfS_S_PfS_S_.
std::string KernelOfHostFunction(std::string_view symbol);

// Demangled, each once: all that the capture has, whatever a filter leaves of it.
std::vector<std::string> KernelNamesOf(const Model& model);

class GpuNames {
 public:
  // `analysis` must outlive this. `device_tags`: leaves name the GPU.
  GpuNames(const Analysis& analysis, KernelNames kernel_names, bool device_tags = false)
      : analysis_(analysis),
        model_(analysis.model),
        kernel_names_(kernel_names),
        device_tags_(device_tags) {}

  const std::string& KernelName(StringId name) const;
  std::string KernelName(std::string_view mangled) const;
  // "softmax(float*)", "Memcpy HtoD", "Memcpy PtoP 0->1", "Memset", "graph 7 (12 nodes)",
  // "Synchronize stream".
  std::string Title(const GpuWork& work) const;
  // The leaf of a folded stack: "[GPU_Kernel]softmax(float*)", "[GPU_Memcpy]HtoD",
  // "[GPU0_Memset]".
  std::string Leaf(const GpuWork& work) const;

 private:
  std::string GraphTitle(const GraphLaunch& graph) const;
  std::string CopyTitle(const Memcpy& copy) const;
  // "[GPU_Kernel]"
  std::string Tag(const GpuWork& work, std::string_view what) const;
  std::string ShortName(const std::string& full) const;

  const Analysis& analysis_;
  const Model& model_;
  KernelNames kernel_names_;
  bool device_tags_;
  mutable std::unordered_map<StringId, std::string> kernels_;
  mutable std::map<std::string, std::string> short_names_;  // by full name; made when first asked
  mutable std::set<std::string> taken_names_;               // the short ones
};

// The kernel that a launch names, for launches that only a probe saw.
// Empty: not known. Launches through the runtime name the kernel by the address of a function of
// the program; handles of the driver say nothing.
std::string LaunchedKernel(Analysis& analysis, const GpuNames& names, const Launch& launch);

// The frame that ends a path of GPU work.
class GpuLeaves {
 public:
  // `analysis` must outlive this.
  GpuLeaves(Analysis& analysis, KernelNames kernel_names, bool device_tags = false)
      : analysis_(analysis), names_(analysis, kernel_names, device_tags) {}

  FrameId Of(const GpuWork& work);
  // Instead of the work of a launch that has none: [GPU_Launch_Pending], [GPU_Launch]kernel
  // for one that only a probe saw. None: no work is missing.
  FrameId InsteadOf(const Launch& launch);

 private:
  Analysis& analysis_;
  const GpuNames names_;
  FlatMap<FrameId> kernels_;  // by name and GPU: their names are long
  FlatMap<FrameId> copies_;   // and sets, by what they are and GPU
};

}  // namespace xpu
