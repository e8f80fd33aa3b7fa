// Names of CUDA API functions: what a callback id means, and what kind of work it starts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "report/model.h"

namespace xpu {

// "cudaLaunchKernel" of "cudaLaunchKernel_v7000", "cudaLaunchKernel_ptsz_v7000",
// "__cudaLaunchKernel"; "cuMemcpyHtoD" of "cuMemcpyHtoD_v2_ptds".
std::string NormalizeApiName(std::string_view name);

enum class ApiKind : uint8_t { kOther, kKernelLaunch, kGraphLaunch };

// By the normalized name: the calls after which a kernel or graph record must come.
ApiKind KindOfApi(std::string_view normalized);

class ApiNames {
 public:
  explicit ApiNames(const Model& model);

  // Normalized. A callback id without a name reads "cuda_driver_api_307".
  const std::string& Of(InstanceId instance, ApiDomain domain, uint32_t callback_id) const;

  // The normalized name of the function that a probe is on; "" for a probe that is not defined.
  const std::string& OfProbe(uint32_t probe) const;

  // Whether a C function of this (raw) name is a function of the CUDA API: one that the capture
  // names, or one of the calls that start work.
  bool IsEntryPoint(std::string_view symbol) const;

 private:
  using Key = std::tuple<InstanceId, ApiDomain, uint32_t>;
  struct HashKey {
    size_t operator()(const Key& key) const;
  };
  // Unnamed ids get their entry when they are asked for.
  mutable std::unordered_map<Key, std::string, HashKey> names_;
  std::unordered_map<uint32_t, std::string> probes_;
  std::unordered_set<std::string> entry_points_;
};

}  // namespace xpu
