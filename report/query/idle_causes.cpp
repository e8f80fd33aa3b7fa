#include "report/query/idle_causes.h"

#include <algorithm>
#include <array>

#include "format/base/saturated.h"
#include "format/base/text.h"

namespace xpu {
namespace {

// Processes that compile, by their name.
constexpr std::array<std::string_view, 13> kCompilers = {
    "ptxas", "nvlink", "nvcc",    "cicc", "cudafe++", "fatbinary", "cc1",
    "gcc",   "as",     "cc1plus", "ld",   "collect2", "clang"};
// Libraries that compile for a GPU.
constexpr std::array<std::string_view, 4> kCompilerLibraries = {
    "libnvrtc", "libnvidia-ptxjitcompiler", "libnvJitLink", "libnvvm"};

// A function in Python, by a part of the path of its file and a part of its name.
struct PythonPlace {
  std::string_view path;
  std::string_view name;
  Activity activity;
};
constexpr std::array<PythonPlace, 13> kPythonPlaces = {{
    {"<frozen importlib._bootstrap>", ":_find_and_load", Activity::kImport},
    {"torch/__init__.py", ":compile", Activity::kTorchCompile},
    {"torch/_dynamo/convert_frame.py", "", Activity::kTorchCompile},
    {"torch/_inductor/compile_fx.py", "", Activity::kTorchCompile},
    {"torch/_inductor/async_compile.py", "", Activity::kTorchCompile},
    {"torch/_inductor/compile_worker/", "", Activity::kTorchCompile},
    {"triton/compiler/", "", Activity::kTorchCompile},
    {"jax/_src/compiler.py", "", Activity::kXla},
    {"jax/_src/interpreters/mlir.py", "", Activity::kXla},
    {"jax/_src/interpreters/partial_eval.py", "", Activity::kXla},
    {"torch/cuda/__init__.py", ":_lazy_init", Activity::kInitialize},
    {"torch/utils/data/dataloader.py", "_next_data", Activity::kDataLoader},
    {"torch/utils/data/_utils/worker.py", "", Activity::kDataLoader},
}};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

template <typename List>
bool StartsWithOneOf(std::string_view text, const List& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view start) { return text.starts_with(start); });
}

Activity OfPython(const NamedFrame& frame) {
  if (frame.name.ends_with(":<module>")) return Activity::kNone;  // it is imported
  for (const PythonPlace& place : kPythonPlaces) {
    if (Contains(frame.module, place.path) && Contains(frame.name, place.name)) {
      return place.activity;
    }
  }
  return Activity::kNone;
}

Activity OfNative(const NamedFrame& frame) {
  const std::string_view name = frame.name;
  if (StartsWithOneOf(frame.module, kCompilerLibraries)) return Activity::kGpuCompiler;
  if (StartsWithOneOf(name, std::array<std::string_view, 2>{"cuModule", "cuLibrary"})) {
    return Activity::kLoadCode;
  }
  if (name == "cuInit" || name.starts_with("cuDevicePrimaryCtx") ||
      name.starts_with("cuCtxCreate")) {
    return Activity::kInitialize;
  }
  if (name.starts_with("xla::") && (Contains(name, "ompile") || Contains(name, "utotun"))) {
    return Activity::kXla;
  }
  // It also launches: only what it does to find out how.
  const bool is_cudnn = frame.module.starts_with("libcudnn") || Contains(name, "cudnn");
  const bool plans = Contains(name, "euristic") || Contains(name, "finalize") ||
                     Contains(name, "ngineConfig") || Contains(name, "cudnnFind") ||
                     Contains(name, "xecutionPlan");
  return is_cudnn && plans ? Activity::kCudnn : Activity::kNone;
}

Activity OfFrame(const NamedFrame& frame, bool is_thread) {
  if (is_thread) {
    const bool compiles =
        std::find(kCompilers.begin(), kCompilers.end(), frame.name) != kCompilers.end();
    if (compiles) return Activity::kGpuCompiler;
    return frame.name == "pt_data_worker" ? Activity::kDataLoader : Activity::kNone;
  }
  if (frame.name == kProfilerFrame) return Activity::kProfiler;
  return frame.origin == FrameOrigin::kPython ? OfPython(frame) : OfNative(frame);
}

}  // namespace

std::string_view ActivityName(Activity activity) {
  switch (activity) {
    case Activity::kNone:
      break;
    case Activity::kImport:
      return "importing Python modules";
    case Activity::kTorchCompile:
      return "torch.compile (Dynamo, Inductor, Triton)";
    case Activity::kXla:
      return "compiling with XLA";
    case Activity::kGpuCompiler:
      return "compilers (ptxas, NVRTC, ...)";
    case Activity::kCudnn:
      return "cuDNN selecting its algorithms";
    case Activity::kLoadCode:
      return "loading GPU code";
    case Activity::kInitialize:
      return "initializing CUDA";
    case Activity::kDataLoader:
      return "the data loader";
    case Activity::kProfiler:
      return "the profiler";
  }
  return {};
}

// The outermost one counts: what torch.compile imports is its own. But a program may be imported as
// a whole, and the profiler is never the program.
Activity IdleCauses::Of(PathId path) {
  const CallTree& tree = paths_.tree();
  while (activities_.size() < tree.nodes().size()) {
    const CallTree::Node& node = tree.nodes()[activities_.size()];
    const Activity outer = node.parent ? activities_[node.parent.value - 1] : Activity::kNone;
    const Activity own = OfFrame(analysis_.frames[node.frame], !node.parent);
    const bool overrides = own == Activity::kProfiler || outer == Activity::kNone ||
                           (outer == Activity::kImport && own != Activity::kNone);
    activities_.push_back(overrides ? own : outer);
  }
  return path ? activities_[path.value - 1] : Activity::kNone;
}

void IdleCauses::Add(const IdlePart& part) {
  const PathId path = idle_paths_.Of(part);
  const Activity activity = Of(path);
  Share& share = shares_[activity];
  share.activity = activity;
  share.ns = AddSaturated(share.ns, part.ns);
  if (part.cause == IdlePart::Cause::kOtherThread) {
    share.meanwhile_ns = AddSaturated(share.meanwhile_ns, part.ns);
  }
  whole_ns_ = AddSaturated(whole_ns_, part.ns);
  times_[activity][path] += part.ns;
}

std::vector<IdleCauses::Share> IdleCauses::Shares() const {
  std::vector<Share> shares;
  for (const auto& [activity, share] : shares_) shares.push_back(share);
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.ns > b.ns; });
  return shares;
}

std::string IdleCauses::PlaceOf(Activity activity) {
  const PathId most = MostOf(paths_.tree(), times_[activity]);
  if (!most || !paths_.tree()[most].parent) return {};
  const std::string place = analysis_.frames[paths_.tree()[most].frame].Label();
  if (place == "[unknown launch]") return {};
  for (PathId path = paths_.tree()[most].parent; path; path = paths_.tree()[path].parent) {
    if (analysis_.frames[paths_.tree()[path].frame].name == kNoSampleFrame) {
      return Format("waiting for the next {}", place);
    }
  }
  return place;
}

}  // namespace xpu
