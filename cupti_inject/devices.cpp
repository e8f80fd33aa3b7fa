#include "cupti_inject/devices.h"

#include "cupti_inject/cuda_driver.h"
#include "cupti_inject/cupti_records.h"

namespace xpu::inject {
namespace {

constexpr int kMaxDevices = 64;

// CUdevice_attribute
constexpr int kThreadsPerWarp = 10;
constexpr int kCoreClockKhz = 13;
constexpr int kMultiprocessors = 16;
constexpr int kCapabilityMajor = 75;
constexpr int kCapabilityMinor = 76;

class DeviceQueries {
 public:
  // False: the driver has not all of them.
  bool Find() {
    void* library = LoadedDriver();
    return library != nullptr && FindFunction(library, "cuDeviceGetCount", &count_) &&
           FindFunction(library, "cuDeviceGetName", &name_) &&
           (FindFunction(library, "cuDeviceGetUuid_v2", &uuid_) ||
            FindFunction(library, "cuDeviceGetUuid", &uuid_)) &&
           FindFunction(library, "cuDeviceTotalMem_v2", &memory_) &&
           FindFunction(library, "cuDeviceGetAttribute", &attribute_);
  }

  int Count() const {
    int count = 0;
    return count_(&count) == 0 && count > 0 ? count : 0;
  }

  // `name` has room for `name_size` bytes.
  bool Describe(int device, char* name, int name_size, cupti::Device* record) const {
    size_t bytes = 0;
    if (name_(name, name_size, device) != 0 || uuid_(record->uuid, device) != 0 ||
        memory_(&bytes, device) != 0) {
      return false;
    }
    record->kind = cupti::kKindDevice;
    record->device_id = static_cast<uint32_t>(device);
    record->name = reinterpret_cast<uint64_t>(name);
    record->global_memory_bytes = bytes;
    record->threads_per_warp = Attribute(kThreadsPerWarp, device);
    record->core_clock_khz = Attribute(kCoreClockKhz, device);
    record->multiprocessor_count = Attribute(kMultiprocessors, device);
    record->compute_capability_major = Attribute(kCapabilityMajor, device);
    record->compute_capability_minor = Attribute(kCapabilityMinor, device);
    record->is_cuda_visible = 1;
    return true;
  }

 private:
  uint32_t Attribute(int attribute, int device) const {
    int value = 0;
    return attribute_(&value, attribute, device) == 0 && value > 0 ? static_cast<uint32_t>(value)
                                                                   : 0;
  }

  int (*count_)(int* count) = nullptr;
  int (*name_)(char* name, int size, int device) = nullptr;
  int (*uuid_)(uint8_t* uuid, int device) = nullptr;
  int (*memory_)(size_t* bytes, int device) = nullptr;
  int (*attribute_)(int* value, int attribute, int device) = nullptr;
};

}  // namespace

void SendDevices(Injection& self) {
  DeviceQueries queries;
  const int count = queries.Find() ? queries.Count() : 0;
  for (int device = 0; device < count && device < kMaxDevices; ++device) {
    char name[128];
    alignas(8) cupti::Device record{};
    if (queries.Describe(device, name, sizeof(name), &record)) {
      self.drain.SendOwn(reinterpret_cast<uint8_t*>(&record), sizeof(record));
    }
  }
}

}  // namespace xpu::inject
