// The modules of GPU code that the driver has loaded, to send the code of those that have samples.
//
// CUPTI names a module by a checksum of its code, which is sent when its first sample comes. Most
// modules of programs that compile at run time are small, their code lies in memory that is reused
// after loading, and many are unloaded soon: of these a copy is kept, as long as the copies use
// less than a bound. The code of others is read from where the driver said that it was, and its
// checksum compared.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_inject/cupti_abi.h"
#include "cupti_inject/lock.h"
#include "cupti_inject/ring_producer.h"

namespace xpu::inject {

class GpuModules {
 public:
  static constexpr uint32_t kMaxModules = 64 << 10;
  static constexpr uint64_t kMaxCopyBytes = uint64_t{4} << 20;
  static constexpr uint64_t kMaxCopiesBytes = uint64_t{64} << 20;
  static constexpr uint32_t kMaxCopies = 4096;  // each is a mapping of the program

  // False: there is no memory.
  bool Open(RingProducer* ring, const cupti::Functions* functions);
  void Close();

  // In callbacks: neither waits for a thread that sends.
  void Add(const cupti::ModuleData& loaded);
  void Remove(const cupti::ModuleData& unloaded);

  // The module's code, once; counts what could not be sent. `may_wait`: for room in the ring, which
  // large modules fill; otherwise it is left to SendOwed. One thread at a time.
  void Send(uint64_t crc, bool may_wait);
  void SendOwed();

 private:
  struct Module {
    const char* cubin;
    uint64_t bytes;
    uint64_t crc;
    uint32_t id;
    bool is_loaded;
    bool is_sent;  // or was tried in vain
    bool is_copy;  // which outlives the module
    bool is_owed;
  };

  // The next four with the lock held.
  bool IsFree(const Module& module) const {
    return !module.is_loaded && !module.is_sent && !module.is_owed && !module.is_copy;
  }
  bool HasRoom(uint64_t bytes) const {
    return copies_ < kMaxCopies && copied_bytes_ + bytes <= kMaxCopiesBytes;
  }
  void Copy(Module& module);  // if it is small and there is room
  void DropCopy(Module& module);
  Module Take(uint64_t crc, bool may_wait, bool* is_new);
  bool SendCubin(const Module& module, bool may_wait);
  bool HasChecksum(const Module& module) const;
  template <typename Message>
  bool SendPatiently(wire::MessageKind kind, const Message& message, const void* payload,
                     size_t payload_bytes, bool may_wait);

  RingProducer* ring_ = nullptr;
  const cupti::Functions* cupti_ = nullptr;
  std::byte* memory_ = nullptr;
  std::byte* piece_ = nullptr;  // of the sending thread
  Lock lock_;                   // of the modules, for instructions
  Module* modules_ = nullptr;
  uint32_t module_count_ = 0;
  uint64_t copied_bytes_ = 0;
  uint32_t copies_ = 0;
  bool is_any_owed_ = false;
};

}  // namespace xpu::inject
