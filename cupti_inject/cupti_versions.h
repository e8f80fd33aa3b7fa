// Versions of CUPTI: which CUDA version each belongs to, how far xpu is tested with it, and what
// older ones lack. CUDA versions are written as CUDA_VERSION is: 12040 for 12.4.
#pragma once

#include <cstdint>

namespace xpu::cupti {

// What cuptiGetVersion returns, by the first CUDA version that has it.
struct ApiVersion {
  uint32_t api;
  uint32_t cuda;
};
inline constexpr ApiVersion kApiVersions[] = {
    // oldest first; since 13.0 the number says the version: 130001 is CUDA 13.0
    {13, 11000}, {14, 11010}, {15, 11020}, {16, 11050}, {17, 11060}, {18, 11080}, {19, 12000},
    {20, 12020}, {21, 12030}, {22, 12040}, {23, 12050}, {24, 12060}, {26, 12080}, {27, 12090},
};
inline constexpr uint32_t kFirstWithVersion = 100000;

// 0: older than all of these.
constexpr uint32_t CudaVersionOfCupti(uint32_t api) {
  if (api >= kFirstWithVersion) return api / 10000 * 1000 + api / 100 % 100 * 10;
  uint32_t cuda = 0;
  for (const ApiVersion& version : kApiVersions) {
    if (version.api <= api) cuda = version.cuda;
  }
  return cuda;
}

enum class Support {
  kTested,        // on GPUs
  kSimulated,     // on the simulated device, as that version's headers and functions are
  kExpected,      // between tested ones, or newer
  kNotSupported,  // older
};

inline constexpr uint32_t kOldestCuda = 11080;
inline constexpr uint32_t kSimulatedCuda[] = {12000, 12090};
inline constexpr uint32_t kTestedCuda[] = {11080, 12040, 13000};
inline constexpr uint32_t kTestedDriver = 13000;  // with all of them

constexpr Support SupportOf(uint32_t cuda) {
  if (cuda < kOldestCuda) return Support::kNotSupported;
  for (const uint32_t tested : kTestedCuda) {
    if (cuda == tested) return Support::kTested;
  }
  for (const uint32_t simulated : kSimulatedCuda) {
    if (cuda == simulated) return Support::kSimulated;
  }
  return Support::kExpected;
}

// What is missing or different before CUDA `since`.
struct Lack {
  uint32_t since;
  const char* what;
};
// Where no header of a version in between is to be had, `since` is the oldest that is known to have
// it.
inline constexpr uint32_t kFirstWithExecutableIds = 12040;  // cuptiGetGraphExecId
// 11.8 has their ids, and refuses them with a driver of 13.0.
inline constexpr uint32_t kFirstWithNodeCallbacks = 12000;
// Records of sampled instructions grew in 12.4 (a correlation id), from 56 bytes to 64. They lie in
// an array of ours, whose elements an older CUPTI takes to be shorter.
inline constexpr uint32_t kFirstWithPcSampling = 12040;
inline constexpr uint32_t kFirstWithPmSampling = 12060;
// Before, cuptiFinalize may crash a program that has graphs, or had some (NVIDIA's notes on 12.4
// Update 1, and reports up to 12.5).
inline constexpr uint32_t kFirstToFinalizeWithGraphs = 12060;
inline constexpr uint32_t kFirstWithNodeUpdates = 13000;
inline constexpr Lack kLacks[] = {
    {kFirstWithNodeCallbacks,
     "with a newer driver it hides which code adds graph nodes, so launches captured into a graph "
     "count as pending"},
    {kFirstWithExecutableIds, "changes by cudaGraphExecUpdate are not followed"},
    {kFirstWithPcSampling, "no samples of GPU code (--gpu-samples)"},
    {kFirstWithPmSampling, "no hardware counters (--gpu-metrics)"},
    {kFirstWithNodeUpdates, "new parameters of graph nodes are not followed"},
};

}  // namespace xpu::cupti
