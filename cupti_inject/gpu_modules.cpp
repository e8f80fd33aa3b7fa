#include "cupti_inject/gpu_modules.h"

#include <cstring>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {
namespace {

constexpr uint32_t kPieceBytes = 48 << 10;
constexpr uint64_t kPieceStepNs = 1'000'000;
constexpr uint64_t kCodePatienceNs = 2'000'000'000;  // of a whole module

}  // namespace

bool GpuModules::Open(RingProducer* ring, const cupti::Functions* functions) {
  memory_ = static_cast<std::byte*>(MapZeroed(kMaxModules * sizeof(Module) + kPieceBytes));
  if (memory_ == nullptr) return false;
  piece_ = memory_;
  modules_ = reinterpret_cast<Module*>(memory_ + kPieceBytes);
  ring_ = ring;
  cupti_ = functions;
  return true;
}

void GpuModules::Close() {
  if (memory_ == nullptr) return;
  for (uint32_t i = 0; i < module_count_; ++i) DropCopy(modules_[i]);
  munmap(memory_, kMaxModules * sizeof(Module) + kPieceBytes);
  memory_ = nullptr;
  module_count_ = 0;
}

// Modules that were unloaded without samples so far make room for one that is loaded.
void GpuModules::Copy(Module& module) {
  if (module.bytes > kMaxCopyBytes) return;
  for (uint32_t i = 0; i < module_count_ && !HasRoom(module.bytes); ++i) {
    if (modules_[i].is_copy && !modules_[i].is_loaded && !modules_[i].is_owed) {
      DropCopy(modules_[i]);
    }
  }
  if (!HasRoom(module.bytes)) return;
  void* copy = MapZeroed(module.bytes);
  if (copy == nullptr) return;
  std::memcpy(copy, module.cubin, module.bytes);
  copied_bytes_ += module.bytes;
  ++copies_;
  module.cubin = static_cast<const char*>(copy);
  module.is_copy = true;
}

void GpuModules::DropCopy(Module& module) {
  if (!module.is_copy) return;
  munmap(const_cast<char*>(module.cubin), module.bytes);
  copied_bytes_ -= module.bytes;
  --copies_;
  module.cubin = nullptr;
  module.is_copy = false;
}

void GpuModules::Add(const cupti::ModuleData& loaded) {
  if (loaded.cubin == nullptr) return;
  cupti::CubinCrc checksum{sizeof(checksum), loaded.cubin_bytes, loaded.cubin, 0};
  if (cupti_->get_cubin_crc(&checksum) != cupti::kSuccess) return;
  const Locked locked(lock_);
  Module* place = nullptr;
  for (uint32_t i = 0; i < module_count_; ++i) {
    Module& module = modules_[i];
    if (module.crc == checksum.crc) {
      if (module.is_sent) return;
      place = &module;
      break;
    }
    if (place == nullptr && IsFree(module)) place = &module;
  }
  if (place == nullptr && module_count_ < kMaxModules) place = &modules_[module_count_++];
  if (place == nullptr) return ring_->Count(wire::kCounterCubinsDropped);
  if (place->is_copy) {
    place->id = loaded.module_id;
    place->is_loaded = true;
    return;
  }
  *place = {loaded.cubin, loaded.cubin_bytes, checksum.crc, loaded.module_id, true, false,
            false,        place->is_owed};
  Copy(*place);
}

void GpuModules::Remove(const cupti::ModuleData& unloaded) {
  const Locked locked(lock_);
  for (uint32_t i = 0; i < module_count_; ++i) {
    if (modules_[i].id == unloaded.module_id && !modules_[i].is_sent) modules_[i].is_loaded = false;
  }
}

