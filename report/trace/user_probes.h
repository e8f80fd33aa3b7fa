// Probes that the user asked for, and how often and for how long.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/model/model.h"
#include "report/trace/selection.h"

namespace xpu {

class UserProbes {
 public:
  // `model` must outlive this.
  explicit UserProbes(const Model& model);

  // nullptr: not of a probe that the user asked for.
  const Probe* Of(const ProbeHit& hit) const;
  // "malloc+0x10", of a return "malloc%return"
  std::string NameOf(const Probe& probe) const;
  // "libc.so.6:malloc", "sched:sched_switch"
  std::string PlaceOf(const Probe& probe) const;
  // "uprobe libc.so.6:malloc", "tracepoint sched:sched_switch"
  std::string TitleOf(const Probe& probe) const;

 private:
  const Model& model_;
  std::unordered_map<uint32_t, const Probe*> probes_;
};

bool IsReturn(const Probe& probe);

struct ProbeTimes {
  std::string name;  // UserProbes::TitleOf
  uint64_t hits = 0;
  // How long calls took, at a return probe whose entries another probe saw.
  uint64_t calls = 0;
  uint64_t total_ns = 0;
  uint64_t smallest_ns = 0;
  uint64_t largest_ns = 0;
};

// Most hits first. Every probe that was placed is there, also one that was never hit.
std::vector<ProbeTimes> FindProbeTimes(const Model& model, const Selection& shown);

}  // namespace xpu
