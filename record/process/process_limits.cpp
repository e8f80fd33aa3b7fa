#include "record/process/process_limits.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "format/base/file.h"
#include "format/base/number.h"
#include "format/base/text.h"

namespace xpu {
namespace {

// At most `most`.
uint64_t OpenDescriptors(uint32_t pid, uint64_t most) {
  std::error_code failed;
  std::filesystem::directory_iterator entry(Format("/proc/{}/fd", pid), failed);
  uint64_t count = 0;
  for (; !failed && count < most && entry != std::filesystem::directory_iterator();
       entry.increment(failed)) {
    ++count;
  }
  return count;
}

}  // namespace

uint64_t DescriptorLimit(std::string_view limits) {
  constexpr std::string_view kName = "Max open files ";
  const size_t at = limits.find(kName);
  if (at == std::string_view::npos) return 0;
  limits.remove_prefix(at + kName.size());
  limits.remove_prefix(std::min(limits.find_first_not_of(' '), limits.size()));
  return ParseNumber<uint64_t>(limits.substr(0, limits.find(' '))).value_or(0);
}

std::string ObstacleToDescriptors(uint32_t pid, uint64_t needed) {
  const auto limits = ReadFile(Format("/proc/{}/limits", pid));
  const uint64_t limit = limits.ok() ? DescriptorLimit(limits.value()) : 0;
  if (limit == 0 || OpenDescriptors(pid, limit) + needed <= limit) return {};
  return Format(
      "its limit of {} open files leaves no descriptor free: raise it (RLIMIT_NOFILE, 'ulimit -n')",
      limit);
}

std::string ObstacleToTables(uint32_t pid, std::string_view told) {
  std::string obstacle = ObstacleToDescriptors(pid, kDescriptorsForTables);
  return obstacle.empty() ? std::string(told) : obstacle;
}

}  // namespace xpu
