#include <algorithm>

#include "format/base/counted.h"
#include "format/base/text.h"
#include "format/cuda_faults.h"
#include "format/losses.h"
#include "report/analysis/call_paths.h"
#include "report/analysis/gpu_names.h"
#include "report/base/text.h"
#include "report/query/readable_paths.h"
#include "report/query/unfinished_work.h"

namespace xpu {
namespace {

constexpr size_t kMostCandidates = 3;
constexpr size_t kMostOthers = 4;
constexpr size_t kMostLookedAt = 64;
constexpr size_t kWorkNameWidth = 60;

// Texts with how often each came, in the order in which they came first.
class TextCounts {
 public:
  void Add(const std::string& text, uint64_t count) {
    const auto [place, is_new] = places_.try_emplace(text, all_.size());
    if (is_new) all_.emplace_back(text, 0);
    all_[place->second].second += count;
  }
  const std::vector<std::pair<std::string, uint64_t>>& all() const { return all_; }

 private:
  std::map<std::string, size_t> places_;
  std::vector<std::pair<std::string, uint64_t>> all_;
};

class UnfinishedSentences {
 public:
  UnfinishedSentences(Analysis& analysis, const UnfinishedProcess& process)
      : analysis_(analysis),
        process_(process),
        launches_(analysis.correlation.launches),
        names_(analysis, KernelNames::kShort),
        paths_(analysis, {}),
        readable_(analysis, paths_.tree()),
        creations_(analysis),
        candidates_(CountCandidates(process)) {}

  std::string Text() {
    if (candidates_ == 0) {
      return Format("{}. It is not known which work failed: all in this capture had ended.",
                    ErrorText());
    }
    if (candidates_ > 1) return CandidatesText();
    return process_.streams.empty() ? UndeliveredText() : CulpritText();
  }

 private:
  // "cudaDeviceSynchronize, called by WaitForGpu, returned error 700, an illegal memory access
  // (Xid 31)"
  std::string ErrorText() {
    const Launch call = launches_[process_.failed_call];
    return Format("{} returned error {}, {}{}", CallText(call), call.return_value,
                  FaultMeaning(call.return_value), XidText());
  }

  std::string XidText() const { return process_.xid == 0 ? "" : Format(" (Xid {})", process_.xid); }

  std::string CallText(const Launch& call) {
    return Format("{}, called by {},", ApiNameOf(analysis_.api_names, call), CallersOf(call));
  }

  std::string CallersOf(const Launch& launch) {
    return readable_.OwnFunctions(paths_.OfLaunch(launch));
  }

  // "`gather`, grid 64x1x1, block 128x1x1, launched by step > lookup"
  std::string WorkText(uint32_t place) {
    const GpuWork work = analysis_.correlation.work[place];
    std::string text = Format("`{}`", ToWidth(names_.Title(work), kWorkNameWidth));
    if (work.kind == WorkKind::kKernel) {
      const Kernel kernel = analysis_.model.events.kernels[work.index];
      AppendFormat(text, ", grid {}x{}x{}, block {}x{}x{}", kernel.grid_x, kernel.grid_y,
                   kernel.grid_z, kernel.block_x, kernel.block_y, kernel.block_z);
    }
    AppendFormat(text, ", launched by {}", CallersOf(launches_[work.launch]));
    if (work.creation != GpuWork::kNoLaunch) {
      AppendFormat(text, " in a graph, added to it by {}", CallersOf(launches_[work.creation]));
    }
    if (work.kind != WorkKind::kGraph) return text;
    const std::vector<std::string> nodes = ByCallers(creations_.Of(work), "made");
    return nodes.empty() ? text : Format("{} (of its nodes {})", text, Listed(nodes));
  }

  // "300 launched by main > step", "2 launched by main > exchange"
  std::vector<std::string> ByCallers(const std::vector<LaunchGroup>& groups,
                                     std::string_view verb) {
    TextCounts callers;
    for (const LaunchGroup& group : groups) {
      callers.Add(CallersOf(launches_[group.first]), group.count);
    }
    std::vector<std::string> texts;
    for (const auto& [text, count] : callers.all()) {
      texts.push_back(Format("{} {} by {}", WithThousands(count), verb, text));
    }
    return texts;
  }

  static std::string Listed(const std::vector<std::string>& texts) {
    std::string text;
    for (size_t i = 0; i < std::min(texts.size(), kMostCandidates); ++i) {
      AppendFormat(text, "{}{}", i == 0 ? "" : "; ", texts[i]);
    }
    if (texts.size() > kMostCandidates) {
      AppendFormat(text, "; and {} more", texts.size() - kMostCandidates);
    }
    return text;
  }

  // "pending for 3.7 s when the program ended"
  std::string PendingText(uint32_t launch) {
    const char* const end = process_.has_faulted() ? "the error was returned"
                            : process_.has_ended   ? "the program ended"
                            : analysis_.model.events.recording_end.empty()
                                ? "this capture was last written"
                                : "the recording ended";
    return Format("pending for {} when {}", HumanDuration(PendingNs(analysis_, process_, launch)),
                  end);
  }

  // Names the call that the program was in when it ended.
  std::string OpenCallText() {
    if (process_.open_call == GpuWork::kNoLaunch) return "";
    return Format(" {} had not returned.", CallText(launches_[process_.open_call]));
  }

