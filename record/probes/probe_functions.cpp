#include "record/probes/probe_functions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace xpu {
namespace {

constexpr auto kRuntime = ProbePurpose::kRuntimeLaunch;
constexpr auto kDriver = ProbePurpose::kDriverLaunch;

// Leaves out __cudaLaunchKernel (CUDA 13, called by <<<>>>): it jumps to cudaLaunchKernel, so that
// probing both would count launches twice. _ptsz: the per-thread default stream.
constexpr LaunchFunction kFunctions[] = {
    {"cudaLaunchKernel", kRuntime, XPU_PROBE_FIRST_ARGUMENT},
    {"cudaLaunchKernel_ptsz", kRuntime, XPU_PROBE_FIRST_ARGUMENT},
    {"cudaLaunchKernelExC", kRuntime, XPU_PROBE_SECOND_ARGUMENT},
    {"cudaLaunchKernelExC_ptsz", kRuntime, XPU_PROBE_SECOND_ARGUMENT},
    {"cudaLaunchCooperativeKernel", kRuntime, XPU_PROBE_FIRST_ARGUMENT},
    {"cudaLaunchCooperativeKernel_ptsz", kRuntime, XPU_PROBE_FIRST_ARGUMENT},
    {"cudaLaunchCooperativeKernelMultiDevice", kRuntime, XPU_PROBE_NO_ARGUMENT},
    {"cudaGraphLaunch", kRuntime, XPU_PROBE_NO_ARGUMENT},
    {"cudaGraphLaunch_ptsz", kRuntime, XPU_PROBE_NO_ARGUMENT},
    {"cuLaunch", kDriver, XPU_PROBE_FIRST_ARGUMENT},
    {"cuLaunchGrid", kDriver, XPU_PROBE_FIRST_ARGUMENT},
    {"cuLaunchGridAsync", kDriver, XPU_PROBE_FIRST_ARGUMENT},
    {"cuLaunchKernel", kDriver, XPU_PROBE_FIRST_ARGUMENT},
    {"cuLaunchKernel_ptsz", kDriver, XPU_PROBE_FIRST_ARGUMENT},
    {"cuLaunchKernelEx", kDriver, XPU_PROBE_SECOND_ARGUMENT},
    {"cuLaunchKernelEx_ptsz", kDriver, XPU_PROBE_SECOND_ARGUMENT},
    {"cuLaunchCooperativeKernel", kDriver, XPU_PROBE_FIRST_ARGUMENT},
    {"cuLaunchCooperativeKernel_ptsz", kDriver, XPU_PROBE_FIRST_ARGUMENT},
    {"cuLaunchCooperativeKernelMultiDevice", kDriver, XPU_PROBE_NO_ARGUMENT},
    {"cuGraphLaunch", kDriver, XPU_PROBE_NO_ARGUMENT},
    {"cuGraphLaunch_ptsz", kDriver, XPU_PROBE_NO_ARGUMENT},
};

constexpr std::array<unsigned char, 4> kEndbr64 = {0xf3, 0x0f, 0x1e, 0xfa};

}  // namespace

// A probe on endbr64 is single-stepped, for 10 to 15 us a hit in a virtual machine. Most functions
// continue with a push, which the kernel emulates. After endbr64 the return address is still at the
// top of the stack, which is all that a return probe needs.
uint64_t OffsetAfterEndbr64(const ElfImage& image, uint64_t file_offset) {
  const auto bytes = image.BytesAt(file_offset, kEndbr64.size());
  const bool begins_with_it = bytes.size() == kEndbr64.size() &&
                              std::memcmp(bytes.data(), kEndbr64.data(), kEndbr64.size()) == 0;
  return begins_with_it ? file_offset + kEndbr64.size() : file_offset;
}

std::span<const LaunchFunction> LaunchFunctions() { return kFunctions; }

std::vector<FunctionLocation> FindLaunchFunctions(const ElfImage& image) {
  std::unordered_map<std::string_view, uint64_t> addresses;
  for (const ElfSymbol& symbol : image.CodeSymbols()) {
    if (symbol.is_function) addresses.emplace(symbol.name, symbol.link_address);
  }
  std::vector<FunctionLocation> locations;
  for (const LaunchFunction& function : kFunctions) {
    const auto found = addresses.find(function.name);
    if (found == addresses.end()) continue;
    const std::optional<uint64_t> entry = image.FileOffsetOf(found->second);
    if (!entry) continue;
    const uint64_t offset = OffsetAfterEndbr64(image, *entry);
    const bool is_known = std::any_of(
        locations.begin(), locations.end(),
        [&](const FunctionLocation& location) { return location.file_offset == offset; });
    if (!is_known) locations.push_back({&function, offset});
  }
  return locations;
}

}  // namespace xpu
