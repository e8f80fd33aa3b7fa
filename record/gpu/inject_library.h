// Finds the library that the CUDA driver loads into the program, and its marker function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/base/result.h"

namespace xpu {

// The environment variable from which the driver takes the library's path. Other profilers use it
// too.
inline constexpr char kInjectionVariable[] = "CUDA_INJECTION64_PATH";
inline constexpr char kNvtxVariable[] = "NVTX_INJECTION64_PATH";

inline constexpr char kInjectLibraryFile[] = "libxpu_inject.so";

// Searches relative to this executable: ../lib/xpu/ in an installation, ../cupti_inject/ in a build
// tree.
Result<std::string> FindInjectLibrary();

// The paths that are searched, in order, for messages.
std::vector<std::string> InjectLibraryPaths(const std::string& executable);

// The marker function of this process's own copy of the library, for timing a probe on it.
using MarkerFunction = void (*)(uint32_t correlation_id, uint32_t domain_and_callback_id,
                                uint64_t instance, uint64_t session);
struct Marker {
  MarkerFunction call = nullptr;
  uint64_t file_offset = 0;
};
Result<Marker> LoadMarker(const std::string& library);

}  // namespace xpu
