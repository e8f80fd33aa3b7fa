// What the two users of libbpf in this room share.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/events.h"
#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

// libbpf's own messages: none, or with `verbose` its warnings (the verifier's log) on stderr.
void SetBpfMessages(bool verbose);

// `what` failed with -errno `result`; the hint names the capabilities when they are what is
// missing.
Error BpfError(std::string_view what, int result);

// The recorder's pid namespace, for the programs' constants.
struct PidNamespace {
  uint64_t device = 0;
  uint64_t inode = 0;
};
Result<PidNamespace> OwnPidNamespace();

// The sums over the CPUs of the map `counters`.
std::array<uint64_t, XPU_COUNTERS> ReadCounters(const bpf_map* counters);

// A map that several programs share; `name` is the map's in each of them. Errors name it.
Result<UniqueFd> CreateMap(bpf_map_type type, const char* name, uint32_t key_bytes,
                           uint32_t value_bytes, uint32_t entries, uint32_t flags = 0,
                           int inner_fd = 0);

struct SharedMap {
  const char* name;
  int fd;
};
// Between a program's open and its load: its maps are these.
Status ShareMaps(bpf_object* object, std::span<const SharedMap> maps);
// Instead: the program does not use them. They are as small as they can be, but there: up to Linux
// 6.7 the verifier also goes through global functions that nothing calls.
Status ShrinkMaps(bpf_object* object, std::span<const char* const> names);

// Reads one BPF ring buffer.
class BpfRing {
 public:
  using Visit = std::function<void(std::span<const std::byte>)>;

  // `visit` is called by Drain with each event; its bytes hold during the call.
  static Result<BpfRing> Open(const bpf_map* ring, Visit visit) {
    return Open(bpf_map__fd(ring), std::move(visit));
  }
  static Result<BpfRing> Open(int ring_fd, Visit visit);
  void Drain() { ring_buffer__consume(ring_.get()); }

 private:
  std::unique_ptr<Visit> visit_;  // at an address that libbpf knows
  Handle<ring_buffer, ring_buffer__free> ring_;
};

}  // namespace xpu
