#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "format/base/text.h"
#include "format/events.h"
#include "report/model/load.h"
#include "report/model/recorded_time.h"

namespace xpu {
namespace {

// The tables of all captures after one: the highest bits of an id say whose it is.
class MergedTables : public CaptureTables {
 public:
  explicit MergedTables(std::vector<std::unique_ptr<CaptureTables>> tables)
      // One more: texts that are made here.
      : tables_(std::move(tables)), shift_(32 - std::bit_width(tables_.size())) {}

  std::string_view String(StringId id) const override {
    const size_t capture = id.value >> shift_;
    const uint32_t inner = id.value & Largest();
    if (capture < tables_.size()) return tables_[capture]->String(StringId{inner});
    return inner < made_.size() ? std::string_view(made_[inner]) : std::string_view();
  }
  StackNode Node(StackId id) const override {
    const size_t capture = id.value >> shift_;
    if (capture >= tables_.size()) return {};
    StackNode node = tables_[capture]->Node(StackId{id.value & Largest()});
    node.caller = Of(capture, node.caller);
    if (node.frame.kind == FrameKind::kKernel) {
      node.frame.address = KernelAddress(capture, node.frame.address);
    } else if (node.frame.kind == FrameKind::kPython) {
      node.frame.address = Of(capture, PythonFrame::OfBits(node.frame.address)).Bits();
    }
    return node;
  }
  bool IsLost(StackId id) const override {
    const size_t capture = id.value >> shift_;
    if (capture >= tables_.size()) return true;
    const StackId inner{id.value & Largest()};
    // The empty stack is the same in all captures, so that it is not a stack of a later one.
    return (id && !inner) || tables_[capture]->IsLost(inner);
  }

  // The id here of an id there. What is lost has one id everywhere; one that does not fit is none
  // that a capture defines.
  template <typename Tag>
  Id<Tag, uint32_t> Of(size_t capture, Id<Tag, uint32_t> id) const {
    constexpr Id<Tag, uint32_t> kLost{kLostStack.value};
    static_assert(kLostStack.value == kLostString.value);
    if (!id || id == kLost) return id;
    if (id.value > Largest()) return kLost;
    return {static_cast<uint32_t>(capture) << shift_ | id.value};
  }
  PythonFrame Of(size_t capture, PythonFrame frame) const {
    if (frame.code == 0) return frame;
    frame.code = PythonCodeOf(capture, frame.code);
    if (frame.code == 0) frame.offset = static_cast<uint32_t>(PythonGap::kCodeMissing);
    return frame;
  }
  // 0: it does not fit.
  uint32_t PythonCodeOf(size_t capture, uint32_t code) const {
    return code > Largest() ? 0 : static_cast<uint32_t>(capture) << shift_ | code;
  }
  StringId Make(std::string text) {
    made_.push_back(std::move(text));
    return {static_cast<uint32_t>(tables_.size()) << shift_ |
            static_cast<uint32_t>(made_.size() - 1)};
  }
  // Each host has kernel code of its own at these addresses. The upper 16 bits are all ones.
  static uint64_t KernelAddress(size_t capture, uint64_t address) {
    return address - (static_cast<uint64_t>(capture) << 48);
  }

 private:
  uint32_t Largest() const { return (uint32_t{1} << shift_) - 1; }

  std::vector<std::unique_ptr<CaptureTables>> tables_;
  std::deque<std::string> made_;
  int shift_;
};

// Numbers of an event of one capture in the merged one.
class Renumbering {
 public:
  Renumbering(const MergedTables& tables, size_t capture, const HostClock& clock, uint64_t later_ns)
      : tables_(tables), capture_(capture), clock_(clock), later_ns_(later_ns) {}

  template <typename Event>
  void Apply(Event& event) const {
    VisitFields(event, [this](FieldInfo info, auto& field) {
      using Field = std::decay_t<decltype(field)>;
      if constexpr (std::is_same_v<Field, StringId> || std::is_same_v<Field, StackId>) {
        field = tables_.Of(capture_, field);
      } else if constexpr (std::is_same_v<Field, uint32_t>) {
        if (field == 0) return;
        if (info.meaning == Meaning::kProcess) field += Number(kPidsPerCapture);
        if (info.meaning == Meaning::kDefinition) field += Number(1 << 20);
      } else if constexpr (std::is_same_v<Field, uint64_t>) {
        // Records of the GPU are on CUPTI's clock, which the clock pairs lead to.
        if (field != 0 && info.clock == Clock::kMonotonic) field = OnFirstClock(field);
      }
    });
    if constexpr (std::is_same_v<Event, PythonCode>) {
      event.code = tables_.PythonCodeOf(capture_, event.code);
    }
    if constexpr (std::is_same_v<Event, KernelSymbol>) {
      event.address = MergedTables::KernelAddress(capture_, event.address);
    }
  }

