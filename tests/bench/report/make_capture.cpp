// Writes a capture of about a million events like those of a training loop on one GPU: launches
// with their stacks and kernels on two streams, copies, CPU samples of 16 threads. What the benches
// of reports read: the same events in every run.
//
//     make_capture FILE [EVENTS]

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>

#include "format/base/check.h"
#include "format/base/handle.h"
#include "format/base/text.h"
#include "format/writer.h"

namespace xpu {
namespace {

using Random = std::mt19937_64;

constexpr InstanceId kInstance{0x8f3a5b7c9d1e2f40};
constexpr uint32_t kPid = 4711;
constexpr uint32_t kLaunchKernel = 211;
constexpr uint32_t kMemcpyAsync = 41;
constexpr uint32_t kThreads = 16;
constexpr uint64_t kCode = 0x7f0000000000;
constexpr uint64_t kStartNs = 86'400'000'000'000;
constexpr uint64_t kGpuClockOffsetNs = 1'760'000'000'000'000'000;

class Maker {
 public:
  Maker(CaptureWriter& writer, uint64_t events) : writer_(writer), events_(events) {
    for (uint32_t i = 0; i < 60; ++i) {
      kernels_.push_back(Format(
          "_ZN2at6native29vectorized_elementwise_kernelILi{}ENS0_{}FunctorIfEESt5arrayIPcLm{}"
          "EEEEviT0_",
          i % 20, 100 + i % 20, i % 3));
      launch_stacks_.push_back(MakeStack(40));
    }
    for (uint32_t i = 0; i < 4000; ++i) sample_stacks_.push_back(MakeStack(20));
  }

  void Make() {
    WriteProcess();
    for (uint64_t step = 0; put_ < events_; ++step) {
      if (step % 7 == 6) {
        WriteCopy();
      } else {
        WriteLaunch(step);
      }
      if (step % 2 == 0) WriteSample();
    }
    Put(RecordingEnd{.time_ns = now_ns_});
  }

 private:
  std::vector<Frame> MakeStack(size_t frames) {
    std::vector<Frame> stack;
    for (size_t i = 0; i < frames; ++i) {
      // The outer half is the same for all: where stacks are merged.
      const uint64_t function = i * 2 < frames ? random_() % 3000 : i;
      stack.push_back({FrameKind::kUser, kCode + function * 256 + 16});
    }
    return stack;
  }

  template <typename Event>
  void Put(const Event& event) {
    XPU_CHECK(writer_.Write(event).ok());
    ++put_;
  }

  void WriteProcess();
  void WriteCall(uint32_t callback_id);
  void WriteLaunch(uint64_t step);
  void WriteCopy();
  void WriteSample();
  std::pair<uint64_t, uint64_t> Run(size_t stream, uint64_t duration_ns);

