#include "report/query/readable_paths.h"

#include <algorithm>
#include <array>
#include <utility>

#include "format/base/source_name.h"
#include "format/base/text.h"
#include "report/analysis/kernel_name.h"
#include "report/base/text.h"
#include "report/stacks/python_frames.h"

namespace xpu {
namespace {

// How each program and thread begins, which says nothing about any of them.
bool IsStartUp(const NamedFrame& frame) {
  constexpr std::array<std::string_view, 10> kNames = {"_start",
                                                       "__libc_start_main",
                                                       "__libc_start_main_impl",
                                                       "__libc_start_call_main",
                                                       "start_thread",
                                                       "clone",
                                                       "__clone",
                                                       "clone3",
                                                       "__clone3",
                                                       "execute_native_thread_routine"};
  return std::find(kNames.begin(), kNames.end(), frame.name) != kNames.end();
}

bool IsInformative(const NamedFrame& frame) {
  const bool is_placeholder = frame.name.starts_with('[');  // "[anon]"
  return !frame.nameless_in && !is_placeholder && !IsStartUp(frame);
}

}  // namespace

PathId ReadablePaths::Of(PathId path) {
  if (const PathId known = known_.Get(path.value)) return known;
  const FrameTable& frames = analysis_.frames;
  const std::vector<FrameId> whole = tree_.Path(path);
  const bool has_python = std::any_of(whole.begin(), whole.end(), [&](FrameId frame) {
    return frames[frame].origin == FrameOrigin::kPython;
  });
  PathId readable;
  for (const FrameId frame : has_python ? WithPython(whole) : Native(whole)) {
    readable = tree_.Child(readable, Bare(frame));
  }
  return known_[path.value] = readable;
}

std::string ReadablePaths::OwnFunctions(PathId path) {
  constexpr size_t kMost = 3;
  constexpr size_t kWidth = 60;
  const FrameTable& frames = analysis_.frames;
  std::vector<FrameId> functions = tree_.Path(Of(path));
  std::erase_if(functions, [&](FrameId id) {
    return !frames[id].IsFunction() || frames[id].origin == FrameOrigin::kKernel ||
           frames[id].name.starts_with("__device_stub__");
  });
  const auto own = std::find_if(functions.rbegin(), functions.rend(), [&](FrameId id) {
    return frames[id].origin == FrameOrigin::kPython && !IsInstalledPython(frames[id].module);
  });
  if (own != functions.rend()) functions.erase(own.base(), functions.end());
  std::string text;
  for (size_t i = functions.size() - std::min(functions.size(), kMost); i < functions.size(); ++i) {
    AppendFormat(text, "{}{}", text.empty() ? "" : " > ",
                 ToWidth(frames[functions[i]].Label(), kWidth));
  }
  return text.empty() ? "unknown code" : text;
}

// Keeps of native code only the function that the innermost Python one calls: the operator. Of an
// import its name: what a package does when it is imported is its own, and may go through dozens of
// others.
std::vector<FrameId> ReadablePaths::WithPython(const std::vector<FrameId>& path) {
  const FrameTable& frames = analysis_.frames;
  std::vector<FrameId> shown;
  size_t python = 0;
  for (size_t i = 0; i < path.size(); ++i) {
    if (frames[path[i]].origin == FrameOrigin::kPython) python = i;
  }
  bool has_operator = false;
  bool is_import = false;
  for (size_t i = 0; i < path.size(); ++i) {
    const NamedFrame& frame = frames[path[i]];
    if (is_import && frame.IsFunction()) continue;
    if (frame.IsNative()) {
      if (i < python || has_operator || !IsInformative(frame)) continue;
      has_operator = true;
    } else if (IsPythonImport(frame)) {
      const std::optional<std::string> import = ImportAt(path, i);
      is_import = import.has_value();
      if (is_import) shown.push_back(analysis_.frames.Intern(*import));
      continue;
    }
    shown.push_back(path[i]);
  }
  return shown;
}

// "[import torch]", where the code that carries out an import begins at `at`. None of a module of
// the program's own: a program may be imported as a whole.
std::optional<std::string> ReadablePaths::ImportAt(const std::vector<FrameId>& path,
                                                   size_t at) const {
  const FrameTable& frames = analysis_.frames;
  const auto imported =
      std::find_if(path.begin() + static_cast<ptrdiff_t>(at), path.end(), [&](FrameId frame) {
        return frames[frame].origin == FrameOrigin::kPython && !IsPythonImport(frames[frame]);
      });
  if (imported == path.end()) return "[import]";
  const std::string& file = frames[*imported].module;
  if (!IsInstalledPython(file)) return std::nullopt;
  return Format("[import {}]", PythonModuleName(file));
}

std::vector<FrameId> ReadablePaths::Native(const std::vector<FrameId>& path) const {
  const FrameTable& frames = analysis_.frames;
  const bool has_names = std::any_of(path.begin(), path.end(), [&](FrameId frame) {
    return frames[frame].IsNative() && IsInformative(frames[frame]);
  });
  std::vector<FrameId> shown;
  for (const FrameId frame : path) {
    // A path without any name stays: its addresses are all that there is.
    if (has_names && frames[frame].IsNative() && !IsInformative(frames[frame])) continue;
    shown.push_back(frame);
  }
  return shown;
}

FrameId ReadablePaths::Bare(FrameId frame) {
  if (!analysis_.frames[frame].IsNative()) return frame;
  FrameId& bare = bare_[frame.value];
  if (!bare) {
    NamedFrame named = analysis_.frames[frame];
    named.name = BareFunctionName(named.name);
    bare = analysis_.frames.Intern(named);
  }
  return bare;
}

std::string LastPlaceOf(const Analysis& analysis, CallPaths& paths, ReadablePaths& readable,
                        uint32_t pid, uint32_t tid) {
  std::pair<bool, uint64_t> last;  // has Python functions, time
  PathId path;
  const auto see = [&](const auto& event, uint64_t time_ns, auto path_of) {
    const std::pair<bool, uint64_t> seen(event.python_stack.value != 0, time_ns);
    if (event.pid != pid || event.tid != tid || seen < last) return;
    last = seen;
    path = path_of();
  };
  for (const Owned<CpuSample>& sample : analysis.model.events.cpu_samples) {
    see(sample, sample.time_ns, [&] { return paths.Of(sample); });
  }
  for (const Owned<OffCpuWait>& wait : analysis.model.events.off_cpu_waits) {
    see(wait, wait.end_ns, [&] { return paths.OfWait(wait); });
  }
  for (const Launch& launch : analysis.correlation.launches) {
    see(launch, launch.start_ns, [&] { return paths.OfLaunch(launch); });
  }
  return path ? readable.OwnFunctions(path) : "unknown code";
}

}  // namespace xpu
