#include "symbolize/demangle.h"

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

// What configure scripts say of a C library that declares basename.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include "format/base/number.h"

namespace xpu {
namespace {

constexpr size_t kMaxMangledBytes = 16 << 10;
constexpr size_t kMaxDemangledBytes = 64 << 10;
constexpr int kCppOptions = DMGL_PARAMS | DMGL_ANSI;
// cplus_demangle_v3_callback keeps its arrays on the stack and refuses longer names.
constexpr size_t kMaxOnStackBytes = 1024;

struct Output {
  std::string text;
  std::jmp_buf too_long;
};

void AppendPiece(const char* piece, size_t size, void* context) {
  auto* output = static_cast<Output*>(context);
  // The demanglers are C and cannot be stopped, so they are left. What they allocate by then
  // is one name of Rust in punycode, at most four times the mangled name.
  if (output->text.size() + size > kMaxDemangledBytes) std::longjmp(output->too_long, 1);
  output->text.append(piece, size);
}

// The text that `print(AppendPiece, &output)` makes; nullopt: it fails, or the text is too long.
template <typename Printer>
std::optional<std::string> Collect(const Printer& print) {
  Output output;
  output.text.reserve(kMaxDemangledBytes);  // so that nothing is allocated under the demangler
  if (setjmp(output.too_long) != 0) return std::nullopt;
  if (print(AppendPiece, &output) == 0) return std::nullopt;
  return std::string(output.text);
}

// How much work a parsed name is. libiberty looks for the parameter pack of an expansion in each
// copy of a part that substitutions repeat, printing nothing meanwhile, so 200 bytes can take
// hours; and an array on its printer's stack grows with templates times references to their
// parameters.
class NameSize {
 public:
  bool IsBounded(const demangle_component* root) {
    return CopiesOf(root, 0) <= kMaxParts && templates_ * references_ <= kMaxSavedScopes;
  }

 private:
  // Each part prints a character at least.
  static constexpr uint64_t kMaxParts = uint64_t{4} * kMaxDemangledBytes;
  static constexpr uint64_t kMaxSavedScopes = 64 << 10;  // of 16 bytes each: 1 MiB
  static constexpr int kMaxDepth = 2048;                 // that of libiberty's printer is 1024

  struct Children {
    const demangle_component* left = nullptr;
    const demangle_component* right = nullptr;
  };

  static Children ChildrenOf(const demangle_component& part) {
    switch (part.type) {
      case DEMANGLE_COMPONENT_NAME:
      case DEMANGLE_COMPONENT_OPERATOR:
      case DEMANGLE_COMPONENT_BUILTIN_TYPE:
      case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
      case DEMANGLE_COMPONENT_SUB_STD:
      case DEMANGLE_COMPONENT_CHARACTER:
      case DEMANGLE_COMPONENT_FUNCTION_PARAM:
      case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
      case DEMANGLE_COMPONENT_UNNAMED_TYPE:
      case DEMANGLE_COMPONENT_NUMBER:
        return {};
      case DEMANGLE_COMPONENT_FIXED_TYPE:
        return {part.u.s_fixed.length, nullptr};
      case DEMANGLE_COMPONENT_LAMBDA:
      case DEMANGLE_COMPONENT_DEFAULT_ARG:
        return {part.u.s_unary_num.sub, nullptr};
      case DEMANGLE_COMPONENT_EXTENDED_OPERATOR:
        return {part.u.s_extended_operator.name, nullptr};
      case DEMANGLE_COMPONENT_CTOR:
        return {part.u.s_ctor.name, nullptr};
      case DEMANGLE_COMPONENT_DTOR:
        return {part.u.s_dtor.name, nullptr};
      default:
        return {part.u.s_binary.left, part.u.s_binary.right};
    }
  }

  // The parts of `part` and below, each as often as it is referred to.
  uint64_t CopiesOf(const demangle_component* part, int depth) {
    if (part == nullptr) return 0;
    if (depth > kMaxDepth) return kMaxParts + 1;
    const auto [known, is_new] = copies_.try_emplace(part, kMaxParts + 1);  // of a part in itself
    if (!is_new) return known->second;
    templates_ += part->type == DEMANGLE_COMPONENT_TEMPLATE ? 1 : 0;
    const Children children = ChildrenOf(*part);
    const bool is_reference = part->type == DEMANGLE_COMPONENT_REFERENCE ||
                              part->type == DEMANGLE_COMPONENT_RVALUE_REFERENCE;
    references_ += is_reference && children.left != nullptr &&
                           children.left->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM
                       ? 1
                       : 0;
    const uint64_t copies = std::min(kMaxParts + 1, 1 + CopiesOf(children.left, depth + 1) +
                                                        CopiesOf(children.right, depth + 1));
    return copies_[part] = copies;
  }

