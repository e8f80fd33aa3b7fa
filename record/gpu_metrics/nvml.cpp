#include "record/gpu_metrics/nvml.h"

#include <cstdio>
#include <cstring>
#include <string_view>

#include <dlfcn.h>

#include "format/base/text.h"
#include "record/base/clock.h"

namespace xpu::gpu_metrics {
namespace {

using Code = int;  // nvmlReturn_t
constexpr Code kSuccess = 0;
constexpr Code kNoPermission = 4;
constexpr Code kDriverNotLoaded = 9;
constexpr Code kTimeout = 10;

constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kTemperatureOfGpu = 0;
constexpr int kViolationPower = 0;
constexpr int kViolationThermal = 1;
constexpr int kErrorCorrected = 0;
constexpr int kErrorUncorrected = 1;
constexpr int kErrorsSinceDriverLoad = 0;
constexpr uint64_t kEventCorrected = 1;
constexpr uint64_t kEventUncorrected = 2;
constexpr uint64_t kEventXid = 8;

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct Violation {
  unsigned long long reference_time;
  unsigned long long violation_time;
};
struct PciInfo {  // nvmlPciInfo_t
  char legacy_bus_id[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char bus_id[32];
};
struct EventData {
  void* device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpu_instance;
  unsigned compute_instance;
};

// "GPU-1b2c...": 16 bytes in hexadecimal, with hyphens.
void ParseUuid(std::string_view text, uint8_t (&uuid)[16]) {
  size_t digits = 0;
  text.remove_prefix(std::min(text.find('-') + 1, text.size()));
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0 || digits >= 32) continue;
    uuid[digits / 2] = static_cast<uint8_t>(uuid[digits / 2] << 4 | digit);
    ++digits;
  }
}

}  // namespace

struct Nvml::Functions {
  Code (*init)() = nullptr;
  Code (*shutdown)() = nullptr;
  const char* (*error_string)(Code) = nullptr;
  Code (*driver_version)(char*, unsigned) = nullptr;
  Code (*count)(unsigned*) = nullptr;
  Code (*handle)(unsigned, void**) = nullptr;
  Code (*uuid)(void*, char*, unsigned) = nullptr;
  Code (*name)(void*, char*, unsigned) = nullptr;
  Code (*pci_info)(void*, PciInfo*) = nullptr;
  Code (*memory)(void*, Memory*) = nullptr;
  Code (*power_limit)(void*, unsigned*) = nullptr;
  Code (*max_clock)(void*, int, unsigned*) = nullptr;
  Code (*clock)(void*, int, unsigned*) = nullptr;
  Code (*power)(void*, unsigned*) = nullptr;
  Code (*energy)(void*, unsigned long long*) = nullptr;
  Code (*temperature)(void*, int, unsigned*) = nullptr;
  Code (*throttle_reasons)(void*, unsigned long long*) = nullptr;
  Code (*violation)(void*, int, Violation*) = nullptr;
  Code (*ecc_errors)(void*, int, int, unsigned long long*) = nullptr;
  Code (*event_set_create)(void**) = nullptr;
  Code (*event_set_free)(void*) = nullptr;
  Code (*register_events)(void*, unsigned long long, void*) = nullptr;
  Code (*supported_events)(void*, unsigned long long*) = nullptr;
  Code (*event_wait)(void*, EventData*, unsigned) = nullptr;

  // The value that a call gives for a device; 0 where there is none.
  template <typename Number, typename Function, typename... Arguments>
  static Number Ask(Function function, void* device, Arguments... arguments) {
    Number value{};
    if (function == nullptr || function(device, arguments..., &value) != kSuccess) return Number{};
    return value;
  }
};

Nvml::Nvml() : call_(std::make_unique<Functions>()) {}

Nvml::~Nvml() {
  if (fault_set_ != nullptr) call_->event_set_free(fault_set_);
  if (call_->shutdown != nullptr) call_->shutdown();
}