// The module, which counts as sent from now on; no code: it is not there, is owed, or was sent.
GpuModules::Module GpuModules::Take(uint64_t crc, bool may_wait, bool* is_new) {
  const Locked locked(lock_);
  *is_new = false;
  Module* found = nullptr;
  for (uint32_t i = 0; i < module_count_; ++i) {
    Module& module = modules_[i];
    if (module.crc != crc) continue;
    if (module.is_sent) return {};
    found = &module;
  }
  if (found != nullptr && !may_wait) {
    found->is_owed = is_any_owed_ = true;
    return {};
  }
  *is_new = true;
  if (found == nullptr) {
    if (module_count_ < kMaxModules) {
      modules_[module_count_++] = {nullptr, 0, crc, 0, false, true, false, false};
    }
    return {};
  }
  const Module taken = found->is_loaded || found->is_copy ? *found : Module{};
  found->is_sent = true;
  found->is_copy = found->is_owed = false;  // it is the caller's now
  return taken;
}

void GpuModules::Send(uint64_t crc, bool may_wait) {
  bool is_new = false;
  Module module = Take(crc, may_wait, &is_new);
  if (is_new && !SendCubin(module, may_wait)) ring_->Count(wire::kCounterCubinsDropped);
  const Locked locked(lock_);
  DropCopy(module);
}

void GpuModules::SendOwed() {
  if (!is_any_owed_) return;
  is_any_owed_ = false;
  for (uint32_t i = 0; i < module_count_; ++i) {
    uint64_t crc = 0;
    {
      const Locked locked(lock_);
      if (!modules_[i].is_owed) continue;
      crc = modules_[i].crc;
    }
    Send(crc, true);
  }
}

// Copies of pieces: the program may unload the module meanwhile. The recorder compares nothing, so
// what is no longer the module must not be sent.
bool GpuModules::SendCubin(const Module& module, bool may_wait) {
  if (module.bytes == 0 || module.bytes > wire::kMaxCubinBytes ||
      (!module.is_copy && !HasChecksum(module))) {
    return false;
  }
  wire::CubinMessage message{};
  message.cubin_crc = module.crc;
  message.cubin_bytes = module.bytes;
  while (message.offset < module.bytes) {
    const uint64_t left = module.bytes - message.offset;
    message.piece_bytes = left < kPieceBytes ? static_cast<uint32_t>(left) : kPieceBytes;
    iovec ours{piece_, message.piece_bytes};
    iovec theirs{const_cast<char*>(module.cubin) + message.offset, message.piece_bytes};
    if (syscall(SYS_process_vm_readv, static_cast<long>(getpid()), &ours, 1UL, &theirs, 1UL, 0UL) !=
        static_cast<long>(message.piece_bytes)) {
      return false;
    }
    if (!SendPatiently(wire::MessageKind::kCubin, message, piece_, message.piece_bytes, may_wait)) {
      return false;
    }
    message.offset += message.piece_bytes;
  }
  return true;
}

// Of a copy, as it may be gone.
bool GpuModules::HasChecksum(const Module& module) const {
  void* copy = MapZeroed(module.bytes);
  if (copy == nullptr) return false;
  iovec ours{copy, module.bytes};
  iovec theirs{const_cast<char*>(module.cubin), module.bytes};
  const bool is_there = syscall(SYS_process_vm_readv, static_cast<long>(getpid()), &ours, 1UL,
                                &theirs, 1UL, 0UL) == static_cast<long>(module.bytes);
  cupti::CubinCrc checksum{sizeof(checksum), module.bytes, copy, 0};
  const bool is_same =
      is_there && cupti_->get_cubin_crc(&checksum) == cupti::kSuccess && checksum.crc == module.crc;
  munmap(copy, module.bytes);
  return is_same;
}

template <typename Message>
bool GpuModules::SendPatiently(wire::MessageKind kind, const Message& message, const void* payload,
                               size_t payload_bytes, bool may_wait) {
  for (uint64_t waited_ns = 0;; waited_ns += kPieceStepNs) {
    // Half of the ring is for the program's own calls.
    if (!ring_->IsHalfFull() && ring_->Send(kind, message, payload, payload_bytes)) return true;
    if (!may_wait || waited_ns >= kCodePatienceNs || ring_->closed()) return false;
    SleepNs(kPieceStepNs);
  }
}

}  // namespace xpu::inject
