// The functions of the CUDA libraries that make the GPU work, and where they are in a file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bpf/events.h"
#include "format/events.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {

struct LaunchFunction {
  const char* name;
  ProbePurpose purpose;
  xpu_probe_argument kernel;  // which argument names it
};

std::span<const LaunchFunction> LaunchFunctions();

struct FunctionPlace {
  const LaunchFunction* function = nullptr;
  uint64_t file_offset = 0;  // where a probe goes
};

// Where a probe on the function at `file_offset` goes: after its endbr64, on which a hit is slow.
uint64_t PlaceBehindEndbr64(const ElfImage& image, uint64_t file_offset);

// Those that the file defines, in the order of LaunchFunctions(). Of several names of the same code
// only the first: it would be probed twice.
std::vector<FunctionPlace> FindLaunchFunctions(const ElfImage& image);

}  // namespace xpu
