// The BPF maps with which the programs walk Python frames (bpf/python_layout.h), shared by
// all of them.
#pragma once

#include <cstdint>

#include "bpf/python_layout.h"
#include "format/base/handle.h"
#include "format/base/result.h"

struct bpf_object;

namespace xpu {

class PythonMaps {
 public:
  static Result<PythonMaps> Create();

  // Between a program's open and its load: its maps are these.
  Status ShareWith(bpf_object* object) const;
  // Instead: the program does not walk Python and needs none.
  static Status Shrink(bpf_object* object);

  // Errors: too many processes.
  Status SetProcess(uint32_t pid, const xpu_python_process& process);
  void Forget(uint32_t pid);
  int codes_fd() const { return codes_.get(); }

 private:
  PythonMaps() = default;

  UniqueFd processes_;
  UniqueFd threads_;
  UniqueFd sent_;
  UniqueFd codes_;
};

}  // namespace xpu
