// Bytes and time per event of a capture, on events like those of a PyTorch training loop: 60
// kernels a step with their API calls and launch stacks, and CPU samples of 18 frames. Prints a
// table.

#include <cmath>
#include <cstdio>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include <sys/mman.h>

#include "format/base/check.h"
#include "format/base/file.h"
#include "format/base/text.h"
#include "format/reader.h"
#include "format/writer.h"

namespace xpu {
namespace {

using Random = std::mt19937_64;

constexpr InstanceId kInstance{0x8f3a5b7c9d1e2f40};
constexpr uint32_t kKernelsPerStep = 60;

uint64_t Around(Random& random, double value, double spread) {
  const double drawn = std::normal_distribution<double>(value, value * spread)(random);
  return static_cast<uint64_t>(std::max(1.0, drawn));
}

// A call site: its stack, and the kernel that it launches.
struct Site {
  std::vector<Frame> stack;
  std::string kernel_name;
  int32_t grid_x;
  int32_t block_x;
  uint16_t registers;
  int32_t shared_bytes;
  double duration_ns;
};

std::vector<Frame> CommonPath(Random& random, size_t frames) {
  std::vector<Frame> path;
  for (size_t i = 0; i < frames; ++i) {
    path.push_back({FrameKind::kUser, 0x7f0000000000 + (random() % (uint64_t{1} << 31))});
  }
  return path;
}

std::vector<Site> MakeSites(Random& random) {
  const std::vector<Frame> root = CommonPath(random, 36);
  std::vector<Site> sites;
  for (uint32_t i = 0; i < kKernelsPerStep; ++i) {
    Site site;
    site.stack = CommonPath(random, 8 + random() % 24);
    site.stack.insert(site.stack.end(), root.begin(), root.end());
    site.kernel_name = Format(
        "_ZN2at6native29vectorized_elementwise_kernelILi{}ENS0_{}FunctorIfEESt5arrayIPcLm{}"
        "EEEEviT0_",
        i % 20, 100 + i % 20, i % 3);
    site.grid_x = static_cast<int32_t>(1) << (i % 10);
    site.block_x = i % 3 == 0 ? 256 : 128;
    site.registers = static_cast<uint16_t>(16 + 8 * (i % 12));
    site.shared_bytes = i % 4 == 0 ? 49152 : 0;
    site.duration_ns = 1500.0 + 700.0 * static_cast<double>(i % 17);
    sites.push_back(std::move(site));
  }
  return sites;
}

struct Totals {
  uint64_t events = 0;
  uint64_t bytes = 0;
  double seconds = 0;
};

// What the recorder does for one launch, as separate kinds so that each can be measured alone.
struct Kinds {
  bool kernels = true;
  bool api_calls = true;
  bool launch_stacks = true;
};

void WriteLaunches(CaptureWriter& writer, uint32_t count, Kinds kinds) {
  Random random(1);
  const std::vector<Site> sites = MakeSites(random);
  uint64_t now_ns = 86'400'000'000'000;
  uint64_t gpu_ns = 1'760'000'000'000'000'000;
  uint32_t correlation = 1000;
  for (uint32_t i = 0; i < count; ++i) {
    const Site& site = sites[i % kKernelsPerStep];
    now_ns += Around(random, i % kKernelsPerStep == 0 ? 30000 : 9000, 0.15);
    correlation += 1 + (i % 7 == 0 ? 2 : 0);
    const uint64_t call_ns = Around(random, 3100, 0.08);
    if (kinds.launch_stacks) {
      LaunchStack launch{.instance = kInstance,
                         .correlation_id = correlation,
                         .domain = ApiDomain::kRuntime,
                         .callback_id = 211,
                         .time_ns = now_ns + Around(random, 250, 0.1),
                         .pid = 123456,
                         .tid = 123456,
                         .cpu = 7,
                         .stack = {},
                         .stack_flags = 1,
                         .python_stack = {}};
      launch.stack = writer.InternStack(site.stack);
      XPU_CHECK(writer.Write(launch).ok());
    }
    if (kinds.api_calls) {
      XPU_CHECK(writer
                    .Write(ApiCall{.instance = kInstance,
                                   .domain = ApiDomain::kRuntime,
                                   .callback_id = 211,
                                   .correlation_id = correlation,
                                   .tid = 123456,
                                   .start_ns = now_ns,
                                   .end_ns = now_ns + call_ns,
                                   .return_value = 0})
                    .ok());
    }
    if (!kinds.kernels) continue;
    gpu_ns += Around(random, 900, 0.2);
    Kernel kernel;
    kernel.instance = kInstance;
    kernel.record_size_bytes = 216;
    kernel.start_ns = gpu_ns;
    gpu_ns += Around(random, site.duration_ns, 0.03);
    kernel.end_ns = gpu_ns;
    kernel.correlation_id = correlation;
    kernel.context_id = 1;
    kernel.stream_id = 7;
    kernel.channel_id = 8;
    kernel.channel_type = 1;
    kernel.grid_id = static_cast<int64_t>(i) + 1;
    kernel.name = writer.InternString(site.kernel_name);
    kernel.grid_x = site.grid_x;
    kernel.grid_y = kernel.grid_z = 1;
    kernel.block_x = site.block_x;
    kernel.block_y = kernel.block_z = 1;
    kernel.registers_per_thread = site.registers;
    kernel.dynamic_shared_memory_bytes = site.shared_bytes;
    kernel.shared_memory_executed_bytes = static_cast<uint32_t>(site.shared_bytes + 1024);
    kernel.shared_memory_config = 2;
    kernel.launch_type = 0;
    XPU_CHECK(writer.Write(kernel).ok());
  }
}

// 40 k stacks over 6.7 k addresses, a few of them hot, as measured with perf.
std::vector<std::vector<Frame>> MakeSampleStacks(Random& random, size_t count) {
  std::vector<Frame> addresses = CommonPath(random, 6700);
  std::vector<std::vector<Frame>> stacks{{addresses[0]}};
  while (stacks.size() < count) {
    // An earlier stack, cut somewhere and grown again.
    std::vector<Frame> stack = stacks[random() % stacks.size()];
    stack.erase(stack.begin(), stack.begin() + static_cast<ptrdiff_t>(random() % stack.size()) / 2);
    while (stack.size() < 14 + random() % 10) {
      const double skew = std::pow(std::uniform_real_distribution<double>(0, 1)(random), 3);
      stack.insert(stack.begin(), addresses[static_cast<size_t>(skew * 6699)]);
    }
    stacks.push_back(std::move(stack));
  }
  return stacks;
}

void WriteSamples(CaptureWriter& writer, uint32_t count,
                  const std::vector<std::vector<Frame>>& stacks) {
  Random random(2);
  uint64_t now_ns = 86'400'000'000'000;
  for (uint32_t i = 0; i < count; ++i) {
    now_ns += Around(random, 10'101'010.0 / 16, 0.3);
    const double skew = std::pow(std::uniform_real_distribution<double>(0, 1)(random), 3);
    const auto& stack = stacks[static_cast<size_t>(skew * static_cast<double>(stacks.size() - 1))];
    CpuSample sample{.time_ns = now_ns,
                     .source = 1,
                     .pid = 123456,
                     .tid = 123456 + static_cast<uint32_t>(random() % 16),
                     .cpu = static_cast<uint32_t>(random() % 16),
                     .stack = {},
                     .stack_flags = 1,
                     .python_stack = {}};
    sample.stack = writer.InternStack(stack);
    XPU_CHECK(writer.Write(sample).ok());
  }
}

// Of this process: other load on the machine does not count.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

template <typename Fill>
void Measure(const char* what, Fill&& fill) {
  UniqueFd fd(::memfd_create("bench", MFD_CLOEXEC));
  const std::string path = Format("/proc/self/fd/{}", fd.get());
  UniqueFd writer_fd(::dup(fd.get()));
  auto writer = CaptureWriter::Create(std::move(writer_fd), "bench");
  XPU_CHECK(writer.ok());
  Totals written;
  double begin = CpuSeconds();
  fill(*writer);
  XPU_CHECK(writer->Close().ok());
  written.seconds = CpuSeconds() - begin;
  written.events = writer->events_written();
  written.bytes = writer->bytes_written();

  auto file = FileBytes::Open(path);
  XPU_CHECK(file.ok());
  auto reader = CaptureReader::FromBytes(file->bytes(), "bench");
  XPU_CHECK(reader.ok());
  uint64_t events_read = 0;
  begin = CpuSeconds();
  while (const auto batch = reader->Next()) {
    VisitLists(*batch, [&](const char*, const auto& list) { events_read += list.size(); });
  }
  const double read_seconds = CpuSeconds() - begin;
  XPU_CHECK(events_read == written.events);

  const auto events = static_cast<double>(written.events);
  std::printf(
      "%-44s %9.0f events %6.2f bytes each; write %7.0f ns, read %5.0f ns each; %6lu blocks\n",
      what, events, static_cast<double>(written.bytes) / events, written.seconds * 1e9 / events,
      read_seconds * 1e9 / events, static_cast<unsigned long>(reader->problems().blocks_read));
}

}  // namespace
}  // namespace xpu

int main() {
  constexpr uint32_t kLaunches = 100'000;
  using xpu::CaptureWriter;
  xpu::Measure("kernels", [](CaptureWriter& writer) {
    xpu::WriteLaunches(writer, kLaunches, {.api_calls = false, .launch_stacks = false});
  });
  xpu::Measure("API calls", [](CaptureWriter& writer) {
    xpu::WriteLaunches(writer, kLaunches, {.kernels = false, .launch_stacks = false});
  });
  xpu::Measure("launch stacks", [](CaptureWriter& writer) {
    xpu::WriteLaunches(writer, kLaunches, {.kernels = false, .api_calls = false});
  });
  xpu::Measure("kernels, API calls and launch stacks",
               [](CaptureWriter& writer) { xpu::WriteLaunches(writer, kLaunches, {}); });
  xpu::Random random(3);
  const auto stacks = xpu::MakeSampleStacks(random, 40'000);
  xpu::Measure("CPU samples",
               [&stacks](CaptureWriter& writer) { xpu::WriteSamples(writer, 200'000, stacks); });
  return 0;
}