  CaptureWriter& writer_;
  const uint64_t events_;
  uint64_t put_ = 0;
  Random random_{1};
  std::vector<std::string> kernels_;
  std::vector<std::vector<Frame>> launch_stacks_;
  std::vector<std::vector<Frame>> sample_stacks_;
  uint32_t correlation_ = 0;
  uint64_t now_ns_ = kStartNs;
  std::array<uint64_t, 2> gpu_ns_ = {kStartNs, kStartNs};  // when each stream is idle
};

void Maker::WriteProcess() {
  Put(RecordingInfo{.start_ns = kStartNs,
                    .cpu_count = kThreads,
                    .recorder_version = writer_.InternString("bench"),
                    .host_name = {},
                    .kernel_release = {},
                    .machine = {},
                    .command_line = writer_.InternString("python3 train.py"),
                    .settings = {},
                    .working_directory = {},
                    .boot_id = {}});
  Put(SampleSource{.source = 1,
                   .name = writer_.InternString("cpu-clock"),
                   .frequency_hz = 1000,
                   .period = 1'000'000,
                   .unit = writer_.InternString("ns")});
  for (uint32_t i = 0; i < kThreads; ++i) {
    Put(ProcessEvent{.time_ns = kStartNs,
                     .kind = ProcessEventKind::kExisting,
                     .pid = kPid,
                     .tid = kPid + i,
                     .name = writer_.InternString(i == 0 ? "python3" : "worker")});
  }
  Put(GpuProcess{.time_ns = kStartNs,
                 .instance = kInstance,
                 .pid = kPid,
                 .namespace_pid = kPid,
                 .cupti_path = {},
                 .detail = {}});
  Put(ClockPair{.instance = kInstance,
                .before_ns = kStartNs,
                .clock_ns = kStartNs + kGpuClockOffsetNs,
                .after_ns = kStartNs + 100});
  for (const auto& [id, name] :
       {std::pair(kLaunchKernel, "cudaLaunchKernel"), std::pair(kMemcpyAsync, "cudaMemcpyAsync")}) {
    Put(CallbackName{.instance = kInstance,
                     .domain = ApiDomain::kRuntime,
                     .callback_id = id,
                     .name = writer_.InternString(name)});
  }
  for (uint32_t i = 0; i < 3000; ++i) {
    Put(GeneratedSymbol{
        .time_ns = kStartNs,
        .pid = kPid,
        .address = kCode + i * 256,
        .size_bytes = 256,
        .name = writer_.InternString(Format("at::native::layer_{}(at::Tensor const&, long)", i))});
  }
}

void Maker::WriteCall(uint32_t callback_id) {
  now_ns_ += 4'000 + random_() % 4'000;
  ++correlation_;
  Put(ApiCall{.instance = kInstance,
              .domain = ApiDomain::kRuntime,
              .callback_id = callback_id,
              .correlation_id = correlation_,
              .tid = kPid,
              .start_ns = now_ns_,
              .end_ns = now_ns_ + 2'000 + random_() % 1'000,
              .return_value = 0});
}

void Maker::WriteLaunch(uint64_t step) {
  WriteCall(kLaunchKernel);
  const size_t site = step % kernels_.size();
  Put(LaunchStack{.instance = kInstance,
                  .correlation_id = correlation_,
                  .domain = ApiDomain::kRuntime,
                  .callback_id = kLaunchKernel,
                  .time_ns = now_ns_ + 200,
                  .pid = kPid,
                  .tid = kPid,
                  .stack = writer_.InternStack(launch_stacks_[site]),
                  .python_stack = {}});
  const auto [start_ns, end_ns] = Run(step % 2, 3'000 + random_() % 9'000);
  Kernel kernel;
  kernel.instance = kInstance;
  kernel.start_ns = start_ns;
  kernel.end_ns = end_ns;
  kernel.correlation_id = correlation_;
  kernel.context_id = 1;
  kernel.stream_id = 7 + static_cast<uint32_t>(step % 2);
  kernel.name = writer_.InternString(kernels_[site]);
  kernel.grid_x = 1024;
  kernel.grid_y = kernel.grid_z = 1;
  kernel.block_x = 256;
  kernel.block_y = kernel.block_z = 1;
  kernel.registers_per_thread = 32;
  kernel.dynamic_shared_memory_bytes = 49152;
  Put(kernel);
}

void Maker::WriteCopy() {
  WriteCall(kMemcpyAsync);
  const auto [start_ns, end_ns] = Run(0, 20'000);
  Memcpy copy;
  copy.instance = kInstance;
  copy.start_ns = start_ns;
  copy.end_ns = end_ns;
  copy.size_bytes = 512 << 10;
  copy.correlation_id = correlation_;
  copy.context_id = 1;
  copy.stream_id = 7;
  copy.copy_kind = 1 + random_() % 2;  // to the device, from the device
  Put(copy);
}

// The stream's next work, on the GPU's clock.
std::pair<uint64_t, uint64_t> Maker::Run(size_t stream, uint64_t duration_ns) {
  const uint64_t start_ns = std::max(gpu_ns_[stream] + 800, now_ns_ + 5'000);
  gpu_ns_[stream] = start_ns + duration_ns;
  return {start_ns + kGpuClockOffsetNs, gpu_ns_[stream] + kGpuClockOffsetNs};
}

void Maker::WriteSample() {
  Put(CpuSample{.time_ns = now_ns_,
                .source = 1,
                .pid = kPid,
                .tid = kPid + static_cast<uint32_t>(random_() % kThreads),
                .stack = writer_.InternStack(sample_stacks_[random_() % sample_stacks_.size()]),
                .python_stack = {}});
}

Status Run(const char* path, uint64_t events) {
  UniqueFd fd(::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) return SystemError(Format("{}: cannot write", path), errno);
  XPU_ASSIGN_OR_RETURN(CaptureWriter writer, CaptureWriter::Create(std::move(fd), path));
  Maker(writer, events).Make();
  return writer.Close();
}

}  // namespace
}  // namespace xpu

int main(int argc, char** argv) {
  uint64_t events = 1'000'000;
  if (argc == 3) std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), events);
  if (argc < 2 || argc > 3) return 2;
  const xpu::Status status = xpu::Run(argv[1], events);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.error().ToString().c_str());
  return 1;
}
