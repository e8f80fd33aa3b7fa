// Pass 1: the whole capture into memory, lists in the order of the file.
#pragma once

#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/model/model.h"

namespace xpu {

Result<Model> LoadCapture(const std::string& path);
// Several captures as one: the parts of a recording joined (join_parts.h), then merged
// (merge_captures.h). A directory stands for the captures in it, *.xpu. Where there are several, a
// capture that cannot be read at all is left out and reported in `unreadable`.
Result<Model> LoadCaptures(const std::vector<std::string>& paths,
                           const std::vector<HostClock>& corrections = {},
                           std::string* unreadable = nullptr);
// The captures in a directory, by name and never none, or `path` itself if it is no directory.
Result<std::vector<std::string>> CapturesAt(const std::string& path);
// The events of `more`, which is empty afterwards or as before, after those of `all`.
void AppendEvents(LoadedEvents& all, EventBatch& more);
Result<Model> LoadCapture(CaptureReader reader, std::string path);

}  // namespace xpu
