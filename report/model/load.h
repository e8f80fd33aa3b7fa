// Loads a whole capture into memory, lists in the order of the file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/model/model.h"

namespace xpu {

// One of several captures that are to be merged.
struct CaptureOnClock {
  const Model* model = nullptr;
  size_t host = 0;        // its clock in the list of them
  uint64_t later_ns = 0;  // that clock began so much later than the first, by the wall clock
};
// Returns the clocks of hosts, aligned by the wall clock, as what the captures have in common shows
// them to be.
using RefineClocks = std::function<std::vector<HostClock>(std::span<const CaptureOnClock> captures,
                                                          std::vector<HostClock> clocks)>;

Result<Model> LoadCapture(const std::string& path);
// Several captures as one: the parts of a recording joined, then merged. A directory stands for the
// captures in it, *.xpu. Where there are several, a capture that cannot be read at all is left out
// and reported in `unreadable`.
Result<Model> LoadCaptures(const std::vector<std::string>& paths, const RefineClocks& refine = {},
                           std::string* unreadable = nullptr);
// The captures in a directory, by name and never none, or `path` itself if it is no directory.
Result<std::vector<std::string>> CapturesAt(const std::string& path);
// The events of `more`, which is empty afterwards or as before, after those of `all`.
void AppendEvents(LoadedEvents& all, EventBatch& more);
Result<Model> LoadCapture(CaptureReader reader, std::string path);

// ---- join_parts.cpp
//
// The captures that one recording was cut into (xpu-record --rotate-size), as the one capture that
// they would have been: what began in one part and ended in the next one meets, and what each part
// repeats so that it can be read alone is there once.

// A capture as it was read.
struct LoadedPart {
  Model model;            // without
  LoadedEvents restated;  // what repeats earlier events, of this capture or of parts before it
};

void AddProblems(ReadProblems& all, const ReadProblems& more);

// A capture, or a part of a recording alone.
Model WithRestated(LoadedPart part);
// Groups the parts of each recording and joins them; other captures stay what they are. kUsage: one
// part twice.
Result<std::vector<Model>> JoinParts(std::vector<LoadedPart> captures);

// ---- merge_captures.cpp
//
// Several captures as one: of processes on several hosts, or of one program at several times.

// Numbers of processes and threads of the second capture have this added, those of the third twice
// this, and so on: more than any that Linux gives.
inline constexpr uint32_t kPidsPerCapture = 4'200'000;
inline constexpr size_t kMaxCaptures = 1000;

// Returns the identity of a host: the boot of its kernel, whose CLOCK_MONOTONIC its captures share,
// or its name where that is not known.
std::string HostKeyOf(const Model& model, const RecordingInfo& info);

// Captures of one boot share a clock. Others are aligned by the wall clock, as each recorder saw it
// when it started, and then by `refine`, if there are several hosts. The merged times count on the
// CLOCK_MONOTONIC of the host that started first. With captures of several hosts, the names of
// processes and threads end in "@host". kUsage: too many, or one recording twice.
Result<Model> MergeCaptures(std::vector<Model> captures, const RefineClocks& refine = {});

}  // namespace xpu
