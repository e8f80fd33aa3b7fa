// Whether the CUDA driver in a process will find the injected library: what the process was started
// with, and which files it sees.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace xpu {

// A file that a process has mapped.
struct MappedLibrary {
  uint32_t pid = 0;
  uint64_t address = 0;
  std::string path;
};

bool IsInjectLibrary(std::string_view path);

// libcuda.so, libcuda.so.1, libcuda.so.580.65.06
bool IsCudaDriver(std::string_view path);

// What keeps the library out, in words; empty: nothing that can be seen from here; nullopt: it
// could not be looked at, since the process has ended, runs another program by now, or is not ours
// to look into. `driver`: its mapping of the driver. `library`: what the variable was set to.
std::optional<std::string> ObstacleToInjection(const MappedLibrary& driver,
                                               const std::string& library);

// Likewise for a library that is loaded. `mapping`: that of the library. `connection_string`: what
// XPU_INJECT was set to.
std::optional<std::string> ObstacleToReport(const MappedLibrary& mapping,
                                            const std::string& connection_string);

// Runs this very program: it maps the library to time its marker.
bool IsRecorder(uint32_t pid);

// The parts of them that /proc/PID/environ tells: any bytes.
std::string ObstacleInEnvironment(std::string_view environment, const std::string& library);
std::string ObstacleToConnection(std::string_view environment,
                                 const std::string& connection_string);

// Why it cannot open so many files more, with the cure; empty: it can, or nothing tells.
std::string ObstacleToDescriptors(uint32_t pid, uint64_t needed);
// Why the library in it has no unwind tables. `reported`: what it says itself, which does not know
// why a descriptor did not come.
std::string ObstacleToTables(uint32_t pid, std::string_view reported);

// How many the library has open at once to be given its ring, and the tables too.
inline constexpr uint64_t kDescriptorsForRing = 2;
inline constexpr uint64_t kDescriptorsForTables = 3;

// The soft limit on open files that /proc/PID/limits tells; 0: none.
uint64_t DescriptorLimit(std::string_view limits);

}  // namespace xpu
