// Chooses the process that is attached to next. The choice is fair: a user with many processes that
// cannot be attached to, or not for a long time, holds up nobody else.
//
// A process has a turn at once, and further ones when it is ready for them. A user may have as many
// turns at once as remain free for others, and so may each cgroup of the user's share; among those
// that may, the one goes first that has the fewest, then the one that waits for longest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

#include "record/attach/attach.h"

namespace xpu {

struct AttachJob {
  AttachTarget target;
  std::unique_ptr<Attaching> attaching;  // from its first turn on
};

// One thread uses it at a time.
class AttachTurns {
  struct Share {
    size_t at_work = 0;
    uint64_t last_served = 0;  // the turn's number
    bool operator<(const Share& other) const {
      return at_work != other.at_work ? at_work < other.at_work : last_served < other.last_served;
    }
  };
  struct Cgroup : Share {
    std::multimap<uint64_t, AttachJob> waiting;  // by when it is to go on; 0: it had no turn yet
  };
  struct User : Share {
    std::map<std::string, Cgroup> cgroups;
  };

 public:
  static constexpr size_t kMost = 32;  // turns at once

  struct Turn {
    AttachJob job;
    User* user;
    Cgroup* cgroup;
  };

  void Add(uint32_t user, const std::string& cgroup, AttachJob job) {
    users_[user].cgroups[cgroup].waiting.emplace(0, std::move(job));
  }
  // nullopt: none may have one before *next_ns.
  std::optional<Turn> Begin(uint64_t now_ns, uint64_t* next_ns);
  // Its job waits for another one if it has an attach under way.
  void End(Turn turn);

 private:
  std::map<uint32_t, User> users_;  // entries stay: there are few
  size_t at_work_ = 0;
  uint64_t turns_ = 0;
};

}  // namespace xpu
