// The tracks of a trace: threads under one name, with the rank, host and container of their
// process. All events of one track have the same owner, so filters and groups choose among some
// hundred tracks instead of among millions of events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "report/base/flat_map.h"
#include "report/model/process_history.h"
#include "report/trace/containers.h"
#include "report/trace/job.h"

namespace xpu {

// A thread as long as its name and its container are the same.
struct Track {
  ProcessId process;             // none: no record names the pid
  uint32_t pid = 0;              // as the recorder sees it, 0: not known
  uint32_t tid = 0;              // likewise
  StringId name;                 // of the thread (comm); of its process when it has none
  uint32_t host = 0;             // in Job::hosts()
  std::optional<uint32_t> rank;  // Job::NumberOf
  const ContainerInfo* container = nullptr;  // nullptr: it is in none
};

// A value for each track, made when it is asked for first.
template <typename Value>
class PerTrack {
 public:
  Value& operator[](TrackId track) {
    if (track.value >= values_.size()) values_.resize(track.value + 1);
    return values_[track.value];
  }

 private:
  std::vector<Value> values_;
};

// Not for several threads at once: it makes tracks when they are asked for.
class Tracks {
 public:
  // All must outlive this.
  Tracks(const Model& model, const ProcessHistory& processes, const Job& job,
         const Containers& containers);

  // The track of what a thread does at `time_ns`.
  TrackId At(uint32_t pid, uint32_t tid, uint64_t time_ns) const;
  // The owner of what a thread does at `time_ns`.
  Owner OwnerAt(uint32_t pid, uint32_t tid, uint64_t time_ns) const {
    const TrackId track = At(pid, tid, time_ns);
    return {(*this)[track].process, pid, tid, time_ns, track};
  }

  // For no track, returns one of which nothing is known.
  const Track& operator[](TrackId track) const { return all_[track.value]; }
  // Places of tracks are below it.
  size_t size() const { return all_.size(); }
  // "" when none is known.
  std::string_view NameOf(const Owner& owner) const {
    return model_.Text((*this)[owner.track].name);
  }

 private:
  using AnswerId = Id<struct AnswerTag, uint32_t>;
  InTime<TrackId> Find(uint32_t pid, uint32_t tid, uint64_t time_ns) const;

  const Model& model_;
  const ProcessHistory& processes_;
  const Job& job_;
  const Containers& containers_;
  mutable std::deque<Track> all_;  // by id; references stay valid as it grows
  mutable std::map<std::tuple<ProcessId, uint32_t, uint32_t, StringId, const ContainerInfo*>,
                   TrackId>
      ids_;
  // The last answer for each pid and tid: events of different threads take turns.
  mutable FlatMap<AnswerId> answer_ids_;
  mutable std::vector<InTime<TrackId>> answers_;  // by id - 1
};

}  // namespace xpu
