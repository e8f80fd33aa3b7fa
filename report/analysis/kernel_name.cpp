#include "report/analysis/kernel_name.h"

#include <algorithm>
#include <array>

#include "report/analysis/template_name.h"
#include "report/base/text.h"

namespace xpu {
namespace {

// Longer ones are made up, and taken as they are.
constexpr size_t kLongestName = 8192;

// They name no library that a user would look for, and are in nearly every name of PyTorch.
constexpr std::array<std::string_view, 5> kNamespaces = {
    "(anonymous namespace)::", "at::native::", "at_cuda_detail::", "at::cuda::detail::", "c10::"};

// Beginnings of arguments that say how memory is reached, not what is computed.
constexpr std::array<std::string_view, 11> kMemoryArguments = {"std::array<",
                                                               "at::detail::Array<",
                                                               "std::allocator<",
                                                               "std::pmr::polymorphic_allocator<",
                                                               "TrivialOffsetCalculator<",
                                                               "OffsetCalculator<",
                                                               "TensorListMetadata<",
                                                               "memory::Load",
                                                               "memory::Store",
                                                               "cublasGemvParams",
                                                               "cublasGemvTensor"};

bool IsNameCharacter(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

void EraseNamespaces(std::string& name) {
  for (const std::string_view space : kNamespaces) {
    for (size_t at = name.find(space); at != std::string::npos; at = name.find(space, at)) {
      const bool begins_here = at == 0 || (!IsNameCharacter(name[at - 1]) && name[at - 1] != ':');
      if (begins_here || space.front() == '(') {
        name.erase(at, space.size());
      } else {
        at += space.size();
      }
    }
  }
}

// "f::{lambda()#1}" of "f(int)::{lambda()#1}": the parameters of what encloses something.
std::string WithoutInnerParameters(std::string_view name) {
  constexpr std::string_view kConst = " const";
  std::string out;
  for (size_t at = 0; at < name.size(); ++at) {
    const bool is_list =
        name[at] == '(' && at > 0 && !name.substr(0, at).ends_with("operator") &&
        (IsNameCharacter(name[at - 1]) || name[at - 1] == '>' || name[at - 1] == ')');
    if (!is_list) {
      out += name[at];
      continue;
    }
    const size_t end = ClosingBracket(name, at);
    if (end == std::string_view::npos) {
      // A damaged name. Not tried at each of its brackets, which would take the square of its size.
      return out += name.substr(at);
    }
    std::string_view rest = name.substr(end + 1);
    if (rest.starts_with(kConst)) rest.remove_prefix(kConst.size());
    if (!rest.starts_with("::")) {
      out += name.substr(at, end + 1 - at);
      at = end;
    } else {
      at = name.size() - rest.size() - 1;
    }
  }
  return out;
}

// "f::{lambda(float)#1}" of "f::{lambda()#2}::operator()::{lambda(float)#1}": the innermost one is
// what runs; those around it switch over the type, which it has.
std::string WithoutOuterLambdas(std::string name) {
  constexpr std::string_view kCall = "::operator()::{";
  for (size_t at = name.find(kCall); at != std::string::npos; at = name.find(kCall, at)) {
    size_t begin = at;
    if (at > 0 && name[at - 1] == '}') {
      const size_t outer = name.rfind("::{lambda", at);
      if (outer != std::string::npos) begin = outer;
    }
    name.erase(begin, at + kCall.size() - 3 - begin);
    at = begin;
  }
  return name;
}

bool IsMemoryArgument(const TemplateName& argument) {
  const std::string text = argument.Text();
  return std::any_of(kMemoryArguments.begin(), kMemoryArguments.end(),
                     [&](std::string_view begin) { return text.starts_with(begin); });
}

// Calls `edit` for each list of arguments, the innermost first.
template <typename Edit>
void ForEachList(TemplateName& name, Edit edit, bool is_outermost = true) {
  for (TemplateName::Part& part : name.parts) {
    if (!part.has_list) continue;
    for (TemplateName& argument : part.arguments) ForEachList(argument, edit, false);
    edit(part, is_outermost);
  }
}

void DropMemoryArguments(TemplateName::Part& part, bool /*is_outermost*/) {
  const bool all = std::all_of(part.arguments.begin(), part.arguments.end(), IsMemoryArgument);
  if (!all) std::erase_if(part.arguments, IsMemoryArgument);
}

// "A<..>::B", "f::{lambda(int)#1}" of "ns::f::{lambda(int)#1}".
void DropNamespaces(TemplateName& name) {
  std::string& text = name.parts.front().text;
  if (text.starts_with('(')) return;  // a value of an enum: "(ns::Kind)0"
  const size_t scope = text.rfind("::", std::min(text.find("::{"), text.size()) - 1);
  if (text.find("::") != 0 && scope != std::string::npos && scope != text.find("::{")) {
    text.erase(0, scope + 2);
  }
}

void DropLambda(TemplateName& name) {
  std::string& text = name.parts.back().text;
  const size_t at = text.rfind("::{lambda");
  if (at == std::string::npos || (at == 0 && name.parts.size() == 1)) return;
  text.erase(at);
  if (text.empty()) name.parts.pop_back();
}

// A number or a type that says nothing of what is computed.
bool IsPlain(const TemplateName& argument) {
  constexpr std::array<std::string_view, 19> kPlain = {
      "float", "double",        "int",      "long",     "short",  "char", "bool",
      "void",  "true",          "false",    "unsigned", "signed", "half", "__half",
      "Half",  "__nv_bfloat16", "BFloat16", "uint4",    "const"};
  if (argument.parts.size() > 1 || argument.parts.front().has_list) return false;
  const std::string_view text = argument.parts.front().text;
  if (text.empty() || !IsNameCharacter(text.front()) ||
      (text.front() >= '0' && text.front() <= '9')) {
    return !text.starts_with('{');
  }
  const size_t end = std::min(text.find_first_of(" *&"), text.size());
  return std::find(kPlain.begin(), kPlain.end(), text.substr(0, end)) != kPlain.end();
}

// "4", "128u", "true", "(Kind)0": how it is computed, where a type says what.
bool IsValue(const TemplateName& argument) {
  const std::string text = argument.Text();
  return IsPlain(argument) &&
         (text == "true" || text == "false" || text.empty() || !IsNameCharacter(text.front()) ||
          (text.front() >= '0' && text.front() <= '9'));
}

bool AreAllPlain(const TemplateName::Part& part) {
  return std::all_of(part.arguments.begin(), part.arguments.end(), IsPlain);
}

// "f<float, 4>" of "f<float, float, float, 4, 4>".
void DropRepeated(TemplateName::Part& part, bool /*is_outermost*/) {
  const auto is_repeated = [](const TemplateName& a, const TemplateName& b) {
    return IsPlain(a) && a.Text() == b.Text();
  };
  const auto end = std::unique(part.arguments.begin(), part.arguments.end(), is_repeated);
  part.arguments.erase(end, part.arguments.end());
}

// Keeps the functor alone where an argument has one, else the types.
void DropBesideFunctor(TemplateName::Part& part, bool is_outermost) {
  if (is_outermost) return;
  std::erase_if(part.arguments, AreAllPlain(part) ? IsValue : IsPlain);
  part.has_list = !part.arguments.empty();
}

void DropInnerPlain(TemplateName::Part& part, bool is_outermost) {
  if (is_outermost) return;
  std::erase_if(part.arguments, IsPlain);
  part.has_list = !part.arguments.empty();
}

// "gemv<int, float, ...>": the first ones that fit, where the kernel has only such.
void DropOuterPlain(TemplateName& name, size_t width) {
  for (TemplateName::Part& part : name.parts) {
    if (!part.has_list) continue;
    if (!AreAllPlain(part)) {
      std::erase_if(part.arguments, IsPlain);
      continue;
    }
    part.arguments.push_back(TemplateName::Parse("..."));
    while (part.arguments.size() > 1 && name.Text().size() > width) {
      part.arguments.erase(part.arguments.end() - 2);
    }
  }
}

void DropDots(TemplateName::Part& part, bool is_outermost) {
  if (is_outermost && part.arguments.size() == 1 && part.arguments.front().Text() == "...") {
    part.has_list = false;
  }
}

// "..sum_functor<float>" of "ReduceOp<func_wrapper_t<sum_functor<float> > >".
void DropWrappers(TemplateName& argument) {
  const TemplateName* inner = &argument;
  while (inner->parts.size() == 1 && inner->parts.front().arguments.size() == 1 &&
         !IsPlain(inner->parts.front().arguments.front())) {
    inner = &inner->parts.front().arguments.front();
  }
  if (inner == &argument) return;
  TemplateName unwrapped = *inner;
  std::string& text = unwrapped.parts.front().text;
  if (!text.starts_with("..")) text.insert(0, "..");
  argument = std::move(unwrapped);
}

template <typename Change>
void ChangeArguments(TemplateName& name, Change change) {
  ForEachList(name, [&](TemplateName::Part& part, bool) {
    for (TemplateName& argument : part.arguments) change(argument);
  });
}

// Whether the arguments fit, and a part of what precedes them.
bool HasRoomForHead(const TemplateName& name, size_t width, size_t least = 8) {
  return name.Text().size() - name.parts.front().text.size() + least <= width;
}

// "vectorized_el..<GeluCUDAKernelImpl>": the arguments whole, of what precedes them what fits.
std::string WithoutMiddleOfHead(const TemplateName& name, size_t width) {
  const std::string text = name.Text();
  const std::string& head = name.parts.front().text;
  const size_t arguments = text.size() - head.size();
  if (HasRoomForHead(name, width)) {
    return ToWidth(head, width - arguments) + text.substr(head.size());
  }
  // The argument of a wrapper says more than the wrapper:
  // cutlass::Kernel2<cutlass_80_simt_sgemm...>.
  const auto& only = name.parts.front().arguments;
  return ToWidth(name.parts.size() == 1 && only.size() == 1 ? only.front().Text() : text, width);
}

// "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n..": the types and layout of a GEMM of cuBLAS or cuDNN come
// first in its name, its tiles later.
std::string WithoutTiles(const std::string& name) {
  const size_t tiles = name.find("_tilesize");
  return tiles == std::string::npos || name.find('<') != std::string::npos
             ? name
             : name.substr(0, tiles) + "..";
}

// Where the parameters or clones after a function's name begin.
std::string_view WithoutParameters(std::string_view name) {
  if (!name.ends_with(')')) return name;
  // The parenthesis that belongs to the last one opens the parameters.
  int depth = 0;
  for (size_t at = name.size(); at > 0; --at) {
    if (name[at - 1] == ')') ++depth;
    if (name[at - 1] == '(' && --depth == 0) return at > 1 ? name.substr(0, at - 1) : name;
  }
  return name;
}

// Removes all before the last space outside brackets, but for "operator<< <int>" and "operator
// bool".
std::string_view WithoutReturnType(std::string_view name) {
  if (name.size() > kLongestName) return name;
  size_t begin = 0;
  int unclosed = 0;
  for (size_t at = 0; at < name.size(); ++at) {
    if (name[at] == ' ') {
      const std::string_view before = name.substr(0, at);
      const size_t sign = before.find_last_not_of("<>=+-*/%&|^!~()[],");
      const bool is_operator =
          sign != std::string_view::npos && before.substr(0, sign + 1).ends_with("operator");
      if (!is_operator && at + 1 < name.size() && name[at + 1] != '[') begin = at + 1;
    } else if (std::string_view("({[<").find(name[at]) != std::string_view::npos) {
      const size_t end = ClosingBracket(name, at);
      // Brackets of operators close nowhere; a name with more of them is damaged.
      if (end == std::string_view::npos && (name[at] != '<' || ++unclosed > 8)) break;
      if (end != std::string_view::npos) at = end;
    }
  }
  return name.substr(begin);
}

}  // namespace

std::string_view ShortKernelName(std::string_view demangled) {
  // Names of other things than functions of C++ ("[CUDA memset]") have no type.
  const std::string_view name = WithoutParameters(demangled);
  if (name.size() == demangled.size()) return name;
  return WithoutReturnType(name);
}

namespace {

// Without what says nothing of a function.
TemplateName Parsed(std::string_view demangled) {
  std::string name(ShortKernelName(demangled));
  EraseNamespaces(name);
  return TemplateName::Parse(WithoutOuterLambdas(WithoutInnerParameters(name)));
}

}  // namespace

std::string TidyKernelName(std::string_view demangled) {
  if (demangled.size() > kLongestName) return std::string(demangled);
  TemplateName tree = Parsed(demangled);
  ForEachList(tree, DropMemoryArguments);
  return tree.Text();
}

std::string CompactKernelName(std::string_view demangled, size_t width) {
  std::string name = TidyKernelName(demangled);
  if (name.size() <= width) return name;
  if (name.size() > kLongestName) return ToWidth(name, width);
  name = WithoutTiles(name);
  TemplateName tree = TemplateName::Parse(name);
  const auto fits = [&] { return tree.Text().size() <= width; };
  if (!fits()) ChangeArguments(tree, DropNamespaces);
  if (!fits()) ChangeArguments(tree, DropLambda);
  if (!fits()) ForEachList(tree, DropRepeated);
  if (!fits()) ForEachList(tree, DropBesideFunctor);
  if (!fits()) DropOuterPlain(tree, width);
  if (!fits()) ChangeArguments(tree, DropWrappers);
  if (!fits()) ForEachList(tree, DropDots);
  if (!fits() && tree.parts.front().has_list) DropNamespaces(tree);
  constexpr size_t kMuchOfHead = 12;
  if (!HasRoomForHead(tree, width, kMuchOfHead)) ForEachList(tree, DropInnerPlain);
  return fits() ? tree.Text() : WithoutMiddleOfHead(tree, width);
}

std::string BareFunctionName(std::string_view demangled) {
  std::string_view name = demangled;
  if (const size_t clone = name.find(" [clone"); clone != name.npos) name = name.substr(0, clone);
  if (name.ends_with(" const")) name.remove_suffix(6);
  if (name.size() > kLongestName) return std::string(demangled);
  TemplateName tree = Parsed(name);
  for (TemplateName::Part& part : tree.parts) part.has_list = false;
  std::string bare = tree.Text();
  return bare.empty() ? std::string(demangled) : bare;
}

std::map<std::string, std::string> DistinctKernelNames(const std::vector<std::string>& demangled,
                                                       size_t width) {
  constexpr size_t kLevels = 7;
  const auto name_of = [&](const std::string& full, size_t level) {
    if (level < 4) return CompactKernelName(full, width * (level + 2) / 2);
    if (level == 4) return TidyKernelName(full);
    return level == 5 ? std::string(ShortKernelName(full)) : full;
  };
  std::map<std::string, size_t> levels;
  for (const std::string& full : demangled) levels.try_emplace(full, 0);
  std::map<std::string, std::string> names;
  // Each round lifts at least one name, and none further than to its full text.
  for (bool are_distinct = false; !are_distinct;) {
    are_distinct = true;
    std::map<std::string, std::vector<std::string>> by_name;
    for (const auto& [full, level] : levels)
      by_name[names[full] = name_of(full, level)].push_back(full);
    for (const auto& [name, same] : by_name) {
      if (same.size() == 1) continue;
      for (const std::string& full : same) {
        if (levels[full] + 1 == kLevels) continue;
        ++levels[full];
        are_distinct = false;
      }
    }
  }
  return names;
}

}  // namespace xpu
