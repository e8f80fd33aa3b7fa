// Accepts the connections of injected libraries on an abstract unix socket, and hands each a ring.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "cupti_inject/wire.h"
#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/gpu/ring_reader.h"

namespace xpu {

// A library stops recording when the recorder has shown no sign of life for this long
// (wire::RingHeader): longer than anyone suspends a recorder.
inline constexpr uint64_t kRecorderPatienceNs = 30'000'000'000;

// A process that received a ring.
struct InjectPeer {
  pid_t pid = 0;  // in the recorder's pid namespace
  uint32_t namespace_pid = 0;
  uint64_t instance = 0;
  UniqueFd pidfd;  // readable once the process has ended
  RingReader ring;
  bool is_attached = false;  // by Adopt
};

// A connection that did not receive a ring.
struct InjectRefusal {
  pid_t pid = 0;
  std::string reason;
};

struct InjectArrivals {
  std::vector<InjectPeer> peers;
  std::vector<InjectRefusal> refusals;
};

class InjectServer {
 public:
  // `settings`: bits of wire::kSetting... for all libraries.
  static Result<InjectServer> Listen(uint32_t settings = 0);
  // Shares this memory with every library that connects later. It must outlive the server.
  void ShareArena(int memfd, uint64_t bytes) {
    arena_memfd_ = memfd;
    arena_bytes_ = bytes;
  }

  // The initial gate of libraries that connect later: bits of wire::kGate...
  void SetGate(uint32_t gate) { gate_ = gate; }
  void SetDeviceBuffers(uint64_t count) { device_buffers_ = count; }  // wire::RingHeader
  void SetHang(uint64_t ns) { hang_ns_ = ns; }                        // likewise
  void SetSampling(uint32_t period_bits, uint64_t buffer_bytes) {     // likewise
    sample_period_bits_ = period_bits;
    sample_buffer_bytes_ = buffer_bytes;
  }
  // The NVTX range that opens the recording. `domain`: empty for the default domain, "*" for any.
  // Together they fit into wire::kCaptureRangeBytes.
  void SetCaptureRange(const std::string& name, const std::string& domain) {
    capture_range_ = name + '\0' + domain + '\0';
  }

  // Takes over the connection of a library that was loaded into the running process `pid`. It needs
  // no secret: nobody but the recorder could have been given this descriptor. The server keeps it
  // until HangUp, by which the library learns of the end of the recording, however it ends.
  void Adopt(UniqueFd connection, pid_t pid, uint64_t now_ns);
  void HangUp(uint64_t instance);
  // A library that was adopted, in process `pid` or (0) any, has not hung up: it closes the
  // connection when it has left CUPTI.
  bool HasAdopted(pid_t pid = 0) const;
  bool IsConnected(uint64_t instance) const;  // of one that was adopted
  // Some connections have not sent their Hello yet.
  bool IsExpecting() const { return !pending_.empty(); }
  // Closes those; returns the ones that were adopted.
  std::vector<InjectRefusal> GiveUpExpected();

  // The value of XPU_INJECT: name, secret, session.
  std::string EnvironmentValue() const;
  uint64_t session() const { return session_; }
  // Readable when a library connects, sends its Hello or wakes the recorder.
  int fd() const { return epoll_.get(); }

  // Returns why a process must not get a ring under this instance; empty if it may.
  using Objection = std::function<std::string(pid_t pid, uint64_t instance)>;
  // Answers the connections that have sent their Hello. Never blocks.
  InjectArrivals Accept(uint64_t now_ns, const Objection& objection = {});

 private:
  // Connections that have not sent a complete Hello. Any local process can connect, so only a few
  // are kept, for a short time.
  struct Pending {
    UniqueFd connection;
    uint64_t since_ns;
    pid_t attached_pid = 0;  // 0: it connected by itself
    uint64_t instance = 0;   // from its Hello on
  };
  static constexpr size_t kMaxPending = 64;
  static constexpr size_t kMaxAtOnce = 64;  // programs can connect faster than the recorder accepts
  static constexpr uint64_t kPatienceNs = 5'000'000'000;

  InjectServer() = default;
  void Listen(int fd) const;
  static bool IsThere(const Pending& welcomed);
  bool Answer(Pending& pending, const Objection& objection, InjectArrivals& arrivals);
  Result<InjectPeer> Welcome(const Pending& pending, const wire::Hello& hello, pid_t pid);

  std::string name_;
  std::array<uint8_t, wire::kSecretBytes> secret_{};
  uint64_t session_ = 0;
  uint32_t settings_ = 0;
  uint32_t gate_ = 0;
  uint64_t device_buffers_ = 0;
  uint64_t hang_ns_ = 0;
  uint32_t sample_period_bits_ = 0;
  uint64_t sample_buffer_bytes_ = 0;
  std::string capture_range_;
  int arena_memfd_ = -1;
  uint64_t arena_bytes_ = 0;
  UniqueFd epoll_;
  UniqueFd socket_;
  std::vector<Pending> pending_;
  std::vector<Pending> welcomed_;  // kept until they hang up, because they can wake the recorder
};

}  // namespace xpu
