// Probes at functions of one file, in every process that maps it.
//
// Linux 6.6 and newer place all of a file by one link and remove them together, in 20 ms or so;
// before that it is one link per probe, and removing each takes 0.1 s. The one link asks for
// CAP_BPF and CAP_PERFMON, the others for CAP_SYS_ADMIN.
#pragma once

#include <cstdint>
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

// BPF_TRACE_UPROBE_MULTI: what a program must have as its expected attach type before it is loaded
// to be placed by MultiProbes.
inline constexpr auto kUprobeMulti = static_cast<bpf_attach_type>(48);

// Whether the kernel has it.
bool HasUprobeMulti();

struct ProbePoint {
  uint64_t file_offset = 0;
  uint64_t cookie = 0;  // what bpf_get_attach_cookie gives
};

// The probes of one file with one program; removed with it.
class PlacedProbes {
 public:
  // `with_multi`: HasUprobeMulti(), and the program was loaded for it. `is_return`: not when the
  // functions are entered but when they return. `path` is opened here and not kept.
  static Result<PlacedProbes> Place(const bpf_program* program, const std::string& path,
                                    std::span<const ProbePoint> points, bool is_return,
                                    bool with_multi, int process = kEveryProcess);

 private:
  UniqueFd multi_link_;
  std::vector<BpfLink> links_;
};

}  // namespace xpu
