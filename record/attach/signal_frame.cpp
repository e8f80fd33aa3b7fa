#include "record/attach/signal_frame.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <initializer_list>

#include <cpuid.h>
#include <sys/syscall.h>
#include <ucontext.h>

namespace xpu {
namespace {

// The kernel's own error numbers for interrupted calls; include/linux/errno.h.
constexpr int64_t kRestartSys = -512;
constexpr int64_t kRestartNoIntr = -513;
constexpr int64_t kRestartNoHand = -514;
constexpr int64_t kRestartBlock = -516;

constexpr uint64_t kRedZoneBytes = 128;
constexpr uint64_t kFlagsCleared = 0x500;  // trap and direction

// What rt_sigreturn expects of the vector registers; asm/sigcontext.h has the same as structures
// that clash with those of the C library.
constexpr uint32_t kVectorMagic = 0x46505853;
constexpr uint32_t kVectorEndMagic = 0x46505845;
constexpr size_t kSoftwareBytesAt = 464;
constexpr size_t kFeaturesInUseAt = 512;  // header of the XSAVE area
constexpr size_t kLegacyBytes = 576;      // x87, SSE and the header
constexpr uint64_t kVectorAlignment = 64;
constexpr uint64_t kTileFeatures = 3u << 17;  // AMX: only for threads that asked for it

struct SoftwareBytes {
  uint32_t magic;
  uint32_t extended_bytes;
  uint64_t features;
  uint32_t bytes;
  uint32_t padding[7];
};
static_assert(sizeof(SoftwareBytes) == 48);

constexpr uint64_t kUcXstate = 1, kUcSegments = 2, kUcStrictSegments = 4;
// An invalid mode: the kernel then leaves the thread's alternate signal stack, which no tracer can
// read, as it is. It reports only memory that cannot be read as an error.
constexpr int kLeaveAlternateStack = 0x55;

template <typename T>
T At(const std::vector<std::byte>& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// How far the area reaches with these features.
size_t VectorBytes(uint64_t features) {
  size_t bytes = kLegacyBytes;
  for (uint32_t feature = 2; feature < 63; ++feature) {
    if ((features >> feature & 1) == 0) continue;
    uint32_t size = 0, offset = 0, flags = 0, unused = 0;
    __cpuid_count(0xd, feature, size, offset, flags, unused);
    bytes = std::max<size_t>(bytes, offset + size);
  }
  return bytes;
}

// The features that the kernel saves for the thread. A thread without the permission for tiles has
// a smaller area, and the kernel refuses a larger one.
uint64_t VectorFeatures(const std::vector<std::byte>& area) {
  const auto of_thread = At<uint64_t>(area, kSoftwareBytesAt);
  const auto in_use = At<uint64_t>(area, kFeaturesInUseAt);
  return (in_use & kTileFeatures) != 0 ? of_thread : of_thread & ~kTileFeatures;
}

void Append(std::vector<std::byte>& bytes, size_t at, const void* data, size_t size) {
  if (bytes.size() < at + size) bytes.resize(at + size);
  std::memcpy(bytes.data() + at, data, size);
}

ucontext_t ContextOf(const ThreadRegisters& thread, uint64_t vectors_at) {
  const user_regs_struct from = BeginAgain(thread.general);
  ucontext_t context{};
  context.uc_flags = kUcXstate | kUcSegments | kUcStrictSegments;
  context.uc_stack.ss_flags = kLeaveAlternateStack;
  greg_t* to = context.uc_mcontext.gregs;
  const auto set = [&](int place, uint64_t value) { to[place] = static_cast<greg_t>(value); };
  set(REG_R8, from.r8);
  set(REG_R9, from.r9);
  set(REG_R10, from.r10);
  set(REG_R11, from.r11);
  set(REG_R12, from.r12);
  set(REG_R13, from.r13);
  set(REG_R14, from.r14);
  set(REG_R15, from.r15);
  set(REG_RDI, from.rdi);
  set(REG_RSI, from.rsi);
  set(REG_RBP, from.rbp);
  set(REG_RBX, from.rbx);
  set(REG_RDX, from.rdx);
  set(REG_RAX, from.rax);
  set(REG_RCX, from.rcx);
  set(REG_RSP, from.rsp);
  set(REG_RIP, from.rip);
  set(REG_EFL, from.eflags);
  set(REG_CSGSFS, (from.cs & 0xffff) | (from.ss & 0xffff) << 48);
  context.uc_mcontext.fpregs = reinterpret_cast<fpregset_t>(vectors_at);
  std::memcpy(&context.uc_sigmask, &thread.signal_mask, sizeof(thread.signal_mask));
  return context;
}

}  // namespace

InterruptedCall InterruptedCallOf(const user_regs_struct& registers) {
  if (static_cast<int64_t>(registers.orig_rax) < 0) return InterruptedCall::kNone;
  switch (static_cast<int64_t>(registers.rax)) {
    case kRestartSys:
    case kRestartNoIntr:
    case kRestartNoHand:
      return InterruptedCall::kBeginAgain;
    case kRestartBlock:
      return InterruptedCall::kGoOn;
    default:
      return InterruptedCall::kNone;
  }
}

void RepeatCall(user_regs_struct& registers) {
  constexpr uint64_t kSyscallBytes = 2;  // of the instruction
  registers.rip -= kSyscallBytes;
  registers.rax = registers.orig_rax;
  registers.orig_rax = UINT64_MAX;
}

user_regs_struct BeginAgain(user_regs_struct registers) {
  if (InterruptedCallOf(registers) != InterruptedCall::kNone) RepeatCall(registers);
  registers.orig_rax = UINT64_MAX;
  return registers;
}

std::optional<SignalFrame> MakeSignalFrame(const ThreadRegisters& thread, uint64_t restorer) {
  std::vector<std::byte> vectors = thread.vectors;
  if (vectors.size() < kLegacyBytes) return std::nullopt;
  const uint64_t features = VectorFeatures(vectors);
  const size_t vector_bytes = VectorBytes(features);
  if (vector_bytes > vectors.size()) return std::nullopt;
  vectors.resize(vector_bytes);
  const SoftwareBytes software{kVectorMagic,
                               static_cast<uint32_t>(vector_bytes + sizeof(kVectorEndMagic)),
                               features,
                               static_cast<uint32_t>(vector_bytes),
                               {}};
  Append(vectors, kSoftwareBytesAt, &software, sizeof(software));
  Append(vectors, vector_bytes, &kVectorEndMagic, sizeof(kVectorEndMagic));

  const uint64_t top = thread.general.rsp - kRedZoneBytes;
  const uint64_t vectors_at = (top - vectors.size()) & ~(kVectorAlignment - 1);
  // A function finds the stack pointer 8 bytes past a multiple of 16, at its return address.
  const uint64_t context_at = (vectors_at - sizeof(ucontext_t)) & ~uint64_t{15};
  SignalFrame frame;
  frame.return_slot = context_at - sizeof(restorer);
  frame.address = frame.return_slot;
  const ucontext_t context = ContextOf(thread, vectors_at);
  Append(frame.bytes, 0, &restorer, sizeof(restorer));
  Append(frame.bytes, context_at - frame.address, &context, sizeof(context));
  Append(frame.bytes, vectors_at - frame.address, vectors.data(), vectors.size());
  return frame;
}

user_regs_struct RegistersForCall(const ThreadRegisters& thread, const SignalFrame& frame,
                                  uint64_t function, const std::vector<uint64_t>& arguments) {
  user_regs_struct registers = thread.general;
  unsigned long long* const places[] = {&registers.rdi, &registers.rsi, &registers.rdx,
                                        &registers.rcx, &registers.r8,  &registers.r9};
  for (size_t i = 0; i < arguments.size() && i < std::size(places); ++i) *places[i] = arguments[i];
  registers.rax = 0;
  registers.rip = function;
  registers.rsp = frame.return_slot;
  registers.eflags &= ~kFlagsCleared;
  registers.orig_rax = UINT64_MAX;  // in no system call
  return registers;
}

}  // namespace xpu
