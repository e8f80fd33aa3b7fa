// The functions of the CUDA libraries that start GPU work, and their locations in a file.
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
  xpu_probe_argument kernel;  // the argument that names it
};

std::span<const LaunchFunction> LaunchFunctions();

struct FunctionLocation {
  const LaunchFunction* function = nullptr;
  uint64_t file_offset = 0;  // of the probe
};

// The offset of a probe on the function at `file_offset`: after its endbr64, which is slow to
// probe.
uint64_t OffsetAfterEndbr64(const ElfImage& image, uint64_t file_offset);

// The functions that the file defines, in the order of LaunchFunctions(). Of several names for the
// same code only the first is kept, because the code would be probed twice.
std::vector<FunctionLocation> FindLaunchFunctions(const ElfImage& image);

}  // namespace xpu
