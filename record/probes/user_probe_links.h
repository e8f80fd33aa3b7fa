// The probes that the user asked for, placed: all of them or none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <bpf/libbpf.h>

#include "format/base/result.h"
#include "record/kernel/probe_links.h"
#include "record/options/user_probes.h"
#include "record/sink/event_sink.h"

namespace xpu {

class UserProbeLinks {
 public:
  struct Programs {
    const bpf_program* at_entry = nullptr;   // of functions of programs
    const bpf_program* at_return = nullptr;  // likewise
    const bpf_program* in_kernel = nullptr;
    const bpf_program* kernel_return = nullptr;
    const bpf_program* tracepoint = nullptr;
  };

  // Numbers the probes from 1 in their order. `program` and `environment` are the target's, for
  // names of libraries. `verbose`: tells where each goes.
  Status Place(const Programs& programs, std::span<const UserProbe> probes,
               const std::string& program, const std::vector<std::string>& environment,
               bool verbose);
  // What a hit is of; nullptr: of none of these probes.
  const UserProbe* Of(uint32_t probe) const;
  void WriteDefinitions(EventSink& sink) const;
  void RemoveAll();
  // Those where a hit takes the kernel long, for people.
  const std::vector<std::string>& slow() const { return slow_; }

 private:
  struct Placed {
    UserProbe probe;
    std::string function;  // its symbol
    std::string path;      // empty: the kernel
  };
  Status PlaceInFile(const Programs& programs, const UserProbe& probe, const std::string& path);
  Status PlaceInKernel(const Programs& programs, const UserProbe& probe);
  Status PlaceTracepoint(const Programs& programs, const UserProbe& probe);
  // Of the probe that is placed next.
  uint64_t NextCookie(const UserProbe& probe) const;

  std::vector<Placed> placed_;  // by number - 1
  std::vector<std::string> slow_;
  std::vector<PlacedProbes> in_files_;
  std::vector<BpfLink> in_kernel_;
};

// What the user's probes need of the kernel, before anything is loaded.
Status CheckUserProbes(std::span<const UserProbe> probes);

}  // namespace xpu