  std::unordered_map<const demangle_component*, uint64_t> copies_;
  uint64_t templates_ = 0;
  uint64_t references_ = 0;
};

std::optional<std::string> DemangleByParts(const std::string& mangled) {
  void* memory = nullptr;
  demangle_component* const root =
      cplus_demangle_v3_components(mangled.c_str(), kCppOptions, &memory);
  const std::unique_ptr<void, decltype(&std::free)> owner(memory, &std::free);
  if (root == nullptr || !NameSize().IsBounded(root)) return std::nullopt;
  return Collect([&](demangle_callbackref append, void* output) {
    return cplus_demangle_print_callback(kCppOptions, root, append, output);
  });
}

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsBase36(char c) { return IsDigit(c) || IsUpper(c); }
bool IsBase62(char c) { return IsBase36(c) || (c >= 'a' && c <= 'z'); }

// Of a type that an operator converts to, libiberty tries each "T_I...E" twice, also those inside.
bool IsEndlessConversion(std::string_view mangled) {
  constexpr int kMaxTries = 10;
  if (mangled.find("cv") == std::string_view::npos) return false;
  int tries = 0;
  for (size_t at = 0; (at = mangled.find("_I", at)) != std::string_view::npos; ++at) {
    size_t begin = at;
    while (begin > 0 && IsBase36(mangled[begin - 1]) && mangled[begin - 1] != 'T') --begin;
    if (begin > 0 && mangled[begin - 1] == 'T') ++tries;
  }
  return tries > kMaxTries;
}

bool HasMuchToExpand(const std::string& mangled) {
  // An expansion can double with two substitutions.
  constexpr auto kMaxSubstitutions = 40;
  const auto has = [&](const char* code) { return mangled.find(code) != std::string::npos; };
  return std::count(mangled.begin(), mangled.end(), 'S') > kMaxSubstitutions &&
         (has("Dp") || has("sp") || has("sZ"));
}

std::optional<std::string> DemangleCpp(const std::string& mangled) {
  if (IsEndlessConversion(mangled)) return std::nullopt;
  // Only where it must: the parts alone do not read some names of older compilers ("sr3std...").
  if (mangled.size() > kMaxOnStackBytes || HasMuchToExpand(mangled)) {
    return DemangleByParts(mangled);
  }
  return Collect([&](demangle_callbackref append, void* output) {
    return cplus_demangle_v3_callback(mangled.c_str(), kCppOptions, append, output);
  });
}

// Of "FG" and "DG", types that bind lifetimes, those that bind thousands become types that are
// none. libiberty counts them one by one, in parts of a name that are not printed without end.
std::string WithoutLargeBinders(std::string mangled) {
  constexpr size_t kMaxDigits = 2;
  size_t digits_end = mangled.size();
  for (size_t at = mangled.size(); at-- > 1;) {
    if (!IsBase62(mangled[at])) digits_end = at;
    if (mangled[at] != 'G' || (mangled[at - 1] != 'F' && mangled[at - 1] != 'D')) continue;
    if (digits_end - at <= kMaxDigits + 1) continue;
    if (digits_end < mangled.size() && mangled[digits_end] == '_') mangled[at] = 'g';
  }
  return mangled;
}

// What is kept of the text after a mangled name: compilers append ".llvm.1234" to tell copies
// apart; ".cold" and the like mean something.
std::string_view RustSuffix(std::string_view mangled) {
  const bool is_legacy = mangled.starts_with("_Z");  // "_$LT$a..Point" is part of the name
  const size_t dot = mangled.find('.', is_legacy ? mangled.rfind('E') : 0);
  if (dot == std::string_view::npos) return {};
  return mangled.substr(dot, mangled.find(".llvm.", dot) - dot);
}

std::optional<std::string> DemangleRustAsIs(const std::string& mangled) {
  return Collect([&](demangle_callbackref append, void* output) {
    return rust_demangle_callback(mangled.c_str(), 0, append, output);
  });
}

// Of both manglings: legacy (_ZN4core3fmt...17h0123456789abcdefE) and v0 (_RNvC...).
std::optional<std::string> DemangleRust(const std::string& mangled) {
  if (mangled.find("FG") == std::string::npos && mangled.find("DG") == std::string::npos) {
    return DemangleRustAsIs(mangled);
  }
  const std::string harmless = WithoutLargeBinders(mangled);
  // If it can be read without them, they are part of an identifier or of a crate's hash.
  if (harmless != mangled && !DemangleRustAsIs(harmless)) return std::nullopt;
  return DemangleRustAsIs(mangled);
}

}  // namespace

std::string Demangle(std::string_view mangled) {
  const bool is_rust = mangled.starts_with("_R");
  if (mangled.size() > kMaxMangledBytes || (!is_rust && !mangled.starts_with("_Z"))) {
    return std::string(mangled);
  }
  // "_ZdlPv@plt"
  const size_t at = mangled.find('@');
  if (at != std::string_view::npos) {
    return Demangle(mangled.substr(0, at)) + std::string(mangled.substr(at));
  }
  const std::string name(mangled);
  if (is_rust || mangled.find("17h") != std::string_view::npos) {  // the hash of a legacy name
    if (std::optional<std::string> rust = DemangleRust(name)) {
      return rust->append(RustSuffix(mangled));
    }
  }
  return (is_rust ? std::nullopt : DemangleCpp(name)).value_or(name);
}

}  // namespace xpu
