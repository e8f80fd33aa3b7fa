// What GPU work is called.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "report/correlate.h"
#include "report/model.h"

namespace xpu {

enum class KernelNames : uint8_t { kDemangled, kMangled };

// "HtoD" of a CUpti_ActivityMemcpyKind; "?" for one that we do not know.
std::string_view CopyKindName(uint8_t copy_kind);
// "[CUDA memcpy Host-to-Device]", as nsys says it.
std::string_view CopyOperationName(uint8_t copy_kind);
// "stream" of a CUpti_ActivitySynchronizationType.
std::string_view SynchronizationName(uint32_t type);

// "softmax<float>" of "void softmax<float>(float*, int)": without parameters and "void", which for
// kernels say nothing, for places with little room. Other text stays.
std::string_view ShortKernelName(std::string_view demangled);

class GpuNames {
 public:
  // `model` must outlive this.
  GpuNames(const Model& model, KernelNames kernel_names)
      : model_(model), kernel_names_(kernel_names) {}

  const std::string& KernelName(StringId name) const;
  // "softmax(float*)", "Memcpy HtoD", "Memset", "graph 7", "Synchronize stream".
  std::string Title(const GpuWork& work) const;
  // The leaf of a folded stack: "[GPU_Kernel]softmax(float*)", "[GPU_Memcpy]HtoD".
  std::string Leaf(const GpuWork& work) const;

 private:
  const Model& model_;
  KernelNames kernel_names_;
  mutable std::unordered_map<StringId, std::string> kernels_;
};

}  // namespace xpu
