#include "report/trace/tracks.h"

#include <algorithm>

namespace xpu {

Tracks::Tracks(const Model& model, const ProcessHistory& processes, const Job& job,
               const Containers& containers)
    : model_(model), processes_(processes), job_(job), containers_(containers), all_(1) {
  all_[0].host = job.HostOf(0);
  all_[0].rank = job.NumberOf({}, 0);
}

TrackId Tracks::At(uint32_t pid, uint32_t tid, uint64_t time_ns) const {
  AnswerId& id = answer_ids_[uint64_t{pid} << 32 | tid];
  if (!id) {
    answers_.push_back({.until_ns = 0});
    id = AnswerId{static_cast<uint32_t>(answers_.size())};
  }
  InTime<TrackId>& answer = answers_[id.value - 1];
  if (!answer.Holds(time_ns)) answer = Find(pid, tid, time_ns);
  return answer.value;
}

InTime<TrackId> Tracks::Find(uint32_t pid, uint32_t tid, uint64_t time_ns) const {
  const auto process = processes_.FindProcess(pid, time_ns);
  const auto name = processes_.FindName(process.value, tid, time_ns);
  const auto container = containers_.Find(process.value, time_ns);
  const auto [known, is_new] =
      ids_.try_emplace({process.value, pid, tid, name.value, container.value},
                       TrackId{static_cast<uint32_t>(all_.size())});
  if (is_new) {
    all_.push_back({.process = process.value,
                    .pid = pid,
                    .tid = tid,
                    .name = name.value,
                    .host = job_.HostOf(pid),
                    .rank = job_.NumberOf(process.value, pid),
                    .container = container.value});
  }
  return {.value = known->second,
          .from_ns = std::max({process.from_ns, name.from_ns, container.from_ns}),
          .until_ns = std::min({process.until_ns, name.until_ns, container.until_ns})};
}

}  // namespace xpu
