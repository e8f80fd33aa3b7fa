// The environment variables of the simulated device, listed in README.md.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace xpu::fake_cuda {

inline uint64_t EnvNumber(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : std::strtoull(value, nullptr, 0);
}

inline int64_t EnvSigned(const char* name, int64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : std::strtoll(value, nullptr, 0);
}

inline std::string_view EnvText(const char* name, std::string_view otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : std::string_view(value);
}

// "12.4" as CUDA_VERSION writes it: 12040.
inline uint32_t EnvCudaVersion(const char* name, uint32_t otherwise) {
  const std::string_view text = EnvText(name, "");
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return otherwise;
  const auto number = [](const char* digits) {
    return static_cast<uint32_t>(std::strtoul(digits, nullptr, 10));
  };
  return number(text.data()) * 1000 + number(text.data() + dot + 1) * 10;
}

inline bool EnvFlag(const char* name, bool otherwise) {
  return EnvNumber(name, otherwise ? 1 : 0) != 0;
}

// How long the simulated device works on something, in nanoseconds: tests compute the same numbers.
inline uint64_t NameHash(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}
// `spin_ns`: the kernel's last argument where that is an unsigned long long, else 0.
inline uint64_t KernelDurationNs(std::string_view mangled_name, uint64_t spin_ns) {
  return spin_ns + 1000 + NameHash(mangled_name) % 1000;
}
inline uint64_t CopyDurationNs(uint64_t bytes) { return 1000 + bytes / 10; }
inline uint64_t SetDurationNs(uint64_t bytes) { return 900 + bytes / 100; }

}  // namespace xpu::fake_cuda
