#include "cupti_inject/cupti_loader.h"

#include <cstdio>
#include <cstring>

#include <dlfcn.h>
#include <link.h>

#include "cupti_inject/cuda_driver.h"
#include "cupti_inject/cupti_places.h"
#include "cupti_inject/cupti_versions.h"
#include "cupti_inject/loaded_files.h"

namespace xpu::inject {
namespace {

// From the directory of the program's libcudart: a wheel of CUDA 13 has both in one directory,
// those of CUDA 12 and the toolkit do not.
constexpr const char* kBesideCudart[] = {"", "/../../cuda_cupti/lib", "/../extras/CUPTI/lib64"};

// Libraries of the program that say which libcupti fits; "" when they are not mapped.
struct Mapped {
  char cupti[512];
  char cudart[512];
};

// Directories from which the process imports Python packages, with the slash. Of one search at a
// time, and not on the stack: it may be that of a thread which has 16 KiB.
struct Packages {
  char paths[4][512];
  uint32_t count;
};
constinit Packages g_packages = {};

bool IsLibrary(const char* path, const char* file) {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr && std::strncmp(slash + 1, file, std::strlen(file)) == 0;
}

// Of a file in one of Python's directories of packages; the innermost.
void NotePackages(const char* path) {
  constexpr const char* kDirectories[] = {"/site-packages/", "/dist-packages/"};
  size_t length = 0;
  for (const char* directory : kDirectories) {
    for (const char* at = path; (at = std::strstr(at, directory)) != nullptr; ++at) {
      const size_t end = static_cast<size_t>(at - path) + std::strlen(directory);
      if (end > length) length = end;
    }
  }
  Packages& packages = g_packages;
  constexpr size_t kMost = sizeof(packages.paths) / sizeof(packages.paths[0]);
  if (length == 0 || packages.count == kMost) return;
  for (uint32_t i = 0; i < packages.count; ++i) {
    const char* known = packages.paths[i];
    if (std::strlen(known) == length && std::strncmp(known, path, length) == 0) return;
  }
  char* added = packages.paths[packages.count++];
  std::memcpy(added, path, length);
  added[length] = '\0';
}

// Of ForEachLoadedFile.
int NoteMapped(dl_phdr_info* info, size_t /*size*/, void* result) {
  auto* mapped = static_cast<Mapped*>(result);
  const size_t bytes = std::strlen(info->dlpi_name) + 1;
  if (bytes > sizeof(mapped->cupti)) return 0;
  NotePackages(info->dlpi_name);
  if (IsLibrary(info->dlpi_name, "libcupti.so")) {
    std::memcpy(mapped->cupti, info->dlpi_name, bytes);
  } else if (IsLibrary(info->dlpi_name, "libcudart.so")) {
    std::memcpy(mapped->cudart, info->dlpi_name, bytes);
  }
  return 0;
}

void* Open(const char* name, int more_flags = 0) {
  return dlopen(name, RTLD_NOW | RTLD_LOCAL | more_flags);
}

// The toolkit, wheel or package that the program's cudart comes from has a libcupti for it. A
// profiler in the program, when it starts one later, takes that copy too.
void* OpenBesideCudart(const char* cudart, uint32_t driver_version) {
  const char* slash = std::strrchr(cudart, '/');
  if (slash == nullptr) return nullptr;
  const int directory_length = static_cast<int>(slash - cudart);
  for (const cupti::LibraryVersion& version : cupti::kLibraryVersions) {
    if (!cupti::IsAllowed(version.cuda_major, driver_version)) continue;
    for (const char* place : kBesideCudart) {
      char path[640];
      std::snprintf(path, sizeof(path), "%.*s%s/%s", directory_length, cudart, place, version.file);
      if (void* handle = Open(path)) return handle;
    }
  }
  return nullptr;
}

// What the process itself could import: NVIDIA's wheels, of CUDA 13 and before.
void* OpenInPackages(uint32_t driver_version) {
  constexpr const char* kPlaces[] = {"nvidia/cu13/lib", "nvidia/cuda_cupti/lib"};
  for (const cupti::LibraryVersion& version : cupti::kLibraryVersions) {
    if (!cupti::IsAllowed(version.cuda_major, driver_version)) continue;
    for (uint32_t i = 0; i < g_packages.count; ++i) {
      for (const char* place : kPlaces) {
        char path[640];
        std::snprintf(path, sizeof(path), "%s%s/%s", g_packages.paths[i], place, version.file);
        if (void* handle = Open(path)) return handle;
      }
    }
  }
  return nullptr;
}

// The newest that the driver allows.
const char* FittingFile(uint32_t driver_version) {
  for (const cupti::LibraryVersion& version : cupti::kLibraryVersions) {
    if (cupti::IsAllowed(version.cuda_major, driver_version)) return version.file;
  }
  return "libcupti.so";
}

void* OpenByLoader(uint32_t driver_version) {
  for (const cupti::LibraryVersion& version : cupti::kLibraryVersions) {
    if (!cupti::IsAllowed(version.cuda_major, driver_version)) continue;
    if (void* handle = Open(version.file)) return handle;
  }
  return nullptr;
}

void* OpenInDirectories(uint32_t driver_version) {
  for (const cupti::LibraryVersion& version : cupti::kLibraryVersions) {
    if (!cupti::IsAllowed(version.cuda_major, driver_version)) continue;
    for (const char* directory : cupti::kLibraryDirectories) {
      char path[256];
      int n = std::snprintf(path, sizeof(path), directory, version.cuda_major);
      std::snprintf(path + n, sizeof(path) - static_cast<size_t>(n), "/%s", version.file);
      if (void* handle = Open(path)) return handle;
    }
  }
  return nullptr;
}

void* FindAndOpen(const char* chosen, uint32_t driver_version, LoadedCupti* cupti, char* reason,
                  size_t reason_size) {
  Mapped mapped{};
  g_packages.count = 0;
  ForEachLoadedFile(&NoteMapped, &mapped);
  if (mapped.cupti[0] != '\0') {
    if (void* handle = Open(mapped.cupti, RTLD_NOLOAD)) {
      if (chosen != nullptr && std::strcmp(chosen, mapped.cupti) != 0) {
        std::snprintf(
            cupti->note, sizeof(cupti->note),
            "the program has loaded a libcupti of its own, which is used instead of %.500s",
            chosen);
      }
      return handle;
    }
  }
  if (chosen != nullptr) {
    void* handle = Open(chosen);
    if (handle == nullptr) {
      const char* error = dlerror();
      std::snprintf(reason, reason_size, "the chosen libcupti cannot be loaded: %.500s",
                    error == nullptr ? chosen : error);
    }
    return handle;
  }
  void* handle = OpenBesideCudart(mapped.cudart, driver_version);
  if (handle == nullptr) handle = OpenInPackages(driver_version);
  if (handle == nullptr) handle = OpenByLoader(driver_version);
  if (handle == nullptr) handle = OpenInDirectories(driver_version);
  if (handle == nullptr) {
    char fitting[64] = "";
    if (driver_version != 0) {
      std::snprintf(fitting, sizeof(fitting), " that fits the driver (CUDA %u.%u)",
                    driver_version / 1000, driver_version % 1000 / 10);
    }
    std::snprintf(reason, reason_size,
                  "no libcupti found%s: install %s, of the CUDA Toolkit or the nvidia-cuda-cupti "
                  "Python wheel, or choose one with --cupti-lib",
                  fitting, FittingFile(driver_version));
  }
  return handle;
}

const char* ResolveFunctions(void* handle, cupti::Functions* functions) {
  const char* missing = nullptr;
#define XPU_RESOLVE(member, name, required, ...)                                          \
  functions->member = reinterpret_cast<decltype(functions->member)>(dlsym(handle, name)); \
  if (functions->member == nullptr && (required) && missing == nullptr) missing = name;
  XPU_CUPTI_FUNCTIONS(XPU_RESOLVE)
#undef XPU_RESOLVE
  return missing;
}

void ReadPath(void* handle, LoadedCupti* cupti) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) {
    std::snprintf(cupti->path, sizeof(cupti->path), "%s", map->l_name);
  }
}

}  // namespace

