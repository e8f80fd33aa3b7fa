#include "report/ranks/collectives.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "format/base/saturated.h"
#include "report/ranks/call_order.h"

namespace xpu {
namespace {

// Sets what the parts say together. Of operations that are not mutual some ranks leave before
// others enter, for which they did not wait then.
void Measure(Collective& collective) {
  std::vector<CollectivePart>& parts = collective.parts;
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const CollectivePart& a, const CollectivePart& b) { return a.member() < b.member(); });
  std::vector<size_t> order;  // of arrival
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].has_times()) continue;
    order.push_back(i);
    collective.end_ns = std::max(collective.end_ns, parts[i].end_ns);
  }
  collective.ranks =
      std::max<uint32_t>(collective.ranks, static_cast<uint32_t>(collective.parts.size()));
  collective.arrived = order.size();
  if (order.empty()) return;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return parts[a].arrived_ns < parts[b].arrived_ns; });
  size_t awaited = order.size() - 1;
  collective.last = order.back();
  if (!IsMutual(collective.operation)) {
    uint64_t ended_ns = 0;  // by those that arrived before
    std::vector<uint64_t> ended;
    for (const size_t i : order) {
      ended.push_back(ended_ns);
      ended_ns = std::max(ended_ns, parts[i].end_ns);
    }
    while (awaited > 0 && ended[awaited] <= parts[order[awaited]].arrived_ns) --awaited;
  }
  collective.awaited = order[awaited];
  collective.first_arrival_ns = parts[order.front()].arrived_ns;
  collective.last_arrival_ns = parts[order.back()].arrived_ns;
  collective.awaited_arrival_ns = parts[order[awaited]].arrived_ns;
  collective.before_awaited_ns = parts[order[awaited == 0 ? 0 : awaited - 1]].arrived_ns;
  // Clocks of hosts that are off may have the last one arrive after the end.
  collective.end_ns = std::max(collective.end_ns, collective.last_arrival_ns);
  for (CollectivePart& part : parts) {
    const uint64_t until_ns = std::min(collective.awaited_arrival_ns, part.end_ns);
    part.waited_ns = until_ns - std::min(until_ns, part.arrived_ns);
  }
}

// A kernel of several collectives waited for the last rank of one of them, in which it counts.
void CountWaitsOnce(std::vector<Collective>& all) {
  std::unordered_map<uint32_t, CollectivePart*> longest;  // by kernel
  for (Collective& collective : all) {
    for (CollectivePart& part : collective.parts) {
      if (!part.is_grouped || part.waited_ns == 0) continue;
      CollectivePart*& kept = longest.try_emplace(part.work, nullptr).first->second;
      if (kept == nullptr || part.waited_ns > kept->waited_ns) {
        if (kept != nullptr) kept->waited_ns = 0;
        kept = &part;
      } else {
        part.waited_ns = 0;
      }
    }
  }
}

class Matcher {
 public:
  Matcher(const RankCalls& calls, const std::vector<uint32_t>& host_of,
          const std::vector<HostClock>& clocks)
      : calls_(calls), host_of_(host_of), clocks_(clocks) {}

  Collectives Match() {
    // The calls of each rank, by communicator.
    std::map<uint64_t, Lists> by_nvtx;
    std::map<std::tuple<uint64_t, uint32_t, uint32_t>, Lists> pairs;  // by sender and receiver
    std::map<std::pair<Member, uint64_t>, CallList> by_order;         // by stream
    for (uint32_t i = 0; i < calls_.calls.size(); ++i) {
      const RankCall& call = calls_.calls[i];
      const std::string& operation = calls_.kinds[call.kind].operation;
      if (call.match == CollectiveMatch::kByOrder) {
        by_order[{call.part.member(), call.communicator}].push_back(i);
      } else if (operation == "Send" || operation == "Recv") {
        AddPair(i, operation == "Send", pairs);
      } else {
        by_nvtx[call.communicator][call.part.member()].push_back(i);
      }
    }
    for (const auto& [communicator, lists] : by_nvtx) MatchCommunicator(communicator, lists);
    for (const auto& [ends, lists] : pairs) MatchPair(std::get<0>(ends), lists);
    MatchStreams(by_order);
    for (Collective& collective : found_.all) Measure(collective);
    CountWaitsOnce(found_.all);
    std::stable_sort(found_.all.begin(), found_.all.end(),
                     [](const Collective& a, const Collective& b) {
                       if ((a.arrived == 0) != (b.arrived == 0)) return b.arrived == 0;
                       return a.first_arrival_ns < b.first_arrival_ns;
                     });
    found_.unmatched_kernels += calls_.unmatched_kernels;
    found_.hidden = calls_.hidden;
    std::map<uint32_t, uint32_t> gpus;
    for (const RankCall& call : calls_.calls) {
      if (!call.part.has_times()) continue;
      const auto [gpu, is_new] = gpus.try_emplace(call.part.rank, call.part.gpu);
      if (gpu->second != call.part.gpu) found_.several.insert(call.part.rank);
    }
    return std::move(found_);
  }

