#include "report/analysis/launched_kernel.h"

#include "report/analysis/call_paths.h"

namespace xpu {

std::string LaunchedKernel(Analysis& analysis, const GpuNames& names, const Launch& launch) {
  if (launch.kernel == 0 || launch.domain != ApiDomain::kRuntime) return {};
  const Owner owner = OwnerOf(analysis, launch);
  const SpaceId space = analysis.processes.SpaceAt(owner.process, owner.time_ns);
  const auto symbol = analysis.resolver.SymbolAt(launch.kernel, space, owner.time_ns);
  return symbol ? names.KernelName(KernelOfHostFunction(*symbol)) : std::string();
}

}  // namespace xpu
