#include "report/views/timeline/trace_tracks.h"

#include <algorithm>

#include "format/base/text.h"
#include "report/trace/correlation.h"

namespace xpu {
namespace {

// The order in which viewers show tracks. GPUs come before all processes; within a process each
// thread's calls come before its NVTX ranges, then its states and samples, overheads last; within a
// GPU the streams of each process by number, the lanes of a stream side by side.
constexpr uint64_t kProcessSortBase = uint64_t{1} << 20;
constexpr uint64_t kRowsOfThread = 512;
constexpr uint64_t kRangesRow = kRowsOfThread / 2;
constexpr uint64_t kStatesRow = kRowsOfThread - 2;
constexpr uint64_t kSamplesRow = kRowsOfThread - 1;
constexpr uint64_t kRankSortBase = uint64_t{1} << 40;
constexpr uint64_t kOverheadsSort = uint64_t{1} << 32;
constexpr uint64_t kLanesOfStream = 256;
constexpr uint64_t kStreamsOfProcess = uint64_t{1} << 20;

// Not the number of a stream, which has 32 bits. What makes a stream wait holds up no thread: it is
// not among the synchronizations.
constexpr uint64_t kSynchronizations = uint64_t{1} << 32;
constexpr uint64_t kStreamWaits = kSynchronizations + 1;

}  // namespace

size_t TraceLanes::Place(uint64_t start_ns, uint64_t end_ns) {
  for (; !busy_.empty() && busy_.top().first <= start_ns; busy_.pop()) {
    free_.push(busy_.top().second);
  }
  size_t lane = busy_.size();  // a new one: none is free
  if (!free_.empty()) {
    lane = free_.top();
    free_.pop();
  }
  busy_.emplace(end_ns, lane);
  return lane;
}

bool NestingLane::Place(uint64_t start_ns, uint64_t end_ns) {
  while (!ends_.empty() && ends_.back() <= start_ns) ends_.pop_back();
  if (!ends_.empty() && ends_.back() < end_ns) return false;
  ends_.push_back(end_ns);
  return true;
}

TraceTracks::TraceTracks(const Analysis& analysis, TraceSink& sink)
    : analysis_(analysis), sink_(sink) {
  for (const GpuWork& work : analysis.Work()) {
    if (!work.timed) continue;
    users_[work.gpu].insert(work.instance);
  }
}

std::string TraceTracks::ProcessTitle(ProcessId process) const {
  if (!process) return "unknown process";
  const std::string_view name = analysis_.processes.Name(process);
  return name.empty() ? Format("pid {}", analysis_.processes[process].pid) : std::string(name);
}

std::string TraceTracks::ThreadTitle(const Owner& owner) const {
  const std::string_view name =
      analysis_.processes.ThreadName(owner.process, owner.tid, ~uint64_t{0});
  return name.empty() ? Format("tid {}", owner.tid) : std::string(name);
}

uint32_t TraceTracks::Pid(ProcessId process) {
  const auto [at, is_new] = pids_.try_emplace(process);
  if (is_new) {
    const uint32_t pid = process ? analysis_.processes[process].pid : 0;
    at->second = pid != 0 && real_pids_used_.insert(pid).second ? pid : next_id_++;
    sink_.NameProcess(at->second, TraceGroup::kProcess, ProcessTitle(process),
                      kProcessSortBase + process.value);
  }
  return at->second;
}

TraceTrack TraceTracks::InLane(Lanes& lanes, uint64_t start_ns, uint64_t end_ns) {
  const size_t lane = lanes.lanes.Place(start_ns, end_ns);
  if (lane == lanes.tracks.size()) {
    lanes.tracks.push_back({lanes.pid, next_id_++});
    sink_.NameThread(lanes.tracks.back(), TraceTrackKind::kOther,
                     lane == 0 ? lanes.title : Format("{} ({})", lanes.title, lane + 1),
                     lanes.sort_index + std::min<uint64_t>(lane, kLanesOfStream - 1));
  }
  return lanes.tracks[lane];
}

TraceTrack TraceTracks::InNest(Nest& nest, uint64_t start_ns, uint64_t end_ns) {
  if (nest.lane.Place(start_ns, end_ns)) return nest.track;
  return InLane(nest.crossing, start_ns, end_ns);
}

TraceTracks::Nest TraceTracks::MakeNest(TraceTrack track, TraceTrackKind kind,
                                        const std::string& title, uint64_t sort_index) {
  Nest nest;
  nest.track = track;
  sink_.NameThread(track, kind, title, sort_index);
  nest.crossing.pid = track.pid;
  nest.crossing.title = title + ", overlapping";
  nest.crossing.sort_index = sort_index + 1;
  return nest;
}

TraceTracks::Nest TraceTracks::MakeThread(const Owner& owner) {
  const bool is_free = owner.tid != 0 && real_tids_used_.insert(owner.tid).second;
  return MakeNest({Pid(owner.process), is_free ? owner.tid : next_id_++}, TraceTrackKind::kThread,
                  ThreadTitle(owner), uint64_t{owner.tid} * kRowsOfThread);
}

TraceTracks::Nest& TraceTracks::FindThread(const Owner& owner) {
  auto at = threads_.find(owner.thread());
  if (at == threads_.end()) {
    at = threads_.emplace(owner.thread(), MakeThread(owner)).first;
  }
  return at->second;
}

TraceTrack TraceTracks::Calls(const Owner& owner, uint64_t start_ns, uint64_t end_ns) {
  return InNest(FindThread(owner), start_ns, end_ns);
}

TraceTracks::Nest TraceTracks::MakeRanges(const Owner& owner) {
  const TraceTrack track{Pid(owner.process), next_id_++};
  if (owner.tid == 0) return MakeNest(track, TraceTrackKind::kOther, "NVTX", 0);
  return MakeNest(track, TraceTrackKind::kOther,
                  Format("{} (tid {}): NVTX", ThreadTitle(owner), owner.tid),
                  uint64_t{owner.tid} * kRowsOfThread + kRangesRow);
}

TraceTrack TraceTracks::Ranges(const Owner& owner, uint64_t start_ns, uint64_t end_ns) {
  auto at = ranges_.find(owner.thread());
  if (at == ranges_.end()) {
    at = ranges_.emplace(owner.thread(), MakeRanges(owner)).first;
  }
  return InNest(at->second, start_ns, end_ns);
}

TraceTrack TraceTracks::Steps(const Owner& owner) {
  const TraceTrack track{Pid(owner.process), next_id_++};
  sink_.NameThread(track, TraceTrackKind::kOther, Format("steps (tid {})", owner.tid), 0);
  return track;
}

TraceTrack TraceTracks::Critical(const Owner& owner) {
  const TraceTrack track{Pid(owner.process), next_id_++};
  sink_.NameThread(track, TraceTrackKind::kOther, "critical path of the steps", 0);
  return track;
}

TraceTrack TraceTracks::MakeRow(const Owner& owner, std::string_view what, uint64_t row) {
  const TraceTrack track{Pid(owner.process), next_id_++};
  sink_.NameThread(track, TraceTrackKind::kOther,
                   Format("{} (tid {}): {}", ThreadTitle(owner), owner.tid, what),
                   uint64_t{owner.tid} * kRowsOfThread + row);
  return track;
}

TraceTrack TraceTracks::Samples(const Owner& owner) {
  const auto [at, is_new] = samples_.try_emplace(owner.thread());
  if (is_new) at->second = MakeRow(owner, "CPU samples", kSamplesRow);
  return at->second;
}

TraceTrack TraceTracks::States(const Owner& owner) {
  const auto [at, is_new] = states_.try_emplace(owner.thread());
  if (is_new) at->second = MakeRow(owner, "states", kStatesRow);
  return at->second;
}

TraceTrack TraceTracks::Moments(const Owner& owner, std::string_view event) {
  const auto [at, is_new] = moments_.try_emplace({owner.thread(), std::string(event)});
  if (is_new) at->second = MakeRow(owner, event, kSamplesRow);
  return at->second;
}

TraceTrack TraceTracks::Overheads(ProcessId process, uint64_t start_ns, uint64_t end_ns) {
  Lanes& lanes = overheads_[process];
  if (lanes.tracks.empty()) {
    lanes.pid = Pid(process);
    lanes.title = "CUDA overheads";
    lanes.sort_index = kOverheadsSort;
  }
  return InLane(lanes, start_ns, end_ns);
}

TraceTrack TraceTracks::Collectives(const JobRank& rank, uint64_t start_ns, uint64_t end_ns) {
  Lanes& lanes = collectives_[rank.instance];
  if (lanes.tracks.empty()) {
    lanes.pid = next_id_++;
    lanes.title = "collectives";
    const std::string& host = analysis_.job.hosts()[rank.host];
    sink_.NameProcess(
        lanes.pid, TraceGroup::kOther,
        host.empty() ? Format("rank {}", rank.number) : Format("rank {} on {}", rank.number, host),
        kRankSortBase + rank.number);
  }
  return InLane(lanes, start_ns, end_ns);
}

TraceTrack TraceTracks::Recording() {
  if (recording_.tid == 0) {
    recording_ = {next_id_, next_id_ + 1};
    next_id_ += 2;
    sink_.NameProcess(recording_.pid, TraceGroup::kOther, "xpu", 0);
    sink_.NameThread(recording_, TraceTrackKind::kOther, "recording", 0);
  }
  return recording_;
}

uint32_t TraceTracks::Gpu(uint32_t number) {
  const auto [at, is_new] = gpus_.try_emplace(number);
  if (is_new) {
    at->second = next_id_++;
    std::string title = Format("GPU {}", number);
    for (const GpuDevices::Gpu& gpu : analysis_.gpus.all()) {
      if (gpu.number != number || !gpu.device->name) continue;
      AppendFormat(title, " {}", analysis_.model.Text(gpu.device->name));
    }
    sink_.NameProcess(at->second, TraceGroup::kOther, title,
                      std::min<uint64_t>(number, kProcessSortBase - 1));
  }
  return at->second;
}

uint64_t TraceTracks::StreamOf(const GpuWork& work) const {
  if (IsStreamWait(analysis_.model.events, work)) return kStreamWaits;
  return work.kind == WorkKind::kSynchronization ? kSynchronizations : work.stream_id;
}

TraceTracks::Lanes TraceTracks::MakeStream(const GpuWork& work) {
  const uint64_t stream = StreamOf(work);
  const std::set<InstanceId>& users = users_[work.gpu];
  Lanes lanes;
  lanes.pid = Gpu(work.gpu);
  lanes.title = stream == kSynchronizations ? "synchronizations"
                : stream == kStreamWaits    ? "event waits of streams"
                                            : Format("stream {}", stream);
  if (users.size() > 1) {
    AppendFormat(lanes.title, " of {}", ProcessTitle(work.process));
    if (work.process) AppendFormat(lanes.title, " ({})", analysis_.processes[work.process].pid);
  }
  const auto user = static_cast<uint64_t>(std::distance(users.begin(), users.find(work.instance)));
  const uint64_t row = std::min<uint64_t>(stream, kStreamsOfProcess - 1);
  lanes.sort_index = (user * kStreamsOfProcess + row) * kLanesOfStream;
  return lanes;
}

TraceTrack TraceTracks::Work(const GpuWork& work) {
  const StreamKey key(work.instance, work.gpu, StreamOf(work));
  auto at = streams_.find(key);
  if (at == streams_.end()) at = streams_.emplace(key, MakeStream(work)).first;
  return InLane(at->second, work.start_ns, work.end_ns);
}

}  // namespace xpu
