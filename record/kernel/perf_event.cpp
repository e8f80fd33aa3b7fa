#include "record/kernel/perf_event.h"

#include <cerrno>
#include <cstdlib>

#include <sys/syscall.h>
#include <unistd.h>

#include "format/base/file.h"

namespace xpu {

UniqueFd OpenPerfEvent(const perf_event_attr& attributes, pid_t pid, int cpu) {
  return UniqueFd(static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
}

perf_event_attr PerfAttributes(uint32_t type, uint64_t config) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = type;
  attributes.config = config;
  return attributes;
}

std::vector<int> ParseCpuList(const char* text) {
  constexpr long kMaxCpu = 1 << 16;
  std::vector<int> cpus;
  while (*text >= '0' && *text <= '9') {
    char* end = nullptr;
    const long first = std::strtol(text, &end, 10);
    long last = first;
    if (*end == '-') last = std::strtol(end + 1, &end, 10);
    for (long cpu = first; cpu <= last && cpu < kMaxCpu; ++cpu) {
      cpus.push_back(static_cast<int>(cpu));
    }
    text = *end == ',' ? end + 1 : end;
  }
  return cpus;
}

std::vector<int> OnlineCpus() {
  std::vector<int> cpus;
  if (auto text = ReadFile("/sys/devices/system/cpu/online"); text.ok()) {
    cpus = ParseCpuList(text->c_str());
  }
  if (cpus.empty()) {
    const auto count = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
    for (int cpu = 0; cpu < count; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

int PerfParanoidLevel() {
  auto text = ReadFile("/proc/sys/kernel/perf_event_paranoid");
  return text.ok() ? std::atoi(text->c_str()) : 2;
}

}  // namespace xpu
