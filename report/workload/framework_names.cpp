#include "report/workload/framework_names.h"

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
// Whole names of Python functions.
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

constexpr std::string_view kAten = "at::_ops::";
constexpr std::string_view kAutograd = "torch::autograd::";
constexpr std::string_view kApply = "::apply(";

// Overloads that begin with a lower-case letter, the longest first. Of the 2,952 operators of
// PyTorch 1.13 the rules below name 97 % right, those that launch kernels nearly all. Overloads
// such as "generator", which more operators have as the end of their own name, are left out.
constexpr std::array<std::string_view, 56> kOverloads = {
    "tensor_indices_or_sections",
    "generator_with_names",
    "names_dim_values",
    "correction_names",
    "periodic_alpha",
    "memory_format",
    "values_stable",
    "self_Tensor",
    "dtype_layout",
    "float_Tensor",
    "value_reduce",
    "other_scalar",
    "dim_IntList",
    "float_float",
    "self_scalar",
    "correction",
    "dim_values",
    "grad_input",
    "int_Scalar",
    "int_Tensor",
    "start_step",
    "using_ints",
    "dim_dtype",
    "low_dtype",
    "names_dim",
    "decimals",
    "int_bins",
    "n_scalar",
    "out_mode",
    "periodic",
    "self_int",
    "sections",
    "x_scalar",
    "dim_int",
    "dim_max",
    "dim_min",
    "dimname",
    "from_to",
    "ord_str",
    "padding",
    "device",
    "scalar",
    "stable",
    "values",
    "dtype",
    "names",
    "other",
    "sizes",
    "start",
    "value",
    "self",
    "dim",
    "int",
    "low",
    "src",
    "vec",
};
// Operators whose own names end like an overload.
constexpr std::array<std::string_view, 8> kWholeNames = {
    "split_with_sizes", "unsafe_split_with_sizes", "split_with_sizes_copy", "take_along_dim",
    "unique_dim",       "norm_except_dim",         "_remove_batch_dim",     "_add_batch_dim"};

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

std::string_view WithoutOverload(std::string_view name) {
  if (std::find(kWholeNames.begin(), kWholeNames.end(), name) != kWholeNames.end()) return name;
  if (name.starts_with("__")) {  // "__and___Tensor"
    const size_t end = name.find("__", 2);
    return end == std::string_view::npos ? name : name.substr(0, end + 2);
  }
  // "add__Tensor": in place.
  if (const size_t at = name.find("__", 1); at != std::string_view::npos) {
    return name.substr(0, at + 1);
  }
  constexpr std::string_view kOut = "_out";
  if (name.ends_with(kOut)) name.remove_suffix(kOut.size());
  for (const std::string_view overload : kOverloads) {
    if (!name.ends_with(overload) || name.size() < overload.size() + 2) continue;
    const size_t at = name.size() - overload.size() - 1;
    if (name[at] == '_') return name.substr(0, at);
  }
  if (name.starts_with("_cast_")) return name;  // "_cast_Float"
  for (size_t i = 1; i + 1 < name.size(); ++i) {
    if (name[i] == '_' && IsUpper(name[i + 1])) return name.substr(0, i);
  }
  return name;
}

// A part of a name, or its beginning.
struct KernelRule {
  std::string_view text;
  bool at_begin = false;
  std::string_view library;
};

