#include "report/workload/frame_families.h"

#include <algorithm>
#include <array>

#include "report/stacks/python_frames.h"

namespace xpu {
namespace {

// How the names of functions begin, without the type that templates return.
constexpr std::array<std::string_view, 15> kDispatcher = {
    "c10::Dispatcher::",
    "c10::KernelFunction::",
    "c10::TypedOperatorHandle<",
    "c10::OperatorHandle::",
    "c10::impl::",
    "c10::detail::",
    "at::(anonymous namespace)::wrapper_",
    "at::(anonymous namespace)::(anonymous namespace)::wrapper_",
    "torch::autograd::VariableType::",
    "torch::autograd::THPVariable_",
    "torch::autograd::TypeError_to_NotImplemented_<",
    "torch::ADInplaceOrView::",
    "torch::autograd::Engine::thread_",
    "torch::autograd::python::PythonEngine::thread_",
    "torch::jit::invokeOperatorFromPython",
};
// Of Python, whole names.
constexpr std::array<std::string_view, 6> kPythonDispatcher = {
    "module.py:Module._wrapped_call_impl",
    "module.py:Module._call_impl",
    "module.py:Module._call_impl.<locals>.inner",
    "_contextlib.py:context_decorator.<locals>.decorate_context",
    "optimizer.py:Optimizer.profile_hook_step.<locals>.wrapper",
    "optimizer.py:_use_grad_for_differentiable.<locals>._use_grad",
};

bool IsRedispatch(std::string_view name) {
  if (!name.starts_with("at::_ops::")) return false;
  return name.substr(0, name.find('(')).ends_with("::redispatch");
}

// "at::Tensor c10::impl::f<at::Tensor (long)>(long)" -> from "c10".
std::string_view WithoutReturnType(std::string_view name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  size_t depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
      continue;
    }
    if (name[i] == '<') ++depth;
    if (name[i] == '>' && depth > 0) --depth;
    if (depth > 0) continue;
    if (name[i] == '(') break;  // the arguments
    if (name[i] == ' ') begin = i + 1;
  }
  return name.substr(begin);
}

}  // namespace

std::string_view NameOf(FrameFamily family) {
  constexpr std::array<std::string_view, kFrameFamilies> kNames = {"", "[dispatcher]",
                                                                   "[interpreter]", "[import]"};
  return kNames[static_cast<size_t>(family)];
}

FrameFamily FrameFamilyOf(const NamedFrame& frame) {
  const std::string_view name = frame.name;
  if (frame.origin == FrameOrigin::kPython) {
    if (IsPythonImport(frame)) return FrameFamily::kImport;
    const bool is_call = std::find(kPythonDispatcher.begin(), kPythonDispatcher.end(), name) !=
                         kPythonDispatcher.end();
    return is_call ? FrameFamily::kDispatcher : FrameFamily::kNone;
  }
  if (frame.origin != FrameOrigin::kUser) return FrameFamily::kNone;
  if (IsPythonModule(frame.module)) return FrameFamily::kInterpreter;
  const std::string_view function = WithoutReturnType(name);
  const bool is_dispatcher =
      IsRedispatch(function) ||
      std::any_of(kDispatcher.begin(), kDispatcher.end(),
                  [&](std::string_view begin) { return function.starts_with(begin); });
  return is_dispatcher ? FrameFamily::kDispatcher : FrameFamily::kNone;
}

}  // namespace xpu
