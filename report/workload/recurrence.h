// Finds what a thread launches again and again: where each repetition of a loop begins.
//
// A launch is known by its site, its call path. A site that a loop passes once cuts the sequence
// into windows; where these have the same launches, in whatever order, it is the loop that is
// looked for. Of loops in one another the outer one counts if the inner one does no more than a
// layer of a model does: it neither moves data between CPU and GPU nor waits, and it lies in
// another function. Looking for the shortest period instead was rejected: it finds layers, and it
// loses its place at the first launch too many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace xpu {

// A site's callers, outermost first. Callers that are the same have the same number.
struct SitePath {
  std::vector<uint32_t> callers;
  std::vector<uint64_t> places;  // of the call in each of them: what comes later is larger
};

struct SiteVisit {
  uint32_t site = 0;  // in a list of paths
  uint64_t time_ns = 0;
  bool moves_data = false;  // between CPU and GPU, or it waits for the GPU
};

struct Recurrence {
  struct Round {
    size_t begin = 0;         // in the sequence
    size_t end = 0;           // after its last launch
    bool is_regular = false;  // it launches what most do
  };
  std::vector<Round> rounds;
  size_t launches = 0;  // of a regular one
  size_t regular = 0;
  // The code says where the loop begins; else its first launches of all do.
  bool begins_by_code = false;
};

// `visits` in order of time. `first`: rounds begin with this site. None: nothing recurs.
std::optional<Recurrence> FindRecurrence(std::span<const SiteVisit> visits,
                                         std::span<const SitePath> paths,
                                         std::optional<uint32_t> first = {});

}  // namespace xpu
