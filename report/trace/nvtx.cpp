#include "report/trace/nvtx.h"

#include <algorithm>
#include <bit>

#include "format/base/text.h"

namespace xpu {
namespace {

// A program that begins ranges and never ends them: what encloses a moment is cut there.
constexpr size_t kMaxOpen = 256;

}  // namespace

namespace {

// When threads and processes were over, or became other programs.
class Ends {
 public:
  explicit Ends(const Model& model) {
    const LoadedEvents& events = model.events;
    if (!events.nvtx_events.empty()) last_ns_ = events.nvtx_events.back().time_ns;
    if (!events.recording_end.empty()) last_ns_ = events.recording_end.back().time_ns;
    for (const ProcessEvent& event : events.process_events) {
      const bool is_exit = event.kind == ProcessEventKind::kExit;
      if (is_exit) threads_[event.tid].push_back(event.time_ns);
      if (event.kind == ProcessEventKind::kExec || (is_exit && event.tid == event.pid)) {
        processes_[event.pid].push_back(event.time_ns);
      }
    }
  }

  // Returns when the thread that was there at `time_ns` was over. `tid` 0: the process.
  uint64_t After(uint32_t pid, uint32_t tid, uint64_t time_ns) const {
    const uint64_t end_ns =
        std::min(First(processes_, pid, time_ns), First(threads_, tid, time_ns));
    return std::max(time_ns, std::min(end_ns, last_ns_));
  }

 private:
  using Times = std::unordered_map<uint32_t, std::vector<uint64_t>>;
  static uint64_t First(const Times& times, uint32_t number, uint64_t time_ns) {
    constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
    const auto found = times.find(number);
    if (found == times.end()) return kNever;
    const auto behind = std::upper_bound(found->second.begin(), found->second.end(), time_ns);
    return behind == found->second.end() ? kNever : *behind;
  }

