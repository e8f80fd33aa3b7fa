// Access to the program's CUDA driver.
#pragma once

#include <cstdint>

#include <dlfcn.h>

namespace xpu::inject {

// For dlsym. nullptr: the program has not loaded it. It stays loaded: the program holds it.
inline void* LoadedDriver() {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  return library;
}

// False: it has no such function.
template <typename Function>
bool FindFunction(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// The same of the program's driver.
template <typename Function>
bool FindInDriver(const char* name, Function* function) {
  void* library = LoadedDriver();
  return library != nullptr && FindFunction(library, name, function);
}

// Otherwise `stream` is the number of a default stream.
inline bool IsStreamHandle(const void* stream) { return reinterpret_cast<uintptr_t>(stream) > 2; }

}  // namespace xpu::inject
