// Finding the libcupti that fits this process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_inject/cupti_abi.h"

namespace xpu::inject {

struct LoadedCupti {
  cupti::Functions functions;
  uint32_t version = 0;  // cuptiGetVersion; cupti_versions.h
  char path[512] = "";   // as the loader knows it
  char note[700] = "";   // what the user should know although it works; may be empty
};

// cuDriverGetVersion of the libcuda in this process (13000 for 13.0); 0: unknown.
uint32_t DriverVersion();
// Whether it is being taken down, as happens when a program exits.
bool IsDriverGone();

// Looks in this order: a copy that the process has mapped already (two copies conflict), `chosen`
// (XPU_CUPTI_LIB; may be nullptr), the vicinity of the program's cudart, the wheels beside Python
// packages that are mapped, the loader's search, the directories where the toolkit puts it; of each
// the newest version that `driver_version` allows. False with one sentence in `reason`. The library
// stays loaded.
bool LoadCupti(const char* chosen, uint32_t driver_version, LoadedCupti* cupti, char* reason,
               size_t reason_size);

}  // namespace xpu::inject
