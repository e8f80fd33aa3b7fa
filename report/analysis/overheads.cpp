#include "report/analysis/overheads.h"

#include <algorithm>
#include <array>

#include "format/base/text.h"
#include "report/analysis/gpu_names.h"

namespace xpu {
namespace {

constexpr uint32_t kCompile = 3;  // CUpti_ActivityJitOperationType
constexpr std::array<std::string_view, 4> kJitOperations = {"?", "cache load", "cache store",
                                                            "compile"};
constexpr std::array<std::string_view, 3> kJitEntries = {"?", "PTX to machine code",
                                                         "NVVM IR to PTX"};
// CUpti_ActivityOverheadKind
constexpr uint32_t kModuleLoading = 4 << 16;
constexpr uint32_t kFunctionLoading = 5 << 16;

template <typename Events, typename Event>
void Append(const Analysis& analysis, const Events& events, const Event* DriverTime::*event_of,
            std::vector<DriverTime>& times) {
  for (const Event& event : events) {
    if (!IsTimed(event)) continue;
    const ClockFit& clock = analysis.clocks.Of(event.instance);
    DriverTime time;
    time.start_ns = clock.ToMonotonic(event.start_ns);
    time.end_ns = std::max(time.start_ns, clock.ToMonotonic(event.end_ns, time.start_ns));
    time.*event_of = &event;
    const uint32_t pid = analysis.correlation.PidOf(event.instance);
    time.owner = analysis.tracks.OwnerAt(pid, pid, time.start_ns);
    times.push_back(time);
  }
}

}  // namespace

std::string_view JitOperationName(uint32_t operation) {
  return kJitOperations[operation < kJitOperations.size() ? operation : 0];
}

std::string_view JitEntryName(uint32_t entry_kind) {
  return kJitEntries[entry_kind < kJitEntries.size() ? entry_kind : 0];
}

bool IsCompilation(const JitOperation& jit) { return jit.operation == kCompile; }

bool IsLazyLoading(const Overhead& overhead) {
  return overhead.overhead_kind == kModuleLoading || overhead.overhead_kind == kFunctionLoading;
}

std::vector<DriverTime> DriverTimes(const Analysis& analysis) {
  std::vector<DriverTime> times;
  Append(analysis, analysis.Overheads(), &DriverTime::overhead, times);
  Append(analysis, analysis.JitOperations(), &DriverTime::jit, times);
  // The longest of one start comes first, so that it encloses the others.
  std::stable_sort(times.begin(), times.end(), [](const DriverTime& a, const DriverTime& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  return times;
}

std::string TitleOf(const DriverTime& time) {
  if (time.jit == nullptr) return std::string(OverheadName(time.overhead->overhead_kind));
  return Format("JIT {}, {}", JitOperationName(time.jit->operation),
                JitEntryName(time.jit->entry_kind));
}

}  // namespace xpu
