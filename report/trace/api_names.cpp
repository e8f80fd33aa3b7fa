#include "report/trace/api_names.h"

#include <algorithm>
#include <utility>

#include "format/base/number.h"
#include "format/base/text.h"

namespace xpu {
namespace {

// Removes "_v123" at the end.
bool StripVersion(std::string_view& name) {
  size_t end = name.size();
  while (end > 0 && IsDigit(name[end - 1])) --end;
  if (end == name.size() || end < 2 || name.substr(end - 2, 2) != "_v") return false;
  name = name.substr(0, end - 2);
  return true;
}

bool StripSuffix(std::string_view& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return false;
  name.remove_suffix(suffix.size());
  return true;
}

// Known launch calls of CUDA 13.0, for captures in which the name of an id was lost.
struct KnownId {
  ApiDomain domain;
  uint32_t callback_id;
  std::string_view name;
};
constexpr KnownId kKnownIds[] = {
    {ApiDomain::kDriver, 115, "cuLaunch"},
    {ApiDomain::kDriver, 116, "cuLaunchGrid"},
    {ApiDomain::kDriver, 117, "cuLaunchGridAsync"},
    {ApiDomain::kDriver, 307, "cuLaunchKernel"},
    {ApiDomain::kDriver, 442, "cuLaunchKernel"},
    {ApiDomain::kDriver, 477, "cuLaunchCooperativeKernel"},
    {ApiDomain::kDriver, 478, "cuLaunchCooperativeKernel"},
    {ApiDomain::kDriver, 514, "cuGraphLaunch"},
    {ApiDomain::kDriver, 515, "cuGraphLaunch"},
    {ApiDomain::kDriver, 652, "cuLaunchKernelEx"},
    {ApiDomain::kDriver, 653, "cuLaunchKernelEx"},
    {ApiDomain::kRuntime, 211, "cudaLaunchKernel"},
    {ApiDomain::kRuntime, 214, "cudaLaunchKernel"},
    {ApiDomain::kRuntime, 269, "cudaLaunchCooperativeKernel"},
    {ApiDomain::kRuntime, 270, "cudaLaunchCooperativeKernel"},
    {ApiDomain::kRuntime, 311, "cudaGraphLaunch"},
    {ApiDomain::kRuntime, 312, "cudaGraphLaunch"},
    {ApiDomain::kRuntime, 430, "cudaLaunchKernelExC"},
    {ApiDomain::kRuntime, 431, "cudaLaunchKernelExC"},
    {ApiDomain::kRuntime, 505, "cudaLaunchKernel"},
    {ApiDomain::kRuntime, 506, "cudaLaunchKernel"},
};

constexpr std::string_view kEntryPoints[] = {
    "cuGraphLaunch",
    "cuLaunchCooperativeKernel",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "cudaGraphLaunch",
    "cudaLaunchCooperativeKernel",
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cudaMemcpy",
    "cudaMemcpy2D",
    "cudaMemcpy2DAsync",
    "cudaMemcpy3D",
    "cudaMemcpy3DAsync",
    "cudaMemcpyAsync",
    "cudaMemcpyFromSymbol",
    "cudaMemcpyFromSymbolAsync",
    "cudaMemcpyPeer",
    "cudaMemcpyPeerAsync",
    "cudaMemcpyToSymbol",
    "cudaMemcpyToSymbolAsync",
    "cudaMemset",
    "cudaMemset2D",
    "cudaMemset2DAsync",
    "cudaMemsetAsync",
    "cudaStreamSynchronize",
};

std::string NameWithout(ApiDomain domain, uint32_t callback_id) {
  for (const KnownId& known : kKnownIds) {
    if (known.domain == domain && known.callback_id == callback_id) return std::string(known.name);
  }
  const char* kind = domain == ApiDomain::kRuntime ? "runtime" : "driver";
  return Format("cuda_{}_api_{}", kind, callback_id);
}

}  // namespace

std::string NormalizeApiName(std::string_view name) {
  const size_t letters = std::min(name.find_first_not_of('_'), name.size());
  if (name.substr(letters).starts_with("cu")) name.remove_prefix(letters);
  while (StripVersion(name) || StripSuffix(name, "_ptsz") || StripSuffix(name, "_ptds")) {
  }
  return std::string(name);
}

ApiKind KindOfApi(std::string_view normalized) {
  if (normalized.find("HostFunc") != std::string_view::npos) return ApiKind::kOther;
  if (normalized == "cuGraphLaunch" || normalized == "cudaGraphLaunch") {
    return ApiKind::kGraphLaunch;
  }
  if (normalized.starts_with("cuLaunch") || normalized.starts_with("cudaLaunch")) {
    return ApiKind::kKernelLaunch;
  }
  return ApiKind::kOther;
}

ApiNameId ApiNames::Intern(std::string text) const {
  const auto [at, is_new] = by_text_.try_emplace(std::move(text));
  if (is_new) {
    names_.push_back({at->first, KindOfApi(at->first)});
    at->second = ApiNameId{static_cast<uint32_t>(names_.size())};
  }
  return at->second;
}

ApiNames::ApiNames(const Model& model) : none_(Intern("")) {
  for (const std::string_view name : kEntryPoints) entry_points_.emplace(name);
  for (const CallbackName& event : model.events.callback_names) {
    std::string name = NormalizeApiName(model.Text(event.name));
    // CUPTI answers "INVALID" for ids that it does not know.
    if (!name.starts_with("cu")) continue;
    entry_points_.insert(name);
    ApiNameId& known = callbacks_[event.instance][KeyOf(event.domain, event.callback_id)];
    if (!known) known = Intern(std::move(name));
  }
  for (const Probe& probe : model.events.probes) {
    probes_.try_emplace(probe.probe, Intern(NormalizeApiName(model.Text(probe.function))));
  }
}

ApiNameId ApiNames::OfProbe(uint32_t probe) const {
  const auto found = probes_.find(probe);
  return found == probes_.end() ? none_ : found->second;
}

ApiNameId ApiNames::Of(InstanceId instance, ApiDomain domain, uint32_t callback_id) const {
  ApiNameId& name = callbacks_[instance][KeyOf(domain, callback_id)];
  if (!name) name = Intern(NameWithout(domain, callback_id));
  return name;
}

bool ApiNames::IsEntryPoint(std::string_view symbol) const {
  const size_t letters = std::min(symbol.find_first_not_of('_'), symbol.size());
  if (!symbol.substr(letters).starts_with("cu")) return false;
  return entry_points_.contains(NormalizeApiName(symbol));
}

}  // namespace xpu
