#include "record/gpu/cuda_use.h"

#include <algorithm>
#include <string>
#include <vector>

#include <sys/mman.h>

#include "record/process/process_maps.h"

namespace xpu {
namespace {

bool IsWrittenTo(const ProcessMapping& mapping) {
  // Also below another root.
  return (mapping.flags & MAP_SHARED) != 0 && (mapping.protection & PROT_WRITE) != 0 &&
         mapping.path.find("/dev/nvidia") != std::string::npos;
}

}  // namespace

CudaUse CudaUseOf(uint32_t pid, uint32_t parent_pid) {
  auto mappings = ReadProcessMaps(pid);
  if (!mappings.ok()) return CudaUse::kNone;
  const auto device = std::find_if(mappings->begin(), mappings->end(), IsWrittenTo);
  if (device == mappings->end()) return CudaUse::kNone;
  if (parent_pid == 0) return CudaUse::kOwn;
  auto of_parent = ReadProcessMaps(parent_pid);
  if (!of_parent.ok()) return CudaUse::kOfParent;  // whose it is cannot be known: left alone
  const ProcessMapping* same = FindMapping(*of_parent, device->start_address);
  return same != nullptr && IsWrittenTo(*same) ? CudaUse::kOfParent : CudaUse::kOwn;
}

}  // namespace xpu
