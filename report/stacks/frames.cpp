#include "report/stacks/frames.h"

#include <algorithm>
#include <array>

#include "report/base/text.h"

namespace xpu {
namespace {

constexpr std::string_view kLoopName = "_PyEval_EvalFrameDefault";
// Functions of Python 3.14 built with tail calls: each handles one instruction and jumps to the
// next one's.
constexpr std::string_view kHandlers = "_TAIL_CALL_";

// Every name that begins so counts: there are variants for what is passed.
constexpr std::array<std::string_view, 13> kCalls = {
    "PyEval_EvalCode",    "PyEval_EvalFrame",  "PyObject_Call",     "PyObject_Vectorcall",
    "PyVectorcall_Call",  "_PyCFunction_Fast", "_PyEval_EvalFrame", "_PyEval_Vector",
    "_PyFunction_Vector", "_PyObject_Call",    "_PyObject_Fast",    "_PyObject_MakeTpCall",
    "_PyObject_Vector"};

// These count in the interpreter's own file only: the names are not reserved for it.
constexpr std::array<std::string_view, 20> kLocalCalls = {
    "call_unbound",          "cfunction_call",
    "classmethoddescr_call", "cfunction_vectorcall",
    "gen_iternext",          "gen_send",
    "method_call",           "method_vectorcall",
    "object_vacall",         "py_trampoline_evaluator",
    "slot_tp_call",          "slot_tp_init",
    "slot_tp_new",           "type_call",
    "type_vectorcall",       "vectorcall_maybe",
    "vectorcall_method",     "wrapper_call",
    "wrapperdescr_call",     "wrapperdescr_vectorcall"};

constexpr std::array<std::string_view, 10> kStarts = {"__clone",
                                                      "__clone3",
                                                      "__libc_start_call_main",
                                                      "__libc_start_main",
                                                      "__libc_start_main_impl",
                                                      "_start",
                                                      "clone",
                                                      "clone3",
                                                      "start_thread",
                                                      "thread_start"};

template <size_t kSize>
bool HasBegin(const std::array<std::string_view, kSize>& begins, std::string_view name) {
  return std::any_of(begins.begin(), begins.end(),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

// A walk by frame pointers through code that has none may invent this many frames in a row.
constexpr size_t kMaxInvented = 2;

bool IsNameless(const NamedFrame& frame) {
  return frame.name == "[unknown]" || frame.name == "[anon]";
}

}  // namespace

PythonRole PythonRoleOf(std::string_view symbol, std::string_view module) {
  // Compilers mark what they made of a function: "type_call.cold", "gen_send_ex2.lto_priv.0".
  const size_t dot = std::min(symbol.find('.'), symbol.size());
  const std::string_view name = symbol.substr(0, dot);
  if (name == kLoopName) {
    return symbol.substr(dot).starts_with(".part") ? PythonRole::kLoopPart : PythonRole::kLoop;
  }
  if (name.starts_with(kHandlers)) return PythonRole::kLoopPart;
  // Python's own trampolines of -X perf, one for each function.
  if (symbol.starts_with("py::")) return PythonRole::kCall;
  if (HasBegin(kCalls, name)) return PythonRole::kCall;
  if (IsPythonModule(module) && HasBegin(kLocalCalls, name)) return PythonRole::kCall;
  const bool is_start = std::find(kStarts.begin(), kStarts.end(), name) != kStarts.end();
  return is_start ? PythonRole::kStart : PythonRole::kNone;
}

bool IsPythonModule(std::string_view module) {
  const bool is_library = module.starts_with("lib");
  if (is_library) module.remove_prefix(3);
  if (!module.starts_with("python")) return false;
  module.remove_prefix(6);
  // The version and the letters of the build: "3.12", "3.13t", "2.7dmu".
  const size_t end = module.find_first_not_of("0123456789.dmtu");
  const std::string_view rest = module.substr(std::min(end, module.size()));
  return is_library ? rest.starts_with("so") : rest.empty() || rest.starts_with("-dbg");
}

std::string NamedFrame::Label() const {
  std::string label = name + place;
  if (origin == FrameOrigin::kKernel) label += "_[k]";
  if (is_inlined) label += " (inlined)";
  return label;
}

FrameId FrameTable::Intern(const NamedFrame& frame) {
  std::string key(1, static_cast<char>(frame.origin));
  key += frame.is_inlined ? 'i' : ' ';
  key += frame.module;
  key += '\0';
  key += frame.name;
  key += '\0';
  key += frame.place;
  const auto [at, is_new] = ids_.try_emplace(std::move(key));
  if (is_new) {
    frames_.push_back(frame);
    at->second = FrameId{static_cast<uint32_t>(frames_.size())};
  }
  return at->second;
}

std::string FoldedText(const FrameTable& frames, std::span<const FrameId> path) {
  std::string text;
  for (const FrameId frame : path) {
    if (!text.empty()) text += ';';
    text += ToFoldedFrame(frames[frame].Label());
  }
  return text;
}

size_t CountInternalFrames(std::span<const FrameId> innermost_first, const FrameTable& frames) {
  size_t internal = 0;
  size_t invented = 0;
  for (size_t i = 0; i < innermost_first.size() && invented <= kMaxInvented; ++i) {
    const NamedFrame& frame = frames[innermost_first[i]];
    if (frame.is_cuda_internal || frame.origin == FrameOrigin::kKernel) {
      internal = i + 1;
      invented = 0;
    } else if (IsNameless(frame)) {
      ++invented;
    } else {
      break;
    }
  }
  // Not in libcuda and similar tools: they call the program back on threads of theirs, and what the
  // program does there is the user's.
  for (size_t i = innermost_first.size(); i > internal; --i) {
    const NamedFrame& frame = frames[innermost_first[i - 1]];
    if (frame.is_api_entry && !frame.is_cuda_internal) return i;
  }
  return internal;
}

}  // namespace xpu
