// Ranges that the program marked with NVTX, from the calls that begin and end them.
//
// A pushed range belongs to its thread and encloses what the thread does until its pop; a started
// one belongs to its process and encloses what any of its threads do until its end.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "report/model/model.h"
#include "report/trace/correlation.h"
#include "report/trace/nvtx_payload.h"

namespace xpu {

enum class NvtxStyle : uint8_t { kPushPop, kStartEnd, kMark };
// Returns the name that nsys uses: "PushPop", "StartEnd", "Mark".
std::string_view StyleText(NvtxStyle style);

struct NvtxRange {
  const NvtxEvent* event = nullptr;     // that begins it: name, thread, color, payload
  const NvtxEvent* ended_by = nullptr;  // which may have a payload too
  NvtxStyle style = NvtxStyle::kPushPop;
  bool is_open = false;  // it was not ended: it lasts as long as its thread or process
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;     // of a mark its time
  ProcessId process = {};  // with this pid, at the start
  TrackId track = {};
  uint32_t pid = 0;  // as the recorder sees it, 0: unknown

  // The thread is the one that began it, as the program numbers it.
  Owner owner() const { return {process, pid, event->tid, start_ns, track}; }
};

// Returns the number that a range carries beside its name; "" for none.
std::string PayloadText(const NvtxEvent& event);

class NvtxRanges {
 public:
  // The ranges that are open at a moment, as a chain, the innermost first.
  using Chain = uint32_t;
  static constexpr Chain kNone = std::numeric_limits<Chain>::max();

  // `model`, in order of time, and `correlation` must outlive this.
  NvtxRanges(const Model& model, const Tracks& tracks, const Correlation& correlation);

  // In order of start, marks too.
  const std::vector<NvtxRange>& all() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  // Pops and ends of what was not begun.
  uint64_t unmatched_ends() const { return unmatched_ends_; }

  // "domain:text"; of the default domain ":text", as nsys has it.
  std::string NameOf(const NvtxRange& range) const;
  // Its name without the colon of the default domain.
  std::string LabelOf(const NvtxRange& range) const;
  // "" for none.
  std::string CategoryOf(const NvtxEvent& event) const;
  // A number, or the fields of what has a schema; "" for none.
  std::string PayloadOf(const NvtxRange& range) const;
  // The payload fields of the beginning and the end of the range.
  std::vector<PayloadField> FieldsOf(const NvtxRange& range) const;

  // The ranges around a moment of a thread: the thread's own, then its process's.
  struct Around {
    Chain thread = kNone;
    Chain process = kNone;
  };
  Around At(const Launch& launch) const;
  Around At(const NvtxRange& range) const;  // with the range itself
  // Takes the pid and tid that the recorder sees.
  Around At(uint32_t pid, uint32_t tid, uint64_t time_ns) const;
  // Views list so many, the innermost ones: ranges of a library's calls and modules are some twenty
  // deep, and where ranges overlap each moment has others.
  static constexpr size_t kMostShown = 64;
  // The ranges of both, in all(), the outermost first.
  std::vector<uint32_t> RangesOf(const Around& around) const;

 private:
  struct Link {
    uint32_t range;
    Chain outer;
  };
  // From `time_ns` on, until the next change.
  struct Change {
    uint64_t time_ns;
    Chain open;
  };
  using Timeline = std::vector<Change>;
  using ThreadKey = std::pair<InstanceId, uint32_t>;  // as the program sees it; 0: the process

  void Take(const NvtxEvent& event);
  void Begin(const NvtxEvent& event, NvtxStyle style, Timeline& timeline);
  bool Pop(const NvtxEvent& event, Timeline& timeline);
  bool End(const NvtxEvent& event, Timeline& timeline);
  // `chain` without the link `at` of it.
  Chain Without(Chain chain, Chain at);
  void Close(uint32_t range, const NvtxEvent& event);
  void CloseRest();
  Chain OpenAt(const ThreadKey& key, uint64_t time_ns) const;

  const Model& model_;
  const Correlation& correlation_;
  const NvtxSchemas schemas_;
  std::vector<NvtxRange> ranges_;
  std::vector<Link> links_;
  std::map<ThreadKey, Timeline> timelines_;
  std::map<std::pair<InstanceId, uint64_t>, uint32_t> started_;  // by NvtxEvent::range
  std::map<std::pair<InstanceId, uint32_t>, StringId> domains_;
  std::map<std::tuple<InstanceId, uint32_t, uint32_t>, StringId> categories_;
  std::unordered_map<uint32_t, std::vector<InstanceId>> instances_;  // with ranges, by pid
  uint64_t unmatched_ends_ = 0;
};

}  // namespace xpu