uint32_t DriverVersion() {
  int (*get_version)(int*) = nullptr;
  int version = 0;
  if (!FindInDriver("cuDriverGetVersion", &get_version) || get_version(&version) != 0) return 0;
  if (version < 0) version = 0;
  return static_cast<uint32_t>(version);
}

bool IsDriverGone() {
  constexpr int kDeinitialized = 4;
  int (*count_devices)(int*) = nullptr;
  int count = 0;
  return FindInDriver("cuDeviceGetCount", &count_devices) &&
         count_devices(&count) == kDeinitialized;
}

bool LoadCupti(const char* chosen, uint32_t driver_version, LoadedCupti* cupti, char* reason,
               size_t reason_size) {
  void* handle = FindAndOpen(chosen, driver_version, cupti, reason, reason_size);
  if (handle == nullptr) return false;
  ReadPath(handle, cupti);
  if (const char* missing = ResolveFunctions(handle, &cupti->functions)) {
    std::snprintf(reason, reason_size, "%.500s has no %s", cupti->path, missing);
    return false;
  }
  if (cupti->functions.get_version(&cupti->version) != cupti::kSuccess) cupti->version = 0;
  if (cupti->version != 0 &&
      !cupti::IsAllowed(cupti::CudaVersionOfCupti(cupti->version) / 1000, driver_version)) {
    std::snprintf(reason, reason_size, "%.500s is newer than the driver (CUDA %u.%u)", cupti->path,
                  driver_version / 1000, driver_version % 1000 / 10);
    return false;
  }
  return true;
}

}  // namespace xpu::inject
