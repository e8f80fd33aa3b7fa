// Where injected libraries report: an abstract unix socket that hands each of them a ring.
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

// A library that sees no sign of life from us for so long ends its work: wire::RingHeader. Longer
// than anyone leaves a recorder stopped.
inline constexpr uint64_t kRecorderPatienceNs = 30'000'000'000;

// A process that was given a ring.
struct InjectPeer {
  pid_t pid = 0;  // as the recorder's namespace sees it
  uint32_t namespace_pid = 0;
  uint64_t instance = 0;
  UniqueFd pidfd;  // readable when the process has ended
  RingReader ring;
};

// A connection that was not given one.
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
  // `settings`: what the libraries shall do, bits of wire::kSetting...
  static Result<InjectServer> Listen(uint32_t settings = 0);
  // Every library from now on is given this memory too; it must outlive the server.
  void ShareArena(int memfd, uint64_t bytes) {
    arena_memfd_ = memfd;
    arena_bytes_ = bytes;
  }

  // What the libraries that come from now on begin with: bits of wire::kGate...
  void SetGate(uint32_t gate) { gate_ = gate; }
  // Of NVTX; `domain`: empty the default one, "*" any. Fit into wire::kCaptureRangeBytes.
  void SetCaptureRange(const std::string& name, const std::string& domain) {
    capture_range_ = name + '\0' + domain + '\0';
  }

  // XPU_INJECT's value: name, secret, session.
  std::string EnvironmentValue() const;
  uint64_t session() const { return session_; }
  // Readable when a library connects, says hello or wakes the recorder.
  int fd() const { return epoll_.get(); }

  // Why this process shall get no ring under that instance; empty: it may have one.
  using Objection = std::function<std::string(pid_t pid, uint64_t instance)>;
  // Answers those who have connected and said hello by now; waits for nobody.
  InjectArrivals Accept(uint64_t now_ns, const Objection& objection = {});

 private:
  // Connections from which no whole Hello has come. Any local process can connect: few are kept,
  // and not for long.
  struct Pending {
    UniqueFd connection;
    uint64_t since_ns;
  };
  static constexpr size_t kMaxPending = 64;
  static constexpr size_t kMaxAtOnce = 64;  // programs may connect faster than we accept
  static constexpr uint64_t kPatienceNs = 5'000'000'000;

  InjectServer() = default;
  void Listen(int fd) const;
  static bool IsThere(const Pending& welcomed);
  bool Answer(Pending& pending, const Objection& objection, InjectArrivals& arrivals);
  Result<InjectPeer> Welcome(int connection, const wire::Hello& hello, pid_t pid);

  std::string name_;
  std::array<uint8_t, wire::kSecretBytes> secret_{};
  uint64_t session_ = 0;
  uint32_t settings_ = 0;
  uint32_t gate_ = 0;
  std::string capture_range_;
  int arena_memfd_ = -1;
  uint64_t arena_bytes_ = 0;
  UniqueFd epoll_;
  UniqueFd socket_;
  std::vector<Pending> pending_;
  std::vector<Pending> welcomed_;  // until they hang up: they may ring
};

}  // namespace xpu
