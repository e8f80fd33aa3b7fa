// Several captures as one: of processes on several hosts, or of one program at several times.
#pragma once

#include <vector>

#include "format/base/result.h"
#include "report/model/model.h"

namespace xpu {

// Numbers of processes and threads of the second capture have this added, those of the third twice
// this, and so on: more than any that Linux gives.
inline constexpr uint32_t kPidsPerCapture = 10'000'000;
inline constexpr size_t kMaxCaptures = 256;

// What makes a host one: the boot of its kernel, whose CLOCK_MONOTONIC all of its captures share,
// or its name where that is not known.
std::string HostKeyOf(const Model& model, const RecordingInfo& info);

// Captures of one boot share a clock. Others are aligned by the wall clock, as each recorder saw it
// when it started, and then by `corrections`, if there are any: by HostClock::key. The merged times
// count on the CLOCK_MONOTONIC of the host that started first. With captures of several hosts, the
// names of processes and threads end in "@host". kUsage: too many, or one recording twice.
Result<Model> MergeCaptures(std::vector<Model> captures,
                            const std::vector<HostClock>& corrections = {});

}  // namespace xpu
