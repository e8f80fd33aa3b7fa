// The files whose launch functions are probed, each once however many processes map it.
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
struct PlacedProbe {
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

  // Its probes are numbered from `first_probe` on.
  ProbeFiles(Programs programs, uint32_t first_probe)
      : programs_(programs), next_probe_(first_probe) {}

  // Probes the file that is at `path` for this process, unless it is known. `name`: what the
  // program and the capture call it.
  Status Add(const std::string& path, const std::string& name);

  // Whether Add has seen the file.
  bool Knows(const std::string& path) const;
  void Forget(const std::string& path);

  // In the order of their numbers.
  const std::vector<PlacedProbe>& probes() const { return probes_; }
  // Places whose probe the kernel refused, and why.
  std::vector<std::string> TakeRefusals() { return std::exchange(refusals_, {}); }

  void RemoveAll();

 private:
  using FileId = std::pair<dev_t, ino_t>;

  // A number each, whether or not it can be placed.
  std::vector<PlacedProbe> Number(const ElfImage& image, const std::string& name);
  // All of them or none.
  Status Place(const std::string& path, std::span<const PlacedProbe> probes);

  Programs programs_;
  uint32_t next_probe_;
  std::set<FileId> known_;
  std::vector<PlacedProbe> probes_;
  std::vector<std::string> refusals_;
  std::vector<PlacedProbes> at_return_;
  std::vector<PlacedProbes> at_entry_;
};

}  // namespace xpu
