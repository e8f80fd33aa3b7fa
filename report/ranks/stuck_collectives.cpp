#include "report/ranks/stuck_collectives.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "format/base/text.h"
#include "report/analysis/call_paths.h"
#include "report/model/recorded_time.h"
#include "report/output/text.h"
#include "report/query/last_place.h"
#include "report/query/readable_paths.h"
#include "report/query/unfinished_work.h"

namespace xpu {
namespace {

constexpr size_t kMostRanks = 4;

// "Rank 3", "Ranks 1, 2 and 5 more".
std::string RanksText(const Job& job, const std::vector<uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kMostRanks); ++i) {
    AppendFormat(text, "{}{}", i == 0 ? "" : ", ", job.ranks()[ranks[i]].number);
  }
  if (ranks.size() > kMostRanks) AppendFormat(text, " and {} more", ranks.size() - kMostRanks);
  return text;
}

class StuckText {
 public:
  explicit StuckText(Analysis& analysis)
      : analysis_(analysis), paths_(analysis, {}), readable_(analysis, paths_.tree()) {}

  std::string Of(const StuckCollective& stuck, const Collective& collective, uint64_t until_ns) {
    const Job& job = analysis_.job;
    std::string ranks = RanksText(job, stuck.waiting);
    ranks.front() = 'R';
    std::string text = Format("{} waited in {} #{} of communicator {:#x} for {}", ranks,
                              collective.operation, collective.sequence, collective.communicator,
                              HumanDuration(until_ns - std::min(until_ns, stuck.called_ns)));
    for (const CollectivePart& part : collective.parts) {
      if (part.rank != stuck.waiting.front()) continue;
      AppendFormat(text, ", in {}", PlaceOf(part.rank, ThreadOf(part)));
    }
    if (stuck.absent.empty()) {
      const uint64_t others =
          collective.ranks - std::min<uint64_t>(collective.ranks, collective.parts.size());
      return others == 0 ? text + "; all of its ranks have called it."
                         : Format("{}; {} of its ranks {} not in this capture.", text, others,
                                  others == 1 ? "is" : "are");
    }
    AppendFormat(text, "; {} {} not called it:", RanksText(job, stuck.absent),
                 stuck.absent.size() == 1 ? "has" : "have");
    for (size_t i = 0; i < std::min(stuck.absent.size(), kMostRanks); ++i) {
      const uint32_t rank = stuck.absent[i];
      AppendFormat(text, "{} rank {} was in {}", i == 0 ? "" : ",", job.ranks()[rank].number,
                   PlaceOf(rank, 0));
    }
    return text + ".";
  }

 private:
  // `tid` 0: the main thread.
  std::string PlaceOf(uint32_t rank, uint32_t tid) {
    const uint32_t pid = analysis_.job.ranks()[rank].pid;
    return LastPlaceOf(analysis_, paths_, readable_, pid, tid == 0 ? pid : tid);
  }
  // Returns the thread that called it, as the recorder sees it; 0: not known.
  uint32_t ThreadOf(const CollectivePart& part) const {
    if (part.range == CollectivePart::kNone) return 0;
    return analysis_.nvtx.all()[part.range].event->tid;
  }

  Analysis& analysis_;
  CallPaths paths_;
  ReadablePaths readable_;
};

}  // namespace

std::vector<StuckCollective> FindStuckCollectives(const Collectives& collectives) {
  struct Communicator {
    std::set<uint32_t> ranks = {};
    std::map<uint64_t, size_t> by_sequence = {};
  };
  std::map<uint64_t, Communicator> communicators;
  for (size_t i = 0; i < collectives.all.size(); ++i) {
    const Collective& collective = collectives.all[i];
    if (collective.match != CollectiveMatch::kByNvtx) continue;
    Communicator& of = communicators[collective.communicator];
    of.by_sequence[collective.sequence] = i;
    for (const CollectivePart& part : collective.parts) of.ranks.insert(part.rank);
  }
  std::vector<StuckCollective> all;
  for (const auto& [hash, communicator] : communicators) {
    // The newest first: what none of the ranks has left, until one that all have.
    std::optional<StuckCollective> stuck;
    for (auto at = communicator.by_sequence.rbegin(); at != communicator.by_sequence.rend(); ++at) {
      const Collective& collective = collectives.all[at->second];
      if (collective.arrived > 0) break;
      StuckCollective found{.collective = at->second};
      std::set<uint32_t> absent = communicator.ranks;
      for (const CollectivePart& part : collective.parts) {
        absent.erase(part.rank);
        found.waiting.push_back(part.rank);
        if (found.called_ns == 0 || part.called_ns < found.called_ns) {
          found.called_ns = part.called_ns;
        }
      }
      found.absent.assign(absent.begin(), absent.end());
      stuck = std::move(found);
    }
    if (stuck) all.push_back(*std::move(stuck));
  }
  std::stable_sort(all.begin(), all.end(), [](const StuckCollective& a, const StuckCollective& b) {
    return a.called_ns < b.called_ns;
  });
  return all;
}

std::string StuckCollectivesText(Analysis& analysis) {
  if (!MayHaveCollectives(analysis.model)) return "";
  const Collectives collectives = FindCollectives(analysis.trace());
  const std::vector<StuckCollective> all = FindStuckCollectives(collectives);
  if (all.empty()) return "";
  const uint64_t until_ns = EndOf(analysis.model);
  const StuckCollective& first = all.front();
  if (first.called_ns + kDeliveredAfterNs > until_ns) return "";
  return StuckText(analysis).Of(first, collectives.all[first.collective], until_ns);
}

}  // namespace xpu
