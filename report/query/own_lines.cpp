#include "report/query/own_lines.h"

#include <algorithm>

#include "format/base/source_name.h"

namespace xpu {

std::string OwnLines::Of(const std::vector<FrameId>& path,
                         const std::map<StackId, uint64_t>& stacks) {
  const FrameTable& frames = analysis_.frames;
  const auto own = std::find_if(path.rbegin(), path.rend(), [&](FrameId frame) {
    return frames[frame].origin == FrameOrigin::kPython && !IsInstalledPython(frames[frame].module);
  });
  if (own == path.rend()) return {};
  std::map<FrameId, uint64_t> times;
  for (const auto& [stack, ns] : stacks) {
    if (const FrameId frame = WithLine(stack, frames[*own])) times[frame] += ns;
  }
  const auto most = std::max_element(
      times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == times.end() ? std::string() : frames[most->first].Label();
}

// The innermost call of a function in a stack; none: it is not in it.
FrameId OwnLines::WithLine(StackId stack, const NamedFrame& function) {
  for (const PythonGroup& group : lines_.Resolve(stack).groups) {
    for (const FrameId id : group.frames) {
      const NamedFrame& frame = analysis_.frames[id];
      if (frame.name == function.name && frame.module == function.module) return id;
    }
  }
  return {};
}

}  // namespace xpu
