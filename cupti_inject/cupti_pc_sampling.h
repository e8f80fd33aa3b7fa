// The part of CUPTI's binary interface that samples program counters (cupti_pcsampling.h): see
// cupti_abi.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xpu::cupti {

using Result = int32_t;

struct StallCount {
  uint32_t reason;
  uint32_t samples;
};

// Samples at one instruction. All structs that begin with it hold their own size.
struct PcSamples {
  size_t size;
  uint64_t cubin_crc;
  uint64_t offset;          // in the function
  uint32_t function_index;  // of its symbol in the module
  uint32_t pad;
  char* function_name;
  size_t reason_count;
  StallCount* reasons;  // ours, with room for all
  uint32_t correlation_id;
};

struct SamplingData {
  size_t size;
  size_t capacity;  // of `instructions`
  uint64_t samples;
  uint64_t dropped;
  size_t count;
  size_t left;  // for the next call
  uint64_t range;
  PcSamples* instructions;
  uint64_t other_samples;  // of kernels that are not the program's
  uint8_t buffer_is_full;
};

inline constexpr uint32_t kSamplingPeriod = 1;        // uint32_t: 2^N cycles
inline constexpr uint32_t kSamplingReasons = 2;       // size_t, uint32_t*
inline constexpr uint32_t kSamplingScratchBytes = 3;  // size_t
inline constexpr uint32_t kSamplingBufferBytes = 4;   // size_t
inline constexpr uint32_t kSamplingMode = 5;          // uint32_t
inline constexpr uint32_t kSamplingDataBuffer = 8;    // SamplingData*
inline constexpr uint32_t kSamplingModeContinuous = 1;

struct SamplingSetting {
  uint32_t attribute;
  Result status;
  union {
    uint64_t words[3];
    uint32_t number;
    size_t bytes;
    void* buffer;
    struct {
      size_t count;
      uint32_t* indices;
    } reasons;
  };
};

struct SamplingSettings {
  size_t size;
  void* reserved;
  void* context;
  size_t count;
  SamplingSetting* settings;
};

struct SamplingParameters {  // of functions that take the context alone
  size_t size;
  void* reserved;
  void* context;
};

struct SamplingFetch {
  size_t size;
  void* reserved;
  void* context;
  SamplingData* data;
};

struct StallReasonCount {
  size_t size;
  void* reserved;
  void* context;
  size_t* count;
};

inline constexpr size_t kStallReasonNameBytes = 128;
struct StallReasonNames {
  size_t size;
  void* reserved;
  void* context;
  size_t count;
  uint32_t* indices;
  char** names;  // ours, kStallReasonNameBytes each
};

struct CubinCrc {
  size_t size;
  size_t cubin_bytes;
  const void* cubin;
  uint64_t crc;
};

}  // namespace xpu::cupti
