// What the helper process (metrics_helper.h) and the recorder send each other: packets of a
// SOCK_SEQPACKET socket. Both are the same program, so there are no versions.
//
// The helper sends packets that begin with a PacketHeader, followed by `count` structs of its kind.
// The recorder sends commands of one byte, and closes its direction to end the helper.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xpu::gpu_metrics {

inline constexpr size_t kMaxPacketBytes = size_t{48} << 10;
inline constexpr size_t kValuesPerSample = 8;  // GpuMetricSample::value0 to value7

enum class PacketKind : uint32_t {
  kDevice,   // DevicePacket
  kState,    // StatePacket
  kFault,    // FaultPacket
  kMetric,   // MetricPacket
  kSamples,  // SamplePacket
  kClock,    // ClockPacket
  kLost,     // LostPacket
  kRefused,  // RefusedPacket: this part does not work here; the others go on
  kReady,    // nothing: what was asked for is being recorded, or has been refused
};

struct PacketHeader {
  PacketKind kind;
  uint32_t count;
};

enum class Command : char {
  kWatch = 'w',   // start reading clocks and power
  kPause = 'p',   // both
  kResume = 'r',  // both
};

// The fields are those of the events of the same names.
struct DevicePacket {
  uint32_t gpu;
  uint32_t index;
  uint8_t uuid[16];
  uint64_t memory_bytes;
  uint32_t power_limit;
  uint32_t max_sm_clock;
  uint32_t max_memory_clock;
  char name[96];
  char pci_address[32];
  char driver_version[80];
};

struct StatePacket {
  uint64_t time_ns;
  uint32_t gpu;
  uint32_t sm_clock;
  uint32_t memory_clock;
  uint32_t power;
  uint32_t temperature;
  uint64_t energy;
  uint64_t throttle_reasons;
  uint64_t memory_used_bytes;
  uint64_t power_capped;
  uint64_t thermal_capped;
  uint64_t corrected_errors;
  uint64_t uncorrected_errors;
};

struct FaultPacket {
  uint64_t time_ns;
  uint32_t gpu;
  uint64_t kind;
  uint64_t code;
};

struct MetricPacket {
  uint32_t metric;
  uint32_t gpu;
  uint32_t quantum;
  uint64_t peak;
  uint64_t interval;
  char name[160];
  char source[160];
  char unit[16];
};

struct SamplePacket {
  uint64_t start_ns;
  uint64_t end_ns;
  uint32_t gpu;
  uint32_t metric;
  uint64_t values[kValuesPerSample];
};

struct ClockPacket {
  uint64_t before_ns;
  uint64_t clock_ns;
  uint64_t after_ns;
};

struct LostPacket {
  uint64_t samples;
  uint32_t gpu;
};

struct RefusedPacket {
  bool is_counters;  // otherwise clocks and power
  bool is_absent;    // no NVIDIA driver: nothing to report unless it was asked for
  char reason[512];
};

}  // namespace xpu::gpu_metrics
