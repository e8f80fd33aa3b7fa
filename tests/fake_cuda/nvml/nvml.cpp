// libnvidia-ml.so.1: the functions that xpu-record calls, with values that tests know. The devices
// are those of the simulated driver, with their UUIDs.
#include <chrono>
#include <cstdio>
#include <cstring>

#include <cuda.h>

#include "../settings.h"

using xpu::fake_cuda::EnvNumber;

namespace {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kTimeout = 10;

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct Violation {
  unsigned long long reference_time;
  unsigned long long violation_time;
};
struct PciInfo {
  char legacy_bus_id[16];
  unsigned numbers[5];
  char bus_id[32];
};
struct EventData {
  void* device;
  unsigned long long type;
  unsigned long long data;
  unsigned instances[2];
};

const auto kStart = std::chrono::steady_clock::now();

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - kStart).count();
}

// A handle is the number of its device, from 1.
size_t NumberOf(void* device) { return reinterpret_cast<size_t>(device) - 1; }
unsigned PowerMw() { return static_cast<unsigned>(EnvNumber("XPU_FAKE_NVML_POWER_MW", 350'000)); }

bool xid_is_due = true;

}  // namespace

extern "C" {

int nvmlInit_v2() { return static_cast<int>(EnvNumber("XPU_FAKE_NVML_ERROR", kSuccess)); }
int nvmlShutdown() { return kSuccess; }
const char* nvmlErrorString(int code) {
  return code == 4 ? "Insufficient Permissions" : "Unknown Error";
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "580.00.simulated");
  return kSuccess;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  int devices = 0;
  cuInit(0);
  cuDeviceGetCount(&devices);
  *count = static_cast<unsigned>(devices);
  return kSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(size_t{index} + 1);
  return kSuccess;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  CUuuid uuid{};
  cuDeviceGetUuid(&uuid, static_cast<CUdevice>(NumberOf(device)));
  int at = std::snprintf(text, size, "GPU");
  for (int i = 0; i < 16; ++i) {
    const bool hyphen = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    at += std::snprintf(text + at, size - static_cast<unsigned>(at), "%s%02x", hyphen ? "-" : "",
                        static_cast<unsigned char>(uuid.bytes[i]));
  }
  return kSuccess;
}
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  cuDeviceGetName(text, static_cast<int>(size), static_cast<CUdevice>(NumberOf(device)));
  return kSuccess;
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  std::memset(info, 0, sizeof(*info));
  std::snprintf(info->bus_id, sizeof(info->bus_id), "00000000:%02zX:00.0", NumberOf(device) + 1);
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {size_t{16} << 30, size_t{12} << 30, size_t{4} << 30};
  return kSuccess;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* limit) {
  *limit = 700'000;
  return kSuccess;
}
int nvmlDeviceGetMaxClockInfo(void*, int kind, unsigned* mhz) {
  *mhz = kind == 2 ? 2619 : 1980;
  return kSuccess;
}
int nvmlDeviceGetClockInfo(void*, int kind, unsigned* mhz) {
  *mhz = kind == 2 ? 2619 : 1755;
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* mw) {
  *mw = PowerMw();
  return kSuccess;
}
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* mj) {
  *mj = 5'000'000 + static_cast<unsigned long long>(PowerMw() * Seconds());
  return kSuccess;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* degrees) {
  *degrees = 61;
  return kSuccess;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = EnvNumber("XPU_FAKE_NVML_REASONS", 0);
  return kSuccess;
}
// The power limit holds the clocks down all the time if it is one of the reasons.
int nvmlDeviceGetViolationStatus(void*, int policy, Violation* violation) {
  *violation = {};
  if (policy == 0 && (EnvNumber("XPU_FAKE_NVML_REASONS", 0) & 4) != 0) {
    violation->violation_time = static_cast<unsigned long long>(1e9 * Seconds());
  }
  return kSuccess;
}
int nvmlDeviceGetTotalEccErrors(void*, int, int, unsigned long long*) { return kNotSupported; }
int nvmlEventSetCreate(void** set) {
  *set = &xid_is_due;
  return kSuccess;
}
int nvmlEventSetFree(void*) { return kSuccess; }
int nvmlDeviceGetSupportedEventTypes(void*, unsigned long long* types) {
  *types = 0x1f;
  return kSuccess;
}
int nvmlDeviceRegisterEvents(void*, unsigned long long, void*) { return kSuccess; }
// One Xid, of the first device.
int nvmlEventSetWait_v2(void*, EventData* event, unsigned) {
  const unsigned long long xid = EnvNumber("XPU_FAKE_NVML_XID", 0);
  if (xid == 0 || !xid_is_due) return kTimeout;
  xid_is_due = false;
  *event = {reinterpret_cast<void*>(size_t{1}), 8, xid, {}};
  return kSuccess;
}

}  // extern "C"
