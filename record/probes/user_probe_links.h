// The attached probes that the user requested: all of them or none.
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
    const bpf_program* at_entry = nullptr;   // for functions of programs
    const bpf_program* at_return = nullptr;  // for functions of programs
    const bpf_program* in_kernel = nullptr;
    const bpf_program* kernel_return = nullptr;
    const bpf_program* tracepoint = nullptr;
  };

  // Numbers the probes from 1 in their order. `program` and `environment` of the target are needed
  // to find libraries by name. `verbose` prints where each probe is attached.
  Status Attach(const Programs& programs, std::span<const UserProbe> probes,
                const std::string& program, const std::vector<std::string>& environment,
                bool verbose);
  // The probe that was hit; nullptr if it is not one of these.
  const UserProbe* Of(uint32_t probe) const;
  void WriteDefinitions(EventSink& sink) const;
  void RemoveAll();
  // The probes whose hits are slow, for messages.
  const std::vector<std::string>& slow() const { return slow_; }

 private:
  struct UserProbeLink {
    UserProbe probe;
    std::string function;  // its symbol
    std::string path;      // empty: in the kernel
  };
  Status AttachToFile(const Programs& programs, const UserProbe& probe, const std::string& path);
  Status AttachToKernel(const Programs& programs, const UserProbe& probe);
  Status AttachToTracepoint(const Programs& programs, const UserProbe& probe);
  // The cookie for the next probe.
  uint64_t NextCookie(const UserProbe& probe) const;

  std::vector<UserProbeLink> attached_;  // by number - 1
  std::vector<std::string> slow_;
  std::vector<AttachedProbes> in_files_;
  std::vector<BpfLink> in_kernel_;
};

// Checks what the probes need from the kernel, before anything is loaded.
Status CheckUserProbes(std::span<const UserProbe> probes);

}  // namespace xpu