Result<std::unique_ptr<Nvml>> Nvml::Open(const std::string& library) {
  std::unique_ptr<Nvml> nvml(new Nvml);
  XPU_RETURN_IF_ERROR(nvml->Load(library));
  XPU_RETURN_IF_ERROR(nvml->FindDevices());
  nvml->WatchFaults();
  return nvml;
}

Status Nvml::Load(const std::string& library) {
  const std::string name = library.empty() ? "libnvidia-ml.so.1" : library;
  // Never closed: the driver's libraries are not made for that.
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return Error{ErrorKind::kNotFound,
                 Format("{}: {}", name, reason == nullptr ? "not loaded" : reason),
                 {}};
  }
  const auto load = [handle](auto& function, const char* symbol) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(handle, symbol));
    return function != nullptr;
  };
  Functions& call = *call_;
  Code (*init)() = nullptr;
  const bool has_basics = load(init, "nvmlInit_v2") && load(call.count, "nvmlDeviceGetCount_v2") &&
                          load(call.handle, "nvmlDeviceGetHandleByIndex_v2") &&
                          load(call.uuid, "nvmlDeviceGetUUID");
  if (!has_basics) {
    return Error{ErrorKind::kUnsupported, Format("{}: functions of NVML are missing", name), {}};
  }
  load(call.error_string, "nvmlErrorString");
  load(call.driver_version, "nvmlSystemGetDriverVersion");
  load(call.name, "nvmlDeviceGetName");
  load(call.pci_info, "nvmlDeviceGetPciInfo_v3");
  load(call.memory, "nvmlDeviceGetMemoryInfo");
  load(call.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  load(call.max_clock, "nvmlDeviceGetMaxClockInfo");
  load(call.clock, "nvmlDeviceGetClockInfo");
  load(call.power, "nvmlDeviceGetPowerUsage");
  load(call.energy, "nvmlDeviceGetTotalEnergyConsumption");
  load(call.temperature, "nvmlDeviceGetTemperature");
  // Its newer name, nvmlDeviceGetCurrentClocksEventReasons, is that of the same function.
  load(call.throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  load(call.violation, "nvmlDeviceGetViolationStatus");
  load(call.ecc_errors, "nvmlDeviceGetTotalEccErrors");
  load(call.event_set_create, "nvmlEventSetCreate");
  load(call.event_set_free, "nvmlEventSetFree");
  load(call.register_events, "nvmlDeviceRegisterEvents");
  load(call.supported_events, "nvmlDeviceGetSupportedEventTypes");
  load(call.event_wait, "nvmlEventSetWait_v2");
  if (const Code code = init(); code != kSuccess) {
    const char* reason = call.error_string == nullptr ? nullptr : call.error_string(code);
    return Error{code == kDriverNotLoaded ? ErrorKind::kNotFound
                 : code == kNoPermission  ? ErrorKind::kPermission
                                          : ErrorKind::kSystem,
                 Format("nvmlInit: {}", reason == nullptr ? Format("error {}", code) : reason),
                 {}};
  }
  load(call.shutdown, "nvmlShutdown");
  return Ok();
}

Status Nvml::FindDevices() {
  unsigned count = 0;
  if (const Code code = call_->count(&count); code != kSuccess) {
    return Error{ErrorKind::kSystem, Format("nvmlDeviceGetCount: error {}", code), {}};
  }
  char driver_version[sizeof(DevicePacket::driver_version)] = {};
  if (call_->driver_version != nullptr) {
    call_->driver_version(driver_version, sizeof(driver_version) - 1);
  }
  for (uint32_t index = 0; index < count; ++index) AddDevice(index, driver_version);
  return Ok();
}

void Nvml::AddDevice(uint32_t index, const char* driver_version) {
  void* handle = nullptr;
  // One that fell off the bus, or that this container must not use.
  if (call_->handle(index, &handle) != kSuccess) return;
  DevicePacket device{};
  device.gpu = static_cast<uint32_t>(devices_.size() + 1);
  device.index = index;
  char text[96] = {};
  if (call_->uuid(handle, text, sizeof(text) - 1) == kSuccess) ParseUuid(text, device.uuid);
  if (call_->name != nullptr) call_->name(handle, device.name, sizeof(device.name) - 1);
  const auto pci = Functions::Ask<PciInfo>(call_->pci_info, handle);
  std::memcpy(device.pci_address, pci.bus_id, sizeof(device.pci_address) - 1);
  std::memcpy(device.driver_version, driver_version, sizeof(device.driver_version));
  device.memory_bytes = Functions::Ask<Memory>(call_->memory, handle).total;
  device.power_limit = Functions::Ask<unsigned>(call_->power_limit, handle);
  device.max_sm_clock = Functions::Ask<unsigned>(call_->max_clock, handle, kClockSm);
  device.max_memory_clock = Functions::Ask<unsigned>(call_->max_clock, handle, kClockMemory);
  devices_.push_back(device);
  handles_.push_back(handle);
  counters_.emplace_back();
}

void Nvml::WatchFaults() {
  const Functions& call = *call_;
  if (call.event_set_create == nullptr || call.event_set_free == nullptr ||
      call.register_events == nullptr || call.event_wait == nullptr ||
      call.event_set_create(&fault_set_) != kSuccess) {
    fault_set_ = nullptr;
    return;
  }
  for (void* handle : handles_) {
    const uint64_t supported = Functions::Ask<unsigned long long>(call.supported_events, handle);
    const uint64_t wanted = supported & (kEventCorrected | kEventUncorrected | kEventXid);
    if (wanted != 0) static_cast<void>(call.register_events(handle, wanted, fault_set_));
  }
}

std::vector<StatePacket> Nvml::ReadStates(bool with_counters) {
  const Functions& call = *call_;
  std::vector<StatePacket> states;
  for (size_t i = 0; i < handles_.size(); ++i) {
    void* device = handles_[i];
    StatePacket state{};
    state.time_ns = MonotonicNs();
    state.gpu = devices_[i].gpu;
    state.sm_clock = Functions::Ask<unsigned>(call.clock, device, kClockSm);
    state.memory_clock = Functions::Ask<unsigned>(call.clock, device, kClockMemory);
    state.power = Functions::Ask<unsigned>(call.power, device);
    state.temperature = Functions::Ask<unsigned>(call.temperature, device, kTemperatureOfGpu);
    state.throttle_reasons = Functions::Ask<unsigned long long>(call.throttle_reasons, device);
    state.memory_used_bytes = Functions::Ask<Memory>(call.memory, device).used;
    Counters& counters = counters_[i];
    if (with_counters) {
      counters.energy = Functions::Ask<unsigned long long>(call.energy, device);
      counters.power_capped =
          Functions::Ask<Violation>(call.violation, device, kViolationPower).violation_time;
      counters.thermal_capped =
          Functions::Ask<Violation>(call.violation, device, kViolationThermal).violation_time;
    }
    state.energy = counters.energy;
    state.power_capped = counters.power_capped;
    state.thermal_capped = counters.thermal_capped;
    state.corrected_errors = Functions::Ask<unsigned long long>(
        call.ecc_errors, device, kErrorCorrected, kErrorsSinceDriverLoad);
    state.uncorrected_errors = Functions::Ask<unsigned long long>(
        call.ecc_errors, device, kErrorUncorrected, kErrorsSinceDriverLoad);
    states.push_back(state);
  }
  return states;
}

std::vector<FaultPacket> Nvml::TakeFaults() {
  constexpr size_t kMost = 64;  // at a time
  std::vector<FaultPacket> faults;
  EventData event{};
  while (fault_set_ != nullptr && faults.size() < kMost) {
    const Code code = call_->event_wait(fault_set_, &event, 0);
    if (code == kTimeout || code != kSuccess) break;
    FaultPacket fault{MonotonicNs(), 0, event.type, event.data};
    for (size_t i = 0; i < handles_.size(); ++i) {
      if (handles_[i] == event.device) fault.gpu = devices_[i].gpu;
    }
    faults.push_back(fault);
  }
  return faults;
}

}  // namespace xpu::gpu_metrics
