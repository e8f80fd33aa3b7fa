// What the limits of a process that is recorded keep our library in it from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace xpu {

// Why it cannot open so many files more, with the cure; empty: it can, or nothing tells.
std::string ObstacleToDescriptors(uint32_t pid, uint64_t needed);
// Why the library in it has no unwind tables. `told`: what it says itself, which does not know why
// a descriptor did not come.
std::string ObstacleToTables(uint32_t pid, std::string_view told);

// How many the library has open at once to be given its ring, and the tables too.
inline constexpr uint64_t kDescriptorsForRing = 2;
inline constexpr uint64_t kDescriptorsForTables = 3;

// The soft limit on open files that /proc/PID/limits tells; 0: none.
uint64_t DescriptorLimit(std::string_view limits);

}  // namespace xpu
