// xpu-record with switches for tests, which the shipped one has not:
//   XPU_TEST_DROP=KIND:N     every N-th stack, activity or probe hit is lost, and counted as what
//                           loses such events in earnest
//   XPU_TEST_SOURCE=toy      one source more (toy_source.h)
//   XPU_TEST_TABLE_DELAY_MS=N  each unwind table takes so much longer
//   XPU_TEST_DEVICE_BUFFERS=N  CUPTI may have so many buffers on the device
//   XPU_TEST_HANG_MS=N       the GPU hangs when nothing has ended for so long
//   XPU_TEST_GPU_LIBRARIES=DIRECTORY  GPU metrics are read with the libraries there, to which
//                           variables XPU_FAKE_... are passed
//   XPU_TEST_WITHOUT=NAME,  features of the kernel that are not used
//   (record/kernel/kernel_features.h)
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "format/base/number.h"
#include "record/cli/run.h"
#include "record/kernel/kernel_features.h"
#include "record/session/sources.h"
#include "tests/system/toy_source.h"

namespace {

using namespace xpu;

struct Switch {
  std::string_view name;
  LossKind counted_as;
  bool (*is_of)(std::string_view list);
};

constexpr Switch kSwitches[] = {
    {"stack", LossKind::kLaunchStackMissing,
     [](std::string_view list) { return list == "launch_stack"; }},
    {"activity", LossKind::kCuptiDropped,
     [](std::string_view list) {
       for (const std::string_view one : {"kernel", "memcpy", "memset", "synchronization",
                                          "overhead", "graph_launch", "raw_activity"}) {
         if (list == one) return true;
       }
       return false;
     }},
    {"probe", LossKind::kProbeRingFull, [](std::string_view list) { return list == "probe_hit"; }},
};

EventSink::Filter FilterOf(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  for (const Switch& one : kSwitches) {
    if (text.substr(0, colon) != one.name) continue;
    const auto every = ParseNumber<uint64_t>(text.substr(colon + 1)).value_or(0);
    if (every == 0) break;
    return [one, every, seen = uint64_t{0}](std::string_view list, EventSink& sink) mutable {
      if (!one.is_of(list) || ++seen % every != 0) return true;
      sink.losses().Add(one.counted_as, 1);
      return false;
    };
  }
  return {};
}

void UseLibraries(const std::string& directory, GpuMetricsOptions& metrics) {
  metrics.nvml_library = directory + "/libnvidia-ml.so.1";
  metrics.cuda_library = directory + "/libcuda.so.1";
  if (metrics.cupti_library.empty()) metrics.cupti_library = directory + "/libcupti.so.13";
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::string_view(*variable).starts_with("XPU_FAKE_")) {
      metrics.helper_environment.emplace_back(*variable);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  TestHooks hooks;
  if (const char* names = std::getenv("XPU_TEST_WITHOUT")) LeaveOutFeatures(names);
  if (const char* drop = std::getenv("XPU_TEST_DROP")) hooks.filter = FilterOf(drop);
  if (std::getenv("XPU_TEST_SOURCE") != nullptr) hooks.sources = {&ToySource::Open};
  if (const char* delay_ms = std::getenv("XPU_TEST_TABLE_DELAY_MS")) {
    hooks.table_delay = std::chrono::milliseconds(std::atoi(delay_ms));
  }
  if (const char* buffers = std::getenv("XPU_TEST_DEVICE_BUFFERS")) {
    hooks.device_buffers = ParseNumber<uint64_t>(buffers).value_or(0);
  }
  if (const char* hang_ms = std::getenv("XPU_TEST_HANG_MS")) {
    hooks.hang_ns = ParseNumber<uint64_t>(hang_ms).value_or(0) * 1'000'000;
  }
  if (const char* directory = std::getenv("XPU_TEST_GPU_LIBRARIES")) {
    hooks.change_options = [directory = std::string(directory)](RecordOptions& options) {
      UseLibraries(directory, options.gpu_metrics);
    };
  }
  return RunRecorder(argc, argv, std::move(hooks));
}
