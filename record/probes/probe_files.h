// The files whose launch functions are probed, each once, however many processes map it.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "format/base/result.h"
#include "record/kernel/probe_links.h"
#include "record/probes/probe_functions.h"

namespace xpu {

// A probed function.
struct ProbedFunction {
  uint32_t probe = 0;  // Probe::probe
  const LaunchFunction* function = nullptr;
  uint64_t file_offset = 0;
  std::string path;
};

class ProbeFiles {
 public:
  struct Programs {
    const bpf_program* at_entry = nullptr;
    const bpf_program* at_return = nullptr;
  };

  // Numbers the probes from `first_probe` on.
  ProbeFiles(Programs programs, uint32_t first_probe)
      : programs_(programs), next_probe_(first_probe) {}

  // Probes the file at `path`, as this process sees it, unless it is known. `name`: its name in the
  // program and in the capture.
  Status Add(const std::string& path, const std::string& name);

  // True if Add has been called for the file.
  bool Knows(const std::string& path) const;
  void Forget(const std::string& path);

  // Ordered by number.
  const std::vector<ProbedFunction>& probes() const { return probes_; }
  // The functions that the kernel refused to probe, and why.
  std::vector<std::string> TakeRefusals() { return std::exchange(refusals_, {}); }

  void RemoveAll();

 private:
  using FileId = std::pair<dev_t, ino_t>;

  // Numbers all functions, whether or not they can be probed.
  std::vector<ProbedFunction> Number(const ElfImage& image, const std::string& name);
  // Attaches all of the probes or none.
  Status Attach(const std::string& path, std::span<const ProbedFunction> probes);

  Programs programs_;
  uint32_t next_probe_;
  std::set<FileId> known_;
  std::vector<ProbedFunction> probes_;
  std::vector<std::string> refusals_;
  std::vector<AttachedProbes> at_return_;
  std::vector<AttachedProbes> at_entry_;
};

}  // namespace xpu
