// Names of CUDA API functions: what a callback id means, and what kind of work it starts.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "format/base/ids.h"
#include "report/base/flat_map.h"
#include "report/model/model.h"

namespace xpu {

// "cudaLaunchKernel" of "cudaLaunchKernel_v7000", "cudaLaunchKernel_ptsz_v7000",
// "__cudaLaunchKernel"; "cuMemcpyHtoD" of "cuMemcpyHtoD_v2_ptds".
std::string NormalizeApiName(std::string_view name);

enum class ApiKind : uint8_t { kOther, kKernelLaunch, kGraphLaunch };

// The kind by the normalized name: after some calls a kernel or graph record must come.
ApiKind KindOfApi(std::string_view normalized);

// One normalized name.
using ApiNameId = Id<struct ApiNameTag, uint32_t>;

class ApiNames {
 public:
  explicit ApiNames(const Model& model);

  // Normalized. A callback id without a name reads "cuda_driver_api_307".
  ApiNameId Of(InstanceId instance, ApiDomain domain, uint32_t callback_id) const;

  // The normalized name of the function that a probe is on; "" for a probe that is not defined.
  ApiNameId OfProbe(uint32_t probe) const;

  const std::string& Text(ApiNameId id) const { return names_[id.value - 1].text; }
  ApiKind Kind(ApiNameId id) const { return names_[id.value - 1].kind; }

  // Whether a C function of this (raw) name is a function of the CUDA API: one that the capture
  // names, or one of the calls that start work.
  bool IsEntryPoint(std::string_view symbol) const;

 private:
  struct Name {
    std::string text;
    ApiKind kind;
  };
  // The names of one instance, by domain and callback id.
  using Callbacks = FlatMap<ApiNameId>;
  static uint64_t KeyOf(ApiDomain domain, uint32_t callback_id) {
    return (domain == ApiDomain::kRuntime ? uint64_t{1} << 32 : 0) | callback_id;
  }
  ApiNameId Intern(std::string text) const;

  // Unnamed ids get their entry when they are asked for.
  mutable std::deque<Name> names_;  // by id - 1
  mutable std::unordered_map<std::string, ApiNameId> by_text_;
  mutable std::unordered_map<InstanceId, Callbacks> callbacks_;
  std::unordered_map<uint32_t, ApiNameId> probes_;
  ApiNameId none_;  // ""
  std::unordered_set<std::string> entry_points_;
};

}  // namespace xpu
