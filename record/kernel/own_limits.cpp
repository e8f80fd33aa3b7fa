#include "record/kernel/own_limits.h"

#include <algorithm>
#include <string_view>

#include <sys/resource.h>

#include "format/base/file.h"
#include "format/base/number.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

uint64_t SoftLimit(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

// The limit minus the value of `field` in /proc/self/status.
uint64_t FreeBytes(__rlimit_resource resource, std::string_view field) {
  const uint64_t limit = SoftLimit(resource);
  if (limit == RLIM_INFINITY) return UINT64_MAX;
  const auto status = ReadFile("/proc/self/status");
  if (!status.ok()) return limit;
  const auto words = StatusWords(status.value(), field);  // "12345 kB"
  const uint64_t used = words.empty() ? 0 : ParseNumber<uint64_t>(words.front()).value_or(0) << 10;
  return limit - std::min(limit, used);
}

}  // namespace

uint64_t AllowedDescriptors() { return SoftLimit(RLIMIT_NOFILE); }

uint64_t FreeAddressBytes() { return FreeBytes(RLIMIT_AS, "VmSize"); }

uint64_t FreeDataBytes() { return FreeBytes(RLIMIT_DATA, "VmData"); }

uint64_t LargestFileBytes() {
  const uint64_t limit = SoftLimit(RLIMIT_FSIZE);
  return limit == RLIM_INFINITY ? UINT64_MAX : limit;
}

}  // namespace xpu
