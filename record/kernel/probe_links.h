// Probes at functions of one file, in every process that maps it.
//
// Linux 6.6 and newer attach all probes of a file by one link and remove them together, in about 20
// ms. Older kernels need one link per probe, and removing each takes 0.1 s. The single link
// requires CAP_BPF and CAP_PERFMON, the others CAP_SYS_ADMIN.
//
// A return probe replaces the return address while the function runs. A C++ exception that reaches
// it ends the program, and a stack walk ends there. Linux 6.13 and newer ask at each entry whether
// to do that (a session); older kernels do it to every process.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <bpf/libbpf.h>

#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

using BpfLink = Handle<bpf_link, bpf_link__destroy>;

inline constexpr int kThisProcess = 0;
inline constexpr int kEveryProcess = -1;

// Called before the programs are loaded: selects one link for all probes of a file if the kernel
// has it, and returns whether it does.
bool SelectMultiLink(std::initializer_list<bpf_program*> programs);

// The program then runs at entries too, where result 1 leaves the return address alone. Returns
// false if the kernel lacks sessions.
bool SelectSession(bpf_program* program);

struct ProbePoint {
  uint64_t file_offset = 0;
  uint64_t cookie = 0;  // the result of bpf_get_attach_cookie
};

// The probes of one program in one file. The destructor removes them.
class AttachedProbes {
 public:
  // `is_return`: at returns instead of entries; set for a session too. `path` is opened here and
  // not kept.
  static Result<AttachedProbes> Attach(const bpf_program* program, const std::string& path,
                                       std::span<const ProbePoint> points, bool is_return,
                                       int process = kEveryProcess);

 private:
  UniqueFd multi_link_;
  std::vector<BpfLink> links_;
};

}  // namespace xpu
