// Determines whether the CUDA driver in a process will find the injected library, from the
// environment that the process was started with and the files that it sees.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace xpu {

// A library that a process has mapped.
struct MappedLibrary {
  uint32_t pid = 0;
  uint64_t address = 0;
  std::string path;
};

bool IsInjectLibrary(std::string_view path);

// libcuda.so, libcuda.so.1, libcuda.so.580.65.06
bool IsCudaDriver(std::string_view path);

// Describes what keeps the library out. Empty: no obstacle can be seen from here. nullopt: the
// process could not be examined, because it has ended, runs another program by now, or may not be
// read. `driver`: the mapping of the driver. `library`: the value of the injection variable.
std::optional<std::string> ObstacleToInjection(const MappedLibrary& driver,
                                               const std::string& library);

// The same for a library that is loaded and may not connect. `mapping`: of the library.
// `connection_string`: the value of XPU_INJECT.
std::optional<std::string> ObstacleToReport(const MappedLibrary& mapping,
                                            const std::string& connection_string);

// True for a process of this program, which maps the library to time its marker.
bool IsRecorder(uint32_t pid);

// The part of these checks that reads /proc/PID/environ, whose bytes are arbitrary.
std::string ObstacleInEnvironment(std::string_view environment, const std::string& library);
std::string ObstacleToConnection(std::string_view environment,
                                 const std::string& connection_string);

// Describes why the process cannot open `needed` more files, with a hint. Empty: it can, or it is
// not known.
std::string ObstacleToDescriptors(uint32_t pid, uint64_t needed);
// Describes why the library in the process has no unwind tables. `reported`: the library's own
// reason; it does not know why it received no descriptor.
std::string ObstacleToTables(uint32_t pid, std::string_view reported);

// The descriptors that the library has open at once to receive its ring, and the tables too.
inline constexpr uint64_t kDescriptorsForRing = 2;
inline constexpr uint64_t kDescriptorsForTables = 3;

// The soft limit on open files in /proc/PID/limits; 0 if there is none.
uint64_t DescriptorLimit(std::string_view limits);

}  // namespace xpu
