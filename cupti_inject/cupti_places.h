// Where a libcupti may be, for a program that has not loaded one: what the injected library tries,
// and what xpu-record --check looks at.
#pragma once

#include <cstdint>

namespace xpu::cupti {

struct LibraryVersion {
  uint32_t cuda_major;
  const char* file;  // by this name the loader is asked first
};
inline constexpr LibraryVersion kLibraryVersions[] = {
    // newest first
    {13, "libcupti.so.13"},
    {12, "libcupti.so.12"},
    {11, "libcupti.so.11.8"},
};

// A libcupti that is newer than the driver does not work. `driver_version`: as cuDriverGetVersion
// gives it; 0: not known.
constexpr bool IsAllowed(uint32_t cuda_major, uint32_t driver_version) {
  return driver_version == 0 || cuda_major <= driver_version / 1000;
}

// Where installers put it when the loader does not look there; %u is the CUDA major version.
inline constexpr const char* kLibraryDirectories[] = {
    "/usr/local/cuda-%u/lib64",
    "/usr/local/cuda-%u/extras/CUPTI/lib64",
    "/usr/local/cuda-%u/targets/x86_64-linux/lib",
    "/usr/local/cuda/lib64",
    "/usr/local/cuda/extras/CUPTI/lib64",
    "/usr/local/cuda/targets/x86_64-linux/lib",
};

}  // namespace xpu::cupti