 private:
  using Member = CollectivePart::Member;
  using Lists = std::map<Member, CallList>;

  uint32_t HostOf(const Member& member) const { return host_of_[member.first]; }

  CallOrder::ClockError ErrorOf(const Member& member, const Member& first) const {
    const uint32_t host = HostOf(member);
    if (host == HostOf(first) || host >= clocks_.size()) return {};
    // The clock of the first host is the one of the report.
    const auto is_known = [&](uint32_t of) { return of == 0 || clocks_[of].collectives != 0; };
    return {std::max<uint64_t>({clocks_[host].residual_ns, clocks_[HostOf(first)].residual_ns, 1}),
            is_known(host) && is_known(HostOf(first))};
  }

  // The ranks with the most calls first, then those of their host, whose clock is the same.
  std::vector<const Lists::value_type*> InOrderOfAdding(const Lists& lists) const {
    std::vector<const Lists::value_type*> order;
    for (const auto& list : lists) order.push_back(&list);
    if (order.empty()) return order;
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return a->second.size() > b->second.size();
    });
    const uint32_t host = HostOf(order.front()->first);
    std::stable_partition(order.begin(), order.end(),
                          [&](const auto* list) { return HostOf(list->first) == host; });
    return order;
  }

  void MatchCommunicator(uint64_t communicator, const Lists& lists) {
    CallOrder order(calls_);
    const auto lists_in_order = InOrderOfAdding(lists);
    const bool is_numbered = std::all_of(lists.begin(), lists.end(), [&](const auto& list) {
      return calls_.created.contains({communicator, list.first.first});
    });
    for (const auto* list : lists_in_order) {
      const CallOrder::ClockError error = ErrorOf(list->first, lists_in_order.front()->first);
      if (!order.Add(list->second, error, is_numbered)) Reject(list->second);
    }
    const auto known = calls_.sizes.find(communicator);
    Take(order, communicator, known == calls_.sizes.end() ? 0 : known->second);
  }

  // Adds a message to those of its sender and receiver, by their places in the communicator.
  void AddPair(uint32_t i, bool sends,
               std::map<std::tuple<uint64_t, uint32_t, uint32_t>, Lists>& pairs) {
    const RankCall& call = calls_.calls[i];
    const auto place = calls_.places.find({call.communicator, call.part.rank});
    if (place == calls_.places.end() || call.peer == CollectivePart::kNone) return Reject({i});
    uint32_t from = place->second;
    uint32_t to = call.peer;
    if (!sends) std::swap(from, to);
    pairs[{call.communicator, from, to}][call.part.member()].push_back(i);
  }

  // The n-th message that one sends is the n-th that the other receives, which cannot end before
  // it is sent. A rank that sends to itself needs no match.
  void MatchPair(uint64_t communicator, const Lists& lists) {
    if (lists.size() != 2) {
      for (const auto& [member, list] : lists) Reject(list);
      return;
    }
    const CallList& one = lists.begin()->second;
    const CallList& other = std::next(lists.begin())->second;
    const bool one_sends = calls_.kinds[calls_.calls[one.front()].kind].operation == "Send";
    const CallList& sent = one_sends ? one : other;
    const CallList& received = one_sends ? other : one;
    for (size_t i = 0; i < std::min(sent.size(), received.size()); ++i) {
      const CollectivePart& from = calls_.calls[sent[i]].part;
      const CollectivePart& to = calls_.calls[received[i]].part;
      const bool is_possible = !from.has_times() || !to.has_times() ||
                               HostOf(from.member()) != HostOf(to.member()) ||
                               from.arrived_ns <= AddSaturated(to.end_ns, kClockToleranceNs);
      if (is_possible) continue;
      Reject(one);
      return Reject(other);
    }
    for (size_t i = 0; i < std::max(sent.size(), received.size()); ++i) {
      Collective& collective = found_.all.emplace_back();
      collective.communicator = communicator;
      collective.sequence = i;
      for (const CallList* list : {&sent, &received}) {
        if (i < list->size()) Put((*list)[i], collective);
      }
      collective.operation = "SendRecv";
      collective.ranks = 2;
      collective.agrees = i >= std::min(sent.size(), received.size()) ||
                          calls_.kinds[calls_.calls[sent[i]].kind].bytes ==
                              calls_.kinds[calls_.calls[received[i]].kind].bytes;
    }
  }

  // Streams of different ranks are of one communicator if their kernels match; of several, the one
  // where most do.
  void MatchStreams(const std::map<std::pair<Member, uint64_t>, CallList>& streams) {
    struct Communicator {
      CallOrder order;
      Member first;
      std::set<Member> members = {};
      std::set<uint32_t> kinds = {};
    };
    constexpr size_t kMostTried = 512;  // so that hostile captures end
    std::vector<const CallList*> lists;
    for (const auto& [stream, list] : streams) lists.push_back(&list);
    std::stable_sort(lists.begin(), lists.end(),
                     [](const CallList* a, const CallList* b) { return a->size() > b->size(); });
    std::vector<Communicator> communicators;
    std::set<Member> all_members;
    for (const CallList* list : lists) {
      const Member member = calls_.calls[list->front()].part.member();
      all_members.insert(member);
      Communicator* best = nullptr;
      size_t most = 0;
      std::set<uint32_t> kinds;
      for (const uint32_t call : *list) kinds.insert(calls_.calls[call].kind);
      size_t tried = 0;
      for (Communicator& one : communicators) {
        const bool shares_kinds = std::any_of(
            kinds.begin(), kinds.end(), [&](uint32_t kind) { return one.kinds.contains(kind); });
        if (one.members.contains(member) || !shares_kinds) continue;
        if (++tried > kMostTried) break;
        const size_t matches = one.order.CountMatches(*list, ErrorOf(member, one.first));
        if (matches <= most) continue;
        most = matches;
        best = &one;
      }
      if (best == nullptr) {
        best = &communicators.emplace_back(Communicator{CallOrder(calls_), member});
      }
      best->order.Add(*list, ErrorOf(member, best->first), false);
      best->members.insert(member);
      best->kinds.insert(kinds.begin(), kinds.end());
    }
    uint64_t number = 0;
    for (const Communicator& one : communicators) {
      // Alone among others: what it is a part of is not known, or it is something else.
      if (one.members.size() == 1 && all_members.size() > 1) {
        for (const CallOrder::Slot& slot : one.order.slots()) Reject(slot.calls);
      } else {
        Take(one.order, ++number, static_cast<uint32_t>(one.members.size()));
      }
    }
  }

  void Reject(const CallList& list) {
    std::set<uint32_t> kernels;
    for (const uint32_t call : list) {
      // Kernels of other libraries are collectives only if they match.
      const RankCall& of = calls_.calls[call];
      if (of.part.work == CollectivePart::kNone) continue;
      const std::string_view kernel = calls_.kinds[of.kind].kernel;
      if (kernel.empty() || IsNcclKernel(kernel)) kernels.insert(of.part.work);
    }
    found_.unmatched_kernels += kernels.size();
  }

  void Take(const CallOrder& order, uint64_t communicator, uint32_t ranks) {
    uint64_t sequence = 0;
    for (const CallOrder::Slot& slot : order.slots()) {
      Collective& collective = found_.all.emplace_back();
      collective.communicator = communicator;
      collective.sequence = sequence++;
      collective.ranks = ranks;
      for (const uint32_t call : slot.calls) Put(call, collective);
    }
  }

  void Put(uint32_t i, Collective& collective) const {
    const RankCall& call = calls_.calls[i];
    const CallKind& kind = calls_.kinds[call.kind];
    if (collective.parts.empty()) {
      collective.match = call.match;
      collective.operation = kind.operation;
      collective.reduction = kind.reduction;
      collective.bytes = kind.bytes;
    } else if (collective.operation != kind.operation || collective.bytes != kind.bytes) {
      collective.agrees = false;
    }
    collective.parts.push_back(call.part);
  }

  const RankCalls& calls_;
  const std::vector<uint32_t>& host_of_;
  const std::vector<HostClock>& clocks_;
  Collectives found_;
};

}  // namespace

