// The mappings of a running process, read from /proc/PID/maps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "format/events.h"

namespace xpu {

struct ProcessMapping {
  uint64_t start_address = 0;
  uint64_t end_address = 0;
  uint64_t file_offset = 0;
  uint32_t protection = 0;  // PROT_*
  uint32_t flags = 0;       // MAP_SHARED or MAP_PRIVATE
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  std::string path;  // "//anon" for anonymous memory, as perf calls it
};

// Invalid lines are left out.
std::vector<ProcessMapping> ParseProcessMaps(std::string_view text);
// Ordered by address.
Result<std::vector<ProcessMapping>> ReadProcessMaps(uint32_t pid);

// The mapping as an event of the capture, without its strings.
Mapping MappingEventOf(uint32_t pid, uint64_t time_ns, const ProcessMapping& mapping);

// nullptr if nothing is mapped there. `mappings` must be ordered by address.
const ProcessMapping* FindMapping(const std::vector<ProcessMapping>& mappings, uint64_t address);

}  // namespace xpu
