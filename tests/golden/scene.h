// The capture that the golden texts are about, and the program files it names: a small inference
// program on two GPUs, its helper process, which sees one of them, and some of everything that can
// go wrong. Every number is chosen so that it can be followed by hand into the golden texts.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tests/unit/durations.h"
#include "tests/unit/report/model_builder.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu::test {

inline constexpr uint64_t kStart = 1'000 * kMs;
inline constexpr uint64_t kPeriod = 10 * kMs;
inline constexpr uint64_t kClockOffset =
    1'700'000'000'000'000'000;  // CUPTI clock - CLOCK_MONOTONIC

inline constexpr uint32_t kApp = 100;
inline constexpr uint32_t kWorker = 101;
inline constexpr uint32_t kHelper = 200;
inline constexpr uint64_t kAppInstance = 0xa1;
inline constexpr uint64_t kHelperInstance = 0xb2;

// Where the text of each file is mapped; each maps one page.
inline constexpr uint64_t kAppText = 0x55550000'1000;
inline constexpr uint64_t kCudart = 0x7f0000010000;
inline constexpr uint64_t kCuda = 0x7f0000020000;
inline constexpr uint64_t kCupti = 0x7f0000030000;
inline constexpr uint64_t kInject = 0x7f0000040000;
inline constexpr uint64_t kPlugin = 0x7f0000050000;
inline constexpr uint64_t kGenerated = 0x7f0000060000;
inline constexpr uint64_t kVdso = 0x7fff00000000;

// Call-back ids, beside those of model_builder.h.
inline constexpr uint32_t kMemcpyAsync = 41;
inline constexpr uint32_t kMemsetAsync = 51;
inline constexpr uint32_t kGraphLaunch = 311;
inline constexpr uint32_t kStreamSynchronize = 131;
inline constexpr uint32_t kMemcpyPeerAsync = 57;

inline constexpr char kSoftmax[] = "_Z7softmaxIfEvPT_i";  // void softmax<float>(float*, int)
inline constexpr char kMatmul[] = "_Z6matmulPfS_S_";      // matmul(float*, float*, float*)

class Scene {
 public:
  explicit Scene(std::string directory) : directory_(std::move(directory)) {}

  Status Write() {
    WriteFiles();
    AddRecording();
    AddProcesses();
    AddSamples();
    AddSymbols();
    AddGpu();
    AddHelper();
    MarkStacks();
    AddLosses();
    return builder_.WriteCapture(directory_ + "/scene.xpu");
  }

 private:
  void WriteFiles();
  void AddRecording();
  void AddProcesses();
  void AddSamples();
  void AddSymbols();
  void AddGpu();
  void AddDevice(uint64_t instance, uint32_t device_id, const char* uuid);
  void AddOperations();
  void AddGraphs();
  void AddCopies();
  void AddOverheads();
  // A call of the application, 5 us long, with its stack.
  ApiCall& AddCall(uint32_t id, uint32_t callback_id, uint64_t start, StackId stack);
  void AddNode(GraphNodeChange change, uint64_t time_ns, uint64_t node_id, uint64_t original,
               uint32_t type, uint32_t correlation_id);
  void AddHelper();
  void MarkStacks();
  void AddLosses();

  void MapFile(uint64_t time_ns, uint32_t pid, uint64_t start, const char* name) {
    builder_.Map(time_ns, pid, start, ElfBuilder::kTextBytes, ElfBuilder::kTextOffset,
                 directory_ + "/" + name, std::string("build-id-of-") + name);
  }
  // The stack at the marker under main -> runRequest -> forward, with everything below it.
  StackId LaunchStackOf(uint64_t forward_offset, uint64_t cudart_offset = 0) {
    return builder_.Stack({kAppText + 0x110, kAppText + 0x210, kAppText + 0x300 + forward_offset,
                           kCudart + cudart_offset + 0x10, kCuda + 0x10, kCupti + 0x10,
                           kInject + 0x10, kInject + 0x100});
  }
  static uint64_t Cupti(uint64_t monotonic_ns) { return monotonic_ns + kClockOffset; }

  std::string directory_;
  ModelBuilder builder_;
};

}  // namespace xpu::test
