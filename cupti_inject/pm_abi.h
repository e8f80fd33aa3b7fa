// The parts of CUPTI that PM sampling needs, as pm_abi_check.cpp asserts them against the headers
// of a toolkit (12.6 and newer have them): parameter structs, which all begin with their size up to
// the end of the last member that the caller knows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xpu::pm {

using Result = int;  // CUptiResult
inline constexpr Result kSuccess = 0;
inline constexpr Result kErrorInvalidContext = 3;
inline constexpr Result kErrorInvalidOperation = 7;
inline constexpr Result kErrorOutOfMemory = 8;
inline constexpr Result kErrorNotInitialized = 15;
inline constexpr Result kErrorHardwareBusy = 26;
inline constexpr Result kErrorInsufficientPrivileges = 35;

inline constexpr uint32_t kMetricTypes = 3;  // counters, ratios, throughputs

inline constexpr uint32_t kProfilerPmSampling = 1;   // CUpti_ProfilerType
inline constexpr uint32_t kTriggerTimeInterval = 1;  // CUpti_PmSampling_TriggerMode
inline constexpr uint32_t kTriggerSysclk = 0;
inline constexpr uint32_t kKeepOldest = 0;       // CUpti_PmSampling_HardwareBuffer_AppendMode
inline constexpr uint32_t kStoppedDataFull = 1;  // CUpti_PmSampling_DecodeStopReason

// Every struct begins so.
struct Params {
  size_t size;
  void* priv = nullptr;
};

struct Initialize {
  Params params{sizeof(Initialize)};
};
struct GetChipName {
  Params params{sizeof(GetChipName)};
  size_t device = 0;
  const char* chip = nullptr;
};
struct GetCounterAvailability {
  Params params{sizeof(GetCounterAvailability)};
  size_t device = 0;
  size_t image_bytes = 0;
  uint8_t* image = nullptr;
};

struct HostInitialize {
  Params params{sizeof(HostInitialize)};
  uint32_t type = kProfilerPmSampling;
  const char* chip = nullptr;
  const uint8_t* availability = nullptr;
  void* host = nullptr;
};
struct HostDeinitialize {
  Params params{sizeof(HostDeinitialize)};
  void* host = nullptr;
};
struct HostBaseMetrics {
  Params params{sizeof(HostBaseMetrics)};
  void* host = nullptr;
  uint32_t type = 0;  // CUpti_MetricType
  const char** names = nullptr;
  size_t count = 0;
};
struct HostAddMetrics {
  Params params{sizeof(HostAddMetrics)};
  void* host = nullptr;
  const char** names = nullptr;
  size_t count = 0;
};
struct HostConfigSize {
  Params params{sizeof(HostConfigSize)};
  void* host = nullptr;
  size_t bytes = 0;
};
struct HostConfigImage {
  Params params{sizeof(HostConfigImage)};
  void* host = nullptr;
  size_t bytes = 0;
  uint8_t* image = nullptr;
};
struct HostPasses {
  Params params{sizeof(HostPasses)};
  size_t bytes = 0;
  uint8_t* image = nullptr;
  size_t passes = 0;
};
struct HostEvaluate {
  Params params{sizeof(HostEvaluate)};
  void* host = nullptr;
  const uint8_t* data = nullptr;
  size_t data_bytes = 0;
  size_t index = 0;
  const char** names = nullptr;
  size_t count = 0;
  double* values = nullptr;
};

struct Enable {
  Params params{sizeof(Enable)};
  size_t device = 0;
  void* sampling = nullptr;
};
struct OfSampling {  // Disable, Start, Stop
  Params params{sizeof(OfSampling)};
  void* sampling = nullptr;
};
struct SetConfig {
  Params params{sizeof(SetConfig)};
  void* sampling = nullptr;
  size_t config_bytes = 0;
  const uint8_t* config = nullptr;
  size_t hardware_buffer_bytes = 0;
  uint64_t interval = 0;
  uint32_t trigger = kTriggerTimeInterval;
  uint32_t append = kKeepOldest;
};
struct DataSize {
  Params params{sizeof(DataSize)};
  void* sampling = nullptr;
  const char** names = nullptr;
  size_t count = 0;
  uint32_t most_samples = 0;
  size_t bytes = 0;
};
struct DataInitialize {
  Params params{sizeof(DataInitialize)};
  void* sampling = nullptr;
  size_t bytes = 0;
  uint8_t* data = nullptr;
};
struct Decode {
  Params params{offsetof(Decode, overflow) + sizeof(uint8_t)};
  void* sampling = nullptr;
  uint8_t* data = nullptr;
  size_t bytes = 0;
  uint32_t stopped = 0;
  uint8_t overflow = 0;
};
struct DataInfo {
  Params params{sizeof(DataInfo)};
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  size_t total = 0;
  size_t populated = 0;
  size_t completed = 0;
};
struct SampleInfo {
  Params params{sizeof(SampleInfo)};
  void* sampling = nullptr;
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  size_t index = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

}  // namespace xpu::pm