// The first that fits. Libraries that use another one come before it: cuDNN and cuBLAS contain
// kernels of CUTLASS, PyTorch some of CUB.
constexpr std::array<KernelRule, 49> kKernelRules = {{
    {"nccl", true, "NCCL"},
    {"nvshmem", true, "NVSHMEM"},
    {"triton_", true, kTriton},
    {"flash_fwd", false, "FlashAttention"},
    {"flash_bwd", false, "FlashAttention"},
    {"flash::", false, "FlashAttention"},
    {"fmha_", true, "fused attention"},
    {"cudnn", false, "cuDNN"},
    {"implicit_gemm", false, "cuDNN"},
    {"implicit_convolve", false, "cuDNN"},
    {"xmma_fprop", false, "cuDNN"},
    {"xmma_dgrad", false, "cuDNN"},
    {"xmma_wgrad", false, "cuDNN"},
    {"_fprop_", false, "cuDNN"},
    {"dgrad_", false, "cuDNN"},
    {"wgrad_", false, "cuDNN"},
    {"winograd", false, "cuDNN"},
    {"cublasLt", false, "cuBLASLt"},
    {"nvjet", true, "cuBLASLt"},
    {"cublas", false, "cuBLAS"},
    {"gemvx::", false, "cuBLAS"},
    {"gemv2", false, "cuBLAS"},
    {"gemvNSP", false, "cuBLAS"},
    {"gemmSN", false, "cuBLAS"},
    {"gemmk1", false, "cuBLAS"},
    {"dot_kernel", true, "cuBLAS"},
    {"splitKreduce_kernel", false, "cuBLAS"},
    {"xmma_gemm", false, "cuBLAS"},
    {"volta_", true, "cuBLAS"},
    {"turing_", true, "cuBLAS"},
    {"ampere_", true, "cuBLAS"},
    {"hopper_", true, "cuBLAS"},
    {"cutlass", false, "CUTLASS"},
    {"cufft", false, "cuFFT"},
    {"vector_fft", false, "cuFFT"},
    {"regular_fft", false, "cuFFT"},
    {"cusparse", false, "cuSPARSE"},
    {"cusolver", false, "cuSOLVER"},
    {"curand", false, "cuRAND"},
    {"at::native::", false, "PyTorch"},
    {"at::cuda::", false, "PyTorch"},
    {"at_cuda_detail::", false, "PyTorch"},
    {"c10::", false, "PyTorch"},
    {"vllm::", false, "vLLM"},
    {"stream_executor::", false, "XLA"},
    {"thrust::", false, "Thrust"},
    {"cub::", false, "CUB"},
    {"cupy_", true, "CuPy"},
    {"nvfuser", false, "nvFuser"},
}};

// Fusions that XLA has named: "loop_add_fusion", "input_reduce_fusion_2", "wrapped_broadcast".
bool IsXlaFusion(std::string_view kernel) {
  while (!kernel.empty() &&
         (kernel.back() == '_' || (kernel.back() >= '0' && kernel.back() <= '9'))) {
    kernel.remove_suffix(1);
  }
  return kernel == "fusion" || kernel.ends_with("_fusion") || kernel.starts_with("gemm_fusion") ||
         kernel.starts_with("wrapped_");
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

std::string AtenOperatorOf(std::string_view function) {
  if (!function.starts_with(kAten)) return {};
  function.remove_prefix(kAten.size());
  const size_t end = function.find("::");
  if (end == std::string_view::npos || end == 0) return {};
  const std::string_view step = function.substr(end + 2);
  if (!step.starts_with("call") && !step.starts_with("redispatch")) return {};
  return "aten::" + std::string(WithoutOverload(function.substr(0, end)));
}

std::string AutogradNodeOf(std::string_view function) {
  if (!function.starts_with(kAutograd)) return {};
  const size_t end = function.find(kApply);
  if (end == std::string_view::npos) return {};
  const std::string_view path = function.substr(0, end);
  const std::string_view name = path.substr(path.rfind("::") + 2);
  const bool is_name = name.find_first_of("<>() ") == std::string_view::npos;
  return is_name ? std::string(name) : std::string();
}

bool IsAutogradEngine(std::string_view function) {
  return function.starts_with("torch::autograd::Engine::");
}

std::string PythonNodeOf(std::string_view function) {
  constexpr std::string_view kBackward = ".backward";
  if (!function.ends_with(kBackward)) return {};
  function.remove_suffix(kBackward.size());
  const size_t begin = function.find_last_of(".:");
  if (begin != std::string_view::npos) function.remove_prefix(begin + 1);
  return function.empty() ? std::string() : std::string(function) + "Backward";
}

std::string_view XlaField(std::string_view range, std::string_view key) {
  size_t at = range.find('#');
  while (at != std::string_view::npos && ++at < range.size()) {
    const std::string_view rest = range.substr(at);
    if (rest.starts_with(key) && rest.substr(key.size()).starts_with("=")) {
      const std::string_view value = rest.substr(key.size() + 1);
      return value.substr(0, value.find_first_of(",#"));
    }
    at = range.find_first_of(",#", at);
  }
  return {};
}

std::string_view KernelLibraryOf(std::string_view kernel) {
  if (kernel.starts_with("void ")) kernel.remove_prefix(5);
  for (const KernelRule& rule : kKernelRules) {
    const size_t at = kernel.find(rule.text);
    if (rule.at_begin ? at == 0 : at != std::string_view::npos) return rule.library;
  }
  return IsXlaFusion(kernel) ? "XLA" : "other";
}

}  // namespace xpu