bool MayHaveCollectives(const Model& model) {
  std::unordered_set<StringId> seen;
  for (const Kernel& common : model.events.kernels.templates()) {
    if (!seen.insert(common.name).second) continue;
    const std::string_view name = model.Text(common.name);
    if (IsNcclKernel(name) || MayBeCollective(name)) return true;
  }
  return false;
}

Collectives MatchCalls(const RankCalls& calls, const std::vector<uint32_t>& host_of,
                       const std::vector<HostClock>& clocks) {
  return Matcher(calls, host_of, clocks).Match();
}

Collectives FindCollectives(const Trace& trace) {
  std::vector<uint32_t> host_of;
  for (const JobRank& rank : trace.job.ranks()) host_of.push_back(rank.host);
  return MatchCalls(FindRankCalls(trace), host_of, trace.model.host_clocks);
}

const Collectives& CollectivesOf(const Analysis& analysis) {
  return analysis.memo.Get<Collectives>("", [&] {
    return MayHaveCollectives(analysis.model) ? FindCollectives(analysis.trace()) : Collectives{};
  });
}

std::shared_ptr<const Collectives> ShownCollectives(const Analysis& analysis) {
  const Collectives& all = CollectivesOf(analysis);
  if (analysis.shown.filter_text.empty()) return {std::shared_ptr<const void>(), &all};
  const auto found = std::make_shared<Collectives>(all);
  std::erase_if(found->all, [&](const Collective& collective) {
    return std::none_of(collective.parts.begin(), collective.parts.end(),
                        [&](const CollectivePart& part) { return IsShown(analysis, part); });
  });
  return found;
}

bool IsShown(const Analysis& analysis, const CollectivePart& part) {
  if (part.work != CollectivePart::kNone) return analysis.shown.work.Has(part.work);
  return part.range != CollectivePart::kNone && analysis.shown.nvtx_ranges.Has(part.range);
}

}  // namespace xpu