  std::string CulpritText() {
    const UnfinishedStream& stream = process_.streams.front();
    const uint32_t work = stream.work.front();
    const uint32_t launch = analysis_.correlation.work.Get<&GpuWork::launch>(work);
    const size_t later = stream.work.size() - 1;
    const std::string queue = later == 0
                                  ? "nothing of its stream followed"
                                  : Format("{} {} of its stream followed", WithThousands(later),
                                           later == 1 ? "operation" : "operations");
    if (process_.has_faulted()) {
      return Format("{}. The work that failed is {}; it had been {}, and {}.", ErrorText(),
                    WorkText(work), PendingText(launch), queue);
    }
    return Format("The GPU{} had not finished {}. It was {}, and {}.{}", XidText(), WorkText(work),
                  PendingText(launch), queue, OpenCallText());
  }

  std::string UndeliveredText() {
    const uint32_t launch = process_.undelivered.front().first;
    const std::string callers = CallersOf(launches_[launch]);
    if (process_.has_faulted()) {
      return Format("{}. The work that failed, or was lost, was launched by {}.", ErrorText(),
                    callers);
    }
    return Format("The GPU had not finished the work launched by {}, {}.{}", callers,
                  PendingText(launch), OpenCallText());
  }

  std::string CandidatesText() {
    TextCounts works;
    size_t looked_at = 0;
    for (const UnfinishedStream& stream : process_.streams) {
      // Many may be alike: the oldest stands for them.
      const bool are_many = !process_.knows_ends || stream.overlaps;
      const size_t shown = are_many ? 1 : stream.candidates;
      for (size_t i = 0; i < shown && looked_at < kMostLookedAt; ++i, ++looked_at) {
        works.Add(WorkText(stream.work[i]), 1);
      }
    }
    std::vector<std::string> named;
    for (const auto& [text, count] : works.all()) {
      named.push_back(count == 1 ? text : Format("{} times {}", WithThousands(count), text));
    }
    const std::vector<std::string> undelivered = ByCallers(process_.undelivered, "launched");
    named.insert(named.end(), undelivered.begin(), undelivered.end());
    uint64_t undelivered_count = 0;
    for (const LaunchGroup& launches : process_.undelivered) undelivered_count += launches.count;
    std::string text =
        process_.has_faulted()
            ? Format("{}. It was caused by one of {} operations", ErrorText(),
                     WithThousands(candidates_))
            : Format("The GPU{} had not finished one of {} operations, {}", XidText(),
                     WithThousands(candidates_), PendingText(OldestLaunch()));
    const bool has_more = looked_at + undelivered_count < candidates_;
    AppendFormat(text, " ({}), {}: {}", ReasonText(),
                 has_more ? "of which the oldest of each stream are" : "the oldest first",
                 Listed(named));
    return text + "." + (process_.has_faulted() ? "" : OpenCallText());
  }

  uint32_t OldestLaunch() const {
    return process_.streams.empty() ? process_.undelivered.front().first
                                    : analysis_.correlation.work.Get<&GpuWork::launch>(
                                          process_.streams.front().work.front());
  }

  // Why several may be the one.
  std::string ReasonText() const {
    if (!process_.undelivered.empty()) return "CUPTI had not delivered their records";
    if (!process_.knows_ends) return "times of finished work may be lost, too";
    if (process_.streams.size() > 1) {
      return Format("{} streams had unfinished work", process_.streams.size());
    }
    return process_.streams.front().overlaps ? "kernels of the stream overlap"
                                             : "nodes of one graph may run at once";
  }

  Analysis& analysis_;
  const UnfinishedProcess& process_;
  const LaunchList& launches_;
  const GpuNames names_;
  CallPaths paths_;
  ReadablePaths readable_;
  const GraphCreations creations_;
  const uint64_t candidates_;
};

}  // namespace

std::string UnfinishedText(Analysis& analysis) {
  std::vector<UnfinishedProcess> found = FindUnfinished(analysis);
  std::erase_if(found, [&](const auto& process) { return !IsStuck(analysis, process); });
  if (found.empty()) return "";
  const UnfinishedProcess& first = found.front();
  std::string text = UnfinishedSentences(analysis, first).Text();
  if (analysis.correlation.processes.size() > 1) {
    text = Format("Process {}: {}", analysis.correlation.PidOf(first.instance), text);
  }
  if (found.size() == 1) return text;
  std::string others;
  for (size_t i = 1; i < std::min(found.size(), 1 + kMostOthers); ++i) {
    AppendFormat(others, "{}{}", i == 1 ? "" : ",", analysis.correlation.PidOf(found[i].instance));
  }
  AppendFormat(text, " {} failed or did not finish work, too: --pid {}{}.",
               Counted(found.size() - 1, "other process", "other processes"), others,
               found.size() > 1 + kMostOthers ? ",..." : "");
  return text;
}

std::string EarlierWorkText(Analysis& analysis) {
  const LoadedEvents& events = analysis.model.events;
  for (const Loss& loss : events.losses) {
    const LossInfo* info = FindLoss(analysis.model.Text(loss.name));
    if (info == nullptr || info->kind != LossKind::kGpuNotFinished) continue;
    const bool has_begun = std::any_of(
        events.gpu_processes.begin(), events.gpu_processes.end(), [&](const GpuProcess& process) {
          return process.instance == loss.instance && process.state == InjectState::kActive;
        });
    if (has_begun) continue;
    const uint32_t pid = analysis.correlation.PidOf(loss.instance);
    CallPaths paths(analysis, {});
    ReadablePaths readable(analysis, paths.tree());
    return Format(
        "The GPU had not finished the work that process {} launched before the attach, so its GPU "
        "activity is missing. Its main thread was in {}.",
        pid, LastPlaceOf(analysis, paths, readable, pid, pid));
  }
  return "";
}

}  // namespace xpu
