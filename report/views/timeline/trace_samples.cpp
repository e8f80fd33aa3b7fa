#include "report/views/timeline/trace_samples.h"

#include <algorithm>

#include "format/base/saturated.h"

namespace xpu {

void TraceSamples::Close(Thread& thread, size_t depth, uint64_t time_ns) {
  for (; thread.open.size() > depth; thread.open.pop_back()) {
    const auto& [path, start_ns] = thread.open.back();
    sink_.NestedSlice(thread.track, names_.OfFrame(paths_.tree()[path].frame), start_ns, time_ns);
    --open_slices_;
  }
}

void TraceSamples::WriteMoment(const Owned<CpuSample>& sample) {
  const std::string_view event = weights_.NameOf(sample);
  const auto [name, is_new] = events_.try_emplace(event);
  if (is_new) name->second = sink_.Name(event, "event");
  sink_.Instant(tracks_.Moments(sample.owner(), event), name->second, sample.time_ns);
  sink_.Arg("weight", weights_.Of(sample));
  const std::string stack = names_.StackOf(paths_.Of(sample));
  if (!stack.empty()) sink_.ArgText("stack", stack);
}

void TraceSamples::Write(const Owned<CpuSample>& sample) {
  if (!weights_.IsOfTime(sample)) return WriteMoment(sample);
  const Owner owner = sample.owner();
  if (sink_.has_stacks()) {
    sink_.Sample({.thread = tracks_.ThreadOf(owner),
                  .time_ns = sample.time_ns,
                  .cpu = sample.cpu,
                  .path = paths_.Of(sample)},
                 paths_.tree());
    return;
  }
  Thread& thread = threads_[owner.thread()];
  if (thread.track.tid == 0) thread.track = tracks_.Samples(owner);
  // The thread slept when this sample is late: what was open ended with the last one's share.
  if (sample.time_ns - thread.last_ns > AddSaturated(thread.weight_ns, thread.weight_ns / 2)) {
    Close(thread, 0, AddSaturated(thread.last_ns, thread.weight_ns));
  }
  path_.clear();
  for (PathId at = paths_.Of(sample); paths_.tree()[at].parent; at = paths_.tree()[at].parent) {
    path_.push_back(at);
  }
  std::reverse(path_.begin(), path_.end());
  size_t same = 0;
  while (same < thread.open.size() && same < path_.size() &&
         thread.open[same].path == path_[same]) {
    ++same;
  }
  Close(thread, same, sample.time_ns);
  for (; same < path_.size(); ++same) {
    thread.open.push_back({path_[same], sample.time_ns});
    ++open_slices_;
  }
  thread.last_ns = sample.time_ns;
  thread.weight_ns = weights_.Of(sample);
}

void TraceSamples::Finish() {
  for (auto& [key, thread] : threads_) {
    Close(thread, 0, AddSaturated(thread.last_ns, thread.weight_ns));
  }
}

TraceHits::TraceHits(const Analysis& analysis, CallPaths& paths, const TraceNames& names,
                     TraceTracks& tracks, TraceSink& sink)
    : paths_(paths), names_(names), tracks_(tracks), sink_(sink), probes_(analysis.model) {
  for (const Owned<ProbeHit>& hit : analysis.ProbeHits()) {
    if (probes_.Of(hit) != nullptr) hits_.push_back(&hit);
  }
}

void TraceHits::Write(const Owned<ProbeHit>& hit) {
  const Probe& probe = *probes_.Of(hit);
  const auto [name, is_new] = titles_.try_emplace(&probe);
  if (is_new) name->second = sink_.Name(probes_.NameOf(probe), "probe");
  sink_.Instant(tracks_.ThreadOf(hit.owner()), name->second, hit.time_ns);
  sink_.ArgText("probe", probes_.TitleOf(probe));
  if (IsReturn(probe)) sink_.Arg("result", hit.return_value);
  if (hit.stack) sink_.ArgText("stack", names_.StackOf(paths_.Of(hit)));
}

}  // namespace xpu
