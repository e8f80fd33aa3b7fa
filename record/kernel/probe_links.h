// Probes at functions of one file, in every process that maps it.
//
// Linux 6.6 and newer place all of a file by one link and remove them together, in 20 ms or so;
// before that it is one link per probe, and removing each takes 0.1 s. The one link asks for
// CAP_BPF and CAP_PERFMON, the others for CAP_SYS_ADMIN.
//
// A probe at returns replaces the return address while the function runs. A C++ exception that
// comes to it ends the program, and whoever walks the stack there walks no further. Linux 6.13 and
// newer ask at each entry whether to (a session); before that it is done to every process.
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

// How a program is placed is settled before it is loaded: by one link for all of a file where the
// kernel has that, which is the result.
bool PlaceAtOnce(std::initializer_list<bpf_program*> programs);

// The program runs at the entry too, where its result 1 leaves the return alone. False: the kernel
// does not have that.
bool PlaceAsSession(bpf_program* program);

struct ProbePoint {
  uint64_t file_offset = 0;
  uint64_t cookie = 0;  // what bpf_get_attach_cookie gives
};

// The probes of one file with one program; removed with it.
class PlacedProbes {
 public:
  // `is_return`: not when the functions are entered but when they return; also of a session.
  // `path` is opened here and not kept.
  static Result<PlacedProbes> Place(const bpf_program* program, const std::string& path,
                                    std::span<const ProbePoint> points, bool is_return,
                                    int process = kEveryProcess);

 private:
  UniqueFd multi_link_;
  std::vector<BpfLink> links_;
};

}  // namespace xpu
