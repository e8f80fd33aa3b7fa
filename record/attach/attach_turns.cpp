#include "record/attach/attach_turns.h"

#include <algorithm>
#include <utility>

namespace xpu {

std::optional<AttachTurns::Turn> AttachTurns::Begin(uint64_t now_ns, uint64_t* next_ns) {
  User* user = nullptr;
  Cgroup* cgroup = nullptr;
  *next_ns = UINT64_MAX;
  for (auto& [number, of_user] : users_) {
    for (auto& [name, of_cgroup] : of_user.cgroups) {
      if (of_cgroup.waiting.empty()) continue;
      const uint64_t due_ns = of_cgroup.waiting.begin()->first;
      if (due_ns > now_ns) {
        *next_ns = std::min(*next_ns, due_ns);
        continue;
      }
      // Whoever ends a turn looks again.
      if (of_user.at_work >= kMost - at_work_ || of_cgroup.at_work >= kMost / 2 - of_user.at_work) {
        continue;
      }
      const bool is_better =
          user == nullptr || of_user < *user || (user == &of_user && of_cgroup < *cgroup);
      if (!is_better) continue;
      user = &of_user;
      cgroup = &of_cgroup;
    }
  }
  if (user == nullptr) return std::nullopt;
  user->last_served = cgroup->last_served = ++turns_;
  for (size_t* count : {&at_work_, &user->at_work, &cgroup->at_work}) ++*count;
  return Turn{std::move(cgroup->waiting.extract(cgroup->waiting.begin()).mapped()), user, cgroup};
}

void AttachTurns::End(Turn turn) {
  for (size_t* count : {&at_work_, &turn.user->at_work, &turn.cgroup->at_work}) --*count;
  if (turn.job.attaching) {
    const uint64_t due_ns = turn.job.attaching->due_ns();
    turn.cgroup->waiting.emplace(due_ns, std::move(turn.job));
  }
  std::erase_if(turn.user->cgroups, [](const auto& entry) {
    return entry.second.waiting.empty() && entry.second.at_work == 0;
  });
}

}  // namespace xpu