  Times threads_;
  Times processes_;
  uint64_t last_ns_ = 0;
};

}  // namespace

std::string_view StyleText(NvtxStyle style) {
  switch (style) {
    case NvtxStyle::kPushPop:
      return "PushPop";
    case NvtxStyle::kStartEnd:
      return "StartEnd";
    case NvtxStyle::kMark:
      return "Mark";
  }
  return "";
}

std::string PayloadText(const NvtxEvent& event) {
  const auto low = static_cast<uint32_t>(event.payload);
  switch (event.payload_type) {
    case NvtxPayload::kNone:
      return {};
    case NvtxPayload::kUint64:
      return std::to_string(event.payload);
    case NvtxPayload::kInt64:
      return std::to_string(static_cast<int64_t>(event.payload));
    case NvtxPayload::kDouble:
      return Format("{}", std::bit_cast<double>(event.payload));
    case NvtxPayload::kUint32:
      return std::to_string(low);
    case NvtxPayload::kInt32:
      return std::to_string(static_cast<int32_t>(low));
    case NvtxPayload::kFloat:
      return Format("{}", std::bit_cast<float>(low));
    case NvtxPayload::kExtended:
      return {};
  }
  return {};
}

NvtxRanges::NvtxRanges(const Model& model, const Tracks& tracks, const Correlation& correlation)
    : model_(model), correlation_(correlation), schemas_(model) {
  for (const NvtxEvent& event : model.events.nvtx_events) Take(event);
  CloseRest();
  for (NvtxRange& range : ranges_) {
    range.pid = correlation.PidOf(range.event->instance);
    range.track = tracks.At(range.pid, range.event->tid, range.start_ns);
    range.process = tracks[range.track].process;
  }
  for (const auto& [key, timeline] : timelines_) {
    const auto process = correlation.processes.find(key.first);
    if (process == correlation.processes.end()) continue;
    std::vector<InstanceId>& known = instances_[process->second.pid];
    if (known.empty() || known.back() != key.first) known.push_back(key.first);
  }
}

void NvtxRanges::Take(const NvtxEvent& event) {
  const ThreadKey thread(event.instance, event.tid);
  const ThreadKey process(event.instance, 0);
  switch (event.kind) {
    case NvtxKind::kMark:
      ranges_.push_back({.event = &event,
                         .style = NvtxStyle::kMark,
                         .start_ns = event.time_ns,
                         .end_ns = event.time_ns});
      return;
    case NvtxKind::kPush:
      return Begin(event, NvtxStyle::kPushPop, timelines_[thread]);
    case NvtxKind::kPop:
      unmatched_ends_ += Pop(event, timelines_[thread]) ? 0 : 1;
      return;
    case NvtxKind::kStart:
      started_[{event.instance, event.range}] = static_cast<uint32_t>(ranges_.size());
      return Begin(event, NvtxStyle::kStartEnd, timelines_[process]);
    case NvtxKind::kEnd:
      unmatched_ends_ += End(event, timelines_[process]) ? 0 : 1;
      return;
    case NvtxKind::kDomain:
      domains_[{event.instance, event.domain}] = event.text;
      return;
    case NvtxKind::kCategory:
      categories_[{event.instance, event.domain, event.category}] = event.text;
      return;
    case NvtxKind::kThread:
      return;
  }
}

void NvtxRanges::Begin(const NvtxEvent& event, NvtxStyle style, Timeline& timeline) {
  const auto range = static_cast<uint32_t>(ranges_.size());
  ranges_.push_back({.event = &event,
                     .style = style,
                     .is_open = true,
                     .start_ns = event.time_ns,
                     .end_ns = event.time_ns});
  links_.push_back({range, timeline.empty() ? kNone : timeline.back().open});
  timeline.push_back({event.time_ns, static_cast<Chain>(links_.size() - 1)});
}

void NvtxRanges::Close(uint32_t range, const NvtxEvent& event) {
  ranges_[range].is_open = false;
  ranges_[range].ended_by = &event;
  ranges_[range].end_ns = std::max(ranges_[range].start_ns, event.time_ns);
}

void NvtxRanges::CloseRest() {
  const Ends ends(model_);
  for (auto& [key, timeline] : timelines_) {
    if (timeline.empty() || timeline.back().open == kNone) continue;
    const Chain open = timeline.back().open;
    const auto process = correlation_.processes.find(key.first);
    const uint32_t pid = process == correlation_.processes.end() ? 0 : process->second.pid;
    const bool is_first = pid != 0 && key.second == process->second.namespace_pid;
    const uint64_t end_ns = ends.After(pid, is_first ? pid : key.second, timeline.back().time_ns);
    Chain at = open;
    for (size_t i = 0; at != kNone && i < kMaxOpen; ++i, at = links_[at].outer) {
      NvtxRange& range = ranges_[links_[at].range];
      range.end_ns = std::max(range.start_ns, end_ns);
    }
    timeline.push_back({end_ns, kNone});
  }
}

NvtxRanges::Chain NvtxRanges::Without(Chain chain, Chain at) {
  const Chain outer = links_[at].outer;
  std::vector<uint32_t> inner;
  for (; chain != at && chain != kNone && inner.size() < kMaxOpen; chain = links_[chain].outer) {
    inner.push_back(links_[chain].range);
  }
  Chain rest = outer;
  for (; !inner.empty(); inner.pop_back()) {
    links_.push_back({inner.back(), rest});
    rest = static_cast<Chain>(links_.size() - 1);
  }
  return rest;
}

// The innermost of its domain: ranges of other domains stay open.
bool NvtxRanges::Pop(const NvtxEvent& event, Timeline& timeline) {
  if (timeline.empty()) return false;
  const Chain open = timeline.back().open;
  Chain at = open;
  for (size_t i = 0; at != kNone && i < kMaxOpen; ++i, at = links_[at].outer) {
    if (ranges_[links_[at].range].event->domain != event.domain) continue;
    Close(links_[at].range, event);
    timeline.push_back({event.time_ns, Without(open, at)});
    return true;
  }
  return false;
}

bool NvtxRanges::End(const NvtxEvent& event, Timeline& timeline) {
  const auto started = started_.find({event.instance, event.range});
  if (started == started_.end()) return false;
  const uint32_t range = started->second;
  started_.erase(started);
  Close(range, event);
  const Chain open = timeline.empty() ? kNone : timeline.back().open;
  Chain at = open;
  for (size_t i = 0; at != kNone && i < kMaxOpen; ++i, at = links_[at].outer) {
    if (links_[at].range != range) continue;
    timeline.push_back({event.time_ns, Without(open, at)});
    break;
  }
  return true;
}

std::string NvtxRanges::NameOf(const NvtxRange& range) const {
  const NvtxEvent& event = *range.event;
  std::string name;
  if (event.domain != 0) {
    const auto domain = domains_.find({event.instance, event.domain});
    name = domain == domains_.end() ? "[domain " + std::to_string(event.domain) + "]"
                                    : std::string(model_.Text(domain->second));
  }
  name += ':';
  name += model_.Text(event.text);
  return name;
}

std::string NvtxRanges::LabelOf(const NvtxRange& range) const {
  std::string name = NameOf(range);
  if (name.starts_with(':')) name.erase(0, 1);
  return name;
}

std::string NvtxRanges::CategoryOf(const NvtxEvent& event) const {
  if (event.category == 0) return {};
  const auto found = categories_.find({event.instance, event.domain, event.category});
  return found == categories_.end() ? std::to_string(event.category)
                                    : std::string(model_.Text(found->second));
}

std::vector<PayloadField> NvtxRanges::FieldsOf(const NvtxRange& range) const {
  std::vector<PayloadField> fields = schemas_.FieldsOf(*range.event);
  if (range.ended_by == nullptr) return fields;
  for (PayloadField& field : schemas_.FieldsOf(*range.ended_by)) fields.push_back(std::move(field));
  return fields;
}

std::string NvtxRanges::PayloadOf(const NvtxRange& range) const {
  std::string text = PayloadText(*range.event);
  for (const PayloadField& field : FieldsOf(range)) {
    AppendFormat(text, "{}{}={}", text.empty() ? "" : ", ", field.name, field.text);
  }
  return text;
}

NvtxRanges::Chain NvtxRanges::OpenAt(const ThreadKey& key, uint64_t time_ns) const {
  const auto timeline = timelines_.find(key);
  if (timeline == timelines_.end()) return kNone;
  const Timeline& changes = timeline->second;
  const auto behind =
      std::upper_bound(changes.begin(), changes.end(), time_ns,
                       [](uint64_t time, const Change& change) { return time < change.time_ns; });
  return behind == changes.begin() ? kNone : std::prev(behind)->open;
}

NvtxRanges::Around NvtxRanges::At(const Launch& launch) const {
  if (ranges_.empty()) return {};
  const uint32_t tid = launch.program_tid != 0 ? launch.program_tid : launch.tid;
  return {OpenAt({launch.instance, tid}, launch.start_ns),
          OpenAt({launch.instance, 0}, launch.start_ns)};
}

NvtxRanges::Around NvtxRanges::At(const NvtxRange& range) const {
  const NvtxEvent& event = *range.event;
  return {OpenAt({event.instance, event.tid}, range.start_ns),
          OpenAt({event.instance, 0}, range.start_ns)};
}

NvtxRanges::Around NvtxRanges::At(uint32_t pid, uint32_t tid, uint64_t time_ns) const {
  const auto instances = instances_.find(pid);
  if (instances == instances_.end()) return {};
  Around around;
  for (const InstanceId instance : instances->second) {
    const CudaProcess& process = correlation_.processes.at(instance);
    // Threads of a process in another pid namespace have other numbers; the first one's is known.
    const bool is_first = tid == pid && process.namespace_pid != 0;
    const Chain thread = OpenAt({instance, is_first ? process.namespace_pid : tid}, time_ns);
    if (thread != kNone) around.thread = thread;
    const Chain whole = OpenAt({instance, 0}, time_ns);
    if (whole != kNone) around.process = whole;
  }
  return around;
}

std::vector<uint32_t> NvtxRanges::RangesOf(const Around& around) const {
  std::vector<uint32_t> ranges;
  for (Chain chain : {around.thread, around.process}) {
    for (size_t i = 0; chain != kNone && i < kMaxOpen; ++i, chain = links_[chain].outer) {
      ranges.push_back(links_[chain].range);
    }
  }
  std::reverse(ranges.begin(), ranges.end());
  return ranges;
}

}  // namespace xpu
