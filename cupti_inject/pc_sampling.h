// Samples of program counters on the GPU, with the reasons why warps wait there: CUPTI's continuous
// PC sampling, which leaves kernels concurrent and runs beside their records. (Windows by
// cuptiPCSamplingStart and Stop hang the program on CUPTI 13.0.)
//
// Sampling begins where the program creates a context, on its thread (70 to 100 ms there), because
// nothing of the context may be missed. Afterwards our own thread fetches what CUPTI's threads have
// decoded; before a module or a context goes, the thread that unloads it does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cupti_inject/cupti_abi.h"
#include "cupti_inject/gpu_modules.h"
#include "cupti_inject/lock.h"
#include "cupti_inject/ring_producer.h"

namespace xpu::inject {

class PcSampling {
 public:
  static constexpr uint32_t kMaxContexts = 32;
  static constexpr uint32_t kMaxFunctions = 64 << 10;  // with samples

  // False, with one sentence in `reason`: this CUPTI cannot do it, or there is no memory.
  bool Open(wire::RingHeader* header, RingProducer* ring, const cupti::Functions* functions,
            char* reason, size_t reason_size);
  // Nothing may be called any more.
  void Close();
  bool is_open() const { return memory_ != nullptr; }

  // On the program's threads, in callbacks.
  void OnContextCreated(void* context);
  void OnContextDestroyed(void* context);
  void OnModuleLoaded(const cupti::ModuleData& module);
  void OnModuleUnloaded(const cupti::ModuleData& module);

  // On our own thread. True: there were samples.
  bool Fetch();
  // The last fetch of all contexts, which ends sampling in them.
  void Stop();
  // CUPTI could not give samples: another program uses the GPU's counters and began before us.
  // CUPTI 13.0 then crashes when records are switched off.
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

 private:
  struct Context {
    std::atomic<void*> handle{nullptr};  // nullptr: free
    std::atomic<bool> is_gone{false};    // set without the lock: CUPTI is to hear no more of it
    uint32_t id = 0;
    uint32_t device = 0;
    uint64_t since_ns = 0;
    uint64_t buffer_bytes = 0;
    // Where CUPTI puts what was not fetched in time. Without it CUPTI 13.0 crashes.
    cupti::SamplingData* rest = nullptr;
  };
  struct Function {
    uint64_t crc;
    uint32_t index;
    bool is_used;
  };

  static cupti::SamplingData* MapData(uint32_t instructions);
  const char* Claim(const Context& context);
  bool Begin(Context& context);
  bool Configure(Context& context);
  bool SendReasons(const Context& context);
  void SendNotSampled(const char* function, cupti::Result result);
  // Where it is gone, or CUPTI has failed: CUPTI may still write to `rest`, which stays.
  static void Forget(Context& context);
  bool FetchContext(Context& context, bool may_wait);
  void Take(const Context& context, cupti::SamplingData& data, uint64_t now_ns, bool may_wait);
  bool TakeInstruction(const Context& context, const cupti::PcSamples& samples, uint64_t now_ns);
  // Of what was taken since the last one.
  void SendSums(Context& context, uint64_t now_ns);
  void End(Context& context);
  bool Knows(uint64_t crc, uint32_t index, const char* name);

  wire::RingHeader* header_ = nullptr;
  RingProducer* ring_ = nullptr;
  const cupti::Functions* cupti_ = nullptr;
  uint32_t period_bits_ = 0;
  uint64_t buffer_bytes_ = 0;
  GpuModules modules_;
  Lock lock_;  // of all below; held during CUPTI's calls
  std::byte* memory_ = nullptr;
  Function* functions_ = nullptr;
  uint32_t function_count_ = 0;
  std::byte* names_ = nullptr;           // of stall reasons
  cupti::SamplingData* data_ = nullptr;  // of one fetch
  Context contexts_[kMaxContexts];
  uint64_t samples_ = 0;
  uint64_t dropped_ = 0;
  uint64_t others_ = 0;
  bool buffer_was_full_ = false;
  uint32_t claims_ = 0;
  std::atomic<bool> has_failed_{false};
};

}  // namespace xpu::inject
