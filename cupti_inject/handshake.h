// Connecting to the recorder: from the connection string to a mapped ring. wire.h describes the
// steps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_inject/lock.h"
#include "cupti_inject/wire.h"

namespace xpu::inject {

// The connection string that the recorder puts into the environment: XPU_INJECT (wire.h).
struct ConnectionString {
  char socket_name[108];  // abstract, without the leading zero
  size_t socket_name_bytes;
  uint8_t secret[wire::kSecretBytes];
  uint64_t session;
};

// False: absent (nullptr) or not `<name>:<secret>:<session>`.
bool ParseConnectionString(const char* text, ConnectionString* connection_string);

// How much the program may still map: what its limit (RLIMIT_AS) leaves; 0: it has none. A limit of
// which nobody tells how much is used (no /proc, no descriptor free) leaves 1.
uint64_t FreeAddressBytes();

struct MappedRing {
  wire::RingHeader* header = nullptr;  // the data after it is mapped twice in a row
  uint64_t capacity_bytes = 0;
  // The unwind tables, as far as there is address space for them; nullptr: none.
  const std::byte* arena = nullptr;
  uint64_t arena_bytes = 0;
};

// The connection, while the library starts, after an attach as long as the session lasts: the
// recorder looks into the ring at once when it rings, not at its next poll. -1: there is none.
class WakeDescriptor {
 public:
  WakeDescriptor() = default;
  WakeDescriptor(const WakeDescriptor&) = delete;
  WakeDescriptor& operator=(const WakeDescriptor&) = delete;
  ~WakeDescriptor() { Hold(-1); }
  void Hold(int fd);  // closes the one before
  void Ring() const;
  // False: the recorder has closed its end, or there is none.
  bool IsHeard() const;
  // Waits until `is_done`, at most `timeout_ns`, and only while the recorder lives.
  template <typename IsDone>
  void WaitUntil(uint64_t timeout_ns, IsDone&& is_done) const {
    constexpr uint64_t kStepNs = 200'000;
    const uint64_t deadline_ns = MonotonicNs() + timeout_ns;
    while (!is_done() && IsHeard() && MonotonicNs() < deadline_ns) SleepNs(kStepNs);
  }

 private:
  int fd_ = -1;
};

// The most time that Connect may take: a recorder that is stopped must not stop the program.
inline constexpr uint64_t kConnectTimeoutNs = 1'000'000'000;

// False: there is nobody, they are not who they should be, they refuse, or time is up. Leaves no
// descriptor open, but the connection where `wake` asks for it.
bool Connect(const ConnectionString& connection_string, uint64_t instance, uint64_t timeout_ns,
             MappedRing* ring, WakeDescriptor* wake = nullptr);
// The same over a connection to a recorder that has attached. Leaves `connection` open.
bool ShakeHands(int connection, uint64_t instance, uint64_t timeout_ns, MappedRing* ring);
void Unmap(const MappedRing& ring);

}  // namespace xpu::inject
