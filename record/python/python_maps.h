// The BPF maps with which all programs walk Python frames (bpf/python_layout.h).
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

  // Called between a program's open and load: makes it use these maps.
  Status ShareWith(bpf_object* object) const;
  // Called instead if the program does not walk Python.
  static Status Shrink(bpf_object* object);

  // Fails if there are too many processes.
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
