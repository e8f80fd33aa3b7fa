// What all users of libbpf share: errors, maps and rings.
//
// BPF programs are opened, get their constants and shared maps, and are loaded, in that order;
// functions here say between which of these steps they are called. Errors carry a hint that names
// the capabilities if those are what is missing.
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

// Discards libbpf's own messages, or with `verbose` prints its warnings (the verifier's log) on
// stderr.
void SetBpfMessages(bool verbose);

// The error of `what`, which failed with -errno `result`. The hint names the capabilities if those
// are missing.
Error BpfError(std::string_view what, int result);

// The recorder's pid namespace, a constant of the programs.
struct PidNamespace {
  uint64_t device = 0;
  uint64_t inode = 0;
};
Result<PidNamespace> OwnPidNamespace();

// Sums the map `counters` over all CPUs.
std::array<uint64_t, XPU_COUNTERS> ReadCounters(const bpf_map* counters);

// Creates a map that several programs share under `name`, which errors mention.
Result<UniqueFd> CreateMap(bpf_map_type type, const char* name, uint32_t key_bytes,
                           uint32_t value_bytes, uint32_t entries, uint32_t flags = 0,
                           int inner_fd = 0);

struct SharedMap {
  const char* name;
  int fd;
};
// Called between a program's open and load: makes it use these maps.
Status ShareMaps(bpf_object* object, std::span<const SharedMap> maps);
// Called instead if the program does not use the maps. They are shrunk but not removed: up to Linux
// 6.7 the verifier also checks global functions that nothing calls.
Status ShrinkMaps(bpf_object* object, std::span<const char* const> names);

// Reads one BPF ring buffer.
class BpfRing {
 public:
  using Visit = std::function<void(std::span<const std::byte>)>;

  // Drain calls `visit` for each event. The bytes are valid only during the call.
  static Result<BpfRing> Open(const bpf_map* ring, Visit visit) {
    return Open(bpf_map__fd(ring), std::move(visit));
  }
  static Result<BpfRing> Open(int ring_fd, Visit visit);
  void Drain() { ring_buffer__consume(ring_.get()); }

 private:
  std::unique_ptr<Visit> visit_;  // on the heap, because libbpf keeps its address
  Handle<ring_buffer, ring_buffer__free> ring_;
};

}  // namespace xpu