 private:
  uint32_t Number(uint32_t per_capture) const {
    return static_cast<uint32_t>(capture_) * per_capture;
  }

  // The order of times stays as it was: clocks drift by far less than their own rate.
  uint64_t OnFirstClock(uint64_t time_ns) const {
    const uint64_t by_wall_clock = time_ns + later_ns_;
    if (clock_.collectives == 0) return by_wall_clock;
    const auto since = static_cast<double>(static_cast<int64_t>(by_wall_clock - clock_.at_ns));
    const auto drifted = static_cast<int64_t>(clock_.drift * since);
    const int64_t ahead_ns = clock_.ahead_ns + drifted;
    if (ahead_ns > 0 && static_cast<uint64_t>(ahead_ns) >= by_wall_clock) return 1;
    return by_wall_clock - static_cast<uint64_t>(ahead_ns);
  }

  const MergedTables& tables_;
  const size_t capture_;
  const HostClock& clock_;
  const uint64_t later_ns_;
};

const RecordingInfo* InfoOf(const Model& model) {
  const auto& infos = model.events.recording_info;
  return infos.empty() ? nullptr : &infos.front();
}

// When CLOCK_MONOTONIC was 0; 0 where the capture does not say.
uint64_t BootOf(const Model& model) {
  const RecordingInfo* info = InfoOf(model);
  if (info == nullptr || info->start_realtime_ns < info->start_ns) return 0;
  return info->start_realtime_ns - info->start_ns;
}

std::string HostOf(const Model& model) {
  const RecordingInfo* info = InfoOf(model);
  return info == nullptr ? std::string() : std::string(model.Text(info->host_name));
}

std::string KeyOf(const Model& model) {
  const RecordingInfo* info = InfoOf(model);
  return info == nullptr ? std::string() : HostKeyOf(model, *info);
}

// One for each host. The captures of a host share one clock, if their boot is known: what they say
// of when it began differs only by how the wall clock was set meanwhile.
struct Hosts {
  std::vector<HostClock> clocks;
  std::vector<uint64_t> boots_ns;    // by clock
  std::vector<size_t> clock_of;      // by capture
  std::vector<uint64_t> boot_of_ns;  // likewise
};

Hosts HostsOf(const std::vector<Model>& captures) {
  Hosts hosts;
  std::map<std::string, size_t> known;
  for (const Model& capture : captures) {
    const std::string key = KeyOf(capture);
    const auto [place, is_new] = known.try_emplace(key, hosts.clocks.size());
    if (is_new) {
      HostClock clock;
      clock.host = HostOf(capture);
      hosts.clocks.push_back(clock);
      hosts.boots_ns.push_back(BootOf(capture));
    }
    ++hosts.clocks[place->second].captures;
    hosts.clock_of.push_back(place->second);
    const RecordingInfo* info = InfoOf(capture);
    const bool shares_clock = info != nullptr && !capture.Text(info->boot_id).empty();
    hosts.boot_of_ns.push_back(shares_clock ? hosts.boots_ns[place->second] : BootOf(capture));
  }
  return hosts;
}

Status Check(const std::vector<Model>& captures) {
  if (captures.size() > kMaxCaptures) {
    return Error{ErrorKind::kUsage, Format("too many captures: the limit is {}", kMaxCaptures), {}};
  }
  std::map<std::tuple<std::string, uint32_t, uint64_t>, std::string> recordings;
  for (const Model& capture : captures) {
    const RecordingInfo* info = InfoOf(capture);
    if (info == nullptr) continue;
    const auto [known, is_new] = recordings.try_emplace(
        {HostOf(capture), info->recorder_pid, info->start_realtime_ns}, capture.path);
    if (is_new) continue;
    return Error{ErrorKind::kUsage,
                 Format("{} and {} are from the same recording", known->second, capture.path),
                 "name each capture only once"};
  }
  return Ok();
}

// "python3" to "python3@host".
void NameHost(std::span<ProcessEvent> events, const std::string& host, MergedTables& tables) {
  std::unordered_map<StringId, StringId> names;
  for (ProcessEvent& event : events) {
    if (!event.name) continue;
    const auto [known, is_new] = names.try_emplace(event.name);
    if (is_new) known->second = tables.Make(Format("{}@{}", tables.String(event.name), host));
    event.name = known->second;
  }
}

// The first recording first, whatever the order of the files.
void OrderByStart(std::vector<Model>& captures) {
  std::stable_sort(captures.begin(), captures.end(), [](const Model& a, const Model& b) {
    const RecordingInfo* info_a = InfoOf(a);
    const RecordingInfo* info_b = InfoOf(b);
    if (info_a == nullptr || info_b == nullptr) return info_b == nullptr && info_a != nullptr;
    return info_a->start_realtime_ns < info_b->start_realtime_ns;
  });
}

// So that no time becomes negative: the clock that began first counts.
uint64_t FirstBoot(const std::vector<Model>& captures, const std::vector<uint64_t>& boots_ns) {
  uint64_t first = ~uint64_t{0};
  for (size_t i = 0; i < captures.size(); ++i) {
    if (InfoOf(captures[i]) != nullptr) first = std::min(first, boots_ns[i]);
  }
  return first;
}

// Each recorder of a host reports all of its GPUs: of one GPU the most records of one recorder
// stay.
template <typename List>
void KeepOneOfEachGpu(const Model& merged, List& list) {
  std::unordered_map<uint32_t, std::string_view> uuids;
  for (const GpuDevice& device : merged.events.gpu_devices) {
    uuids[device.gpu] = merged.Text(device.uuid);
  }
  std::map<uint32_t, size_t> counts;
  for (const auto& record : list) ++counts[record.gpu];
  std::map<std::string_view, uint32_t> kept;
  for (const auto& [gpu, count] : counts) {
    const auto [best, is_new] = kept.try_emplace(uuids[gpu], gpu);
    if (count > counts[best->second]) best->second = gpu;
  }
  std::erase_if(list, [&](const auto& record) {
    const std::string_view uuid = uuids[record.gpu];
    return !uuid.empty() && kept[uuid] != record.gpu;
  });
}

}  // namespace

std::string HostKeyOf(const Model& model, const RecordingInfo& info) {
  const std::string_view boot = model.Text(info.boot_id);
  if (!boot.empty()) return std::string(boot);
  return Format("name {}", model.Text(info.host_name));
}

Result<Model> MergeCaptures(std::vector<Model> captures, const RefineClocks& refine) {
  if (captures.size() == 1) return std::move(captures.front());
  XPU_RETURN_IF_ERROR(Check(captures));
  OrderByStart(captures);
  Hosts hosts = HostsOf(captures);
  const uint64_t first_boot_ns = FirstBoot(captures, hosts.boot_of_ns);
  std::vector<std::pair<std::string, uint64_t>> places;  // host and how much later its clock began
  std::vector<CaptureOnClock> on_clocks;
  for (size_t i = 0; i < captures.size(); ++i) {
    const uint64_t boot_ns = InfoOf(captures[i]) == nullptr ? first_boot_ns : hosts.boot_of_ns[i];
    places.emplace_back(HostOf(captures[i]), boot_ns - first_boot_ns);
    on_clocks.push_back({&captures[i], hosts.clock_of[i], places.back().second});
  }
  if (refine && hosts.clocks.size() > 1) hosts.clocks = refine(on_clocks, std::move(hosts.clocks));
  std::vector<std::unique_ptr<CaptureTables>> all_tables;
  for (Model& capture : captures) all_tables.push_back(std::move(capture.tables));
  auto tables = std::make_unique<MergedTables>(std::move(all_tables));
  Model merged;
  for (size_t i = 0; i < captures.size(); ++i) {
    const Renumbering renumbering(*tables, i, hosts.clocks[hosts.clock_of[i]], places[i].second);
    std::vector<ProcessEvent>& process_events = merged.events.process_events.rows();
    const size_t others = process_events.size();
    const size_t infos = merged.events.recording_info.size();
    const size_t ends = merged.events.recording_end.size();
    const uint64_t recorded_ns = RecordedUntilNs(captures[i]);
    VisitBoth(merged.events, captures[i].events, [&](auto& all, auto& list) {
      for (auto event : list) {
        renumbering.Apply(event);
        all.push_back(event);
      }
      list = {};
    });
    if (hosts.clocks.size() > 1) {
      NameHost(std::span(process_events).subspan(others), places[i].first, *tables);
    }
    MergedCapture& capture = merged.captures.emplace_back();
    capture.path = captures[i].path;
    if (merged.events.recording_info.size() > infos) {
      capture.info = merged.events.recording_info[infos];
    }
    if (merged.events.recording_end.size() > ends) capture.end = merged.events.recording_end[ends];
    capture.until_ns = capture.end ? capture.end->time_ns : capture.info.start_ns + recorded_ns;
    AddProblems(merged.problems, captures[i].problems);
    merged.file_bytes += captures[i].file_bytes;
    merged.parts.missing += captures[i].parts.missing;
    merged.path += (merged.path.empty() ? "" : ", ") + captures[i].path;
  }
  merged.tables = std::move(tables);
  KeepOneOfEachGpu(merged, merged.events.gpu_states.rows());
  KeepOneOfEachGpu(merged, merged.events.gpu_metric_samples.rows());
  merged.host_clocks = std::move(hosts.clocks);
  return merged;
}

}  // namespace xpu
