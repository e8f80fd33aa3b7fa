// The newer mangling of Rust, v0. The grammar is RFC 2603's.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include "format/base/number.h"
#include "format/base/text.h"
#include "format/base/utf8.h"
#include "symbolize/rust_names.h"
#include "symbolize/rust_v0_reader.h"

namespace xpu {
namespace {

constexpr size_t kMaxTextBytes = 64 << 10;
constexpr int kMaxDepth = 200;
// Back-references make a tree of a text; so much of the tree is walked.
constexpr int kMaxSteps = 100'000;

std::string_view BasicType(char tag) {
  static constexpr std::array<std::string_view, 26> kTypes = {
      "i8",    "bool", "char", "f64", "str",  "f32",  "",    "u8", "isize",
      "usize", "",     "i32",  "u32", "i128", "u128", "_",   "",   "",
      "i16",   "u16",  "()",   "...", "",     "i64",  "u64", "!"};
  return tag >= 'a' && tag <= 'z' ? kTypes[static_cast<size_t>(tag - 'a')] : std::string_view();
}

// Any damage makes the whole name fail.
class V0Demangler : private RustV0Reader {
 public:
  explicit V0Demangler(std::string_view text) : RustV0Reader(text) {}

  std::optional<std::string> Demangle() {
    PrintPath(true);
    if (failed_) return std::nullopt;
    if (at_ < text_.size() && Peek() >= 'A' && Peek() <= 'Z') {  // the instantiating crate
      const size_t kept = out_.size();
      PrintPath(false);
      if (failed_) return std::nullopt;
      out_.resize(kept);
    }
    const std::string_view suffix = text_.substr(at_);
    if (!suffix.empty() && suffix.front() != '.' && suffix.front() != '$') return std::nullopt;
    return out_ + std::string(RustSuffix(suffix));
  }

 private:
  // One level of recursion, which fails beyond the limits.
  class Step {
   public:
    explicit Step(V0Demangler& owner) : owner_(owner) {
      if (++owner_.depth_ > kMaxDepth || ++owner_.steps_ > kMaxSteps) owner_.failed_ = true;
    }
    ~Step() { --owner_.depth_; }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    V0Demangler& owner_;
  };

  void Print(std::string_view text) {
    if (out_.size() + text.size() > kMaxTextBytes) failed_ = true;
    if (!failed_) out_ += text;
  }

  void PrintName(const Name& name);
  void PrintPath(bool in_value);
  void PrintNested(bool in_value);
  void PrintImpl(char tag);
  void PrintGenericArgs();
  void PrintType();
  void PrintFunction();
  void PrintDyn();
  bool PrintDynTrait();
  void PrintConst();
  void PrintConstData(char type);
  void PrintLifetime(uint64_t index);
  void PrintBinder();
  template <typename Printer>
  void BackReference(Printer&& print);
  template <typename Printer>
  size_t List(Printer&& print);

  std::string out_;
  uint64_t bound_lifetimes_ = 0;
  int depth_ = 0;
  int steps_ = 0;
};

void V0Demangler::PrintName(const Name& name) {
  if (!name.is_punycode) return Print(name.text);
  Print(DecodePunycode(name.text).value_or(Format("punycode{{{}}}", name.text)));
}

template <typename Printer>
void V0Demangler::BackReference(Printer&& print) {
  const size_t tag_at = at_ - 1;
  const uint64_t target = Base62();
  if (failed_ || target >= tag_at) {
    failed_ = true;
    return;
  }
  const size_t kept = at_;
  at_ = target;
  print();
  at_ = kept;
}

// Up to 'E', parted by commas; how many.
template <typename Printer>
size_t V0Demangler::List(Printer&& print) {
  size_t count = 0;
  while (!failed_ && !Eat('E')) {
    if (count++ > 0) Print(", ");
    print();
  }
  return count;
}

void V0Demangler::PrintPath(bool in_value) {
  const Step step(*this);
  if (failed_) return;
  const char tag = Next();
  switch (tag) {
    case 'C':
      return PrintName(ReadName());
    case 'N':
      return PrintNested(in_value);
    case 'M':
    case 'X':
    case 'Y':
      return PrintImpl(tag);
    case 'I':
      PrintPath(in_value);
      if (in_value) Print("::");
      Print("<");
      PrintGenericArgs();
      return Print(">");
    case 'B':
      return BackReference([&] { PrintPath(in_value); });
    default:
      failed_ = true;
  }
}

void V0Demangler::PrintNested(bool in_value) {
  const char space = Next();
  PrintPath(in_value);
  const Name name = ReadName();
  if (space >= 'a' && space <= 'z') {
    if (name.text.empty()) return;
    Print("::");
    return PrintName(name);
  }
  if (space < 'A' || space > 'Z') failed_ = true;
  Print("::{");
  Print(space == 'C' ? "closure" : space == 'S' ? "shim" : std::string_view(&space, 1));
  if (!name.text.empty()) Print(":");
  PrintName(name);
  Print(Format("#{}}}", name.disambiguator));
}

// M: <type>, X: <type as trait>, Y: likewise without the path of the impl.
void V0Demangler::PrintImpl(char tag) {
  if (tag != 'Y') {  // where the impl stands is not shown
    OptionalBase62('s');
    const size_t kept = out_.size();
    PrintPath(false);
    if (!failed_) out_.resize(kept);
  }
  Print("<");
  PrintType();
  if (tag != 'M') {
    Print(" as ");
    PrintPath(false);
  }
  Print(">");
}

void V0Demangler::PrintGenericArgs() {
  List([&] {
    if (Eat('L')) {
      PrintLifetime(Base62());
    } else if (Eat('K')) {
      PrintConst();
    } else {
      PrintType();
    }
  });
}

void V0Demangler::PrintLifetime(uint64_t index) {
  if (index == 0) return Print("'_");
  if (index > bound_lifetimes_) {
    failed_ = true;
    return;
  }
  const uint64_t depth = bound_lifetimes_ - index;
  if (depth < 26) {
    const char name = static_cast<char>('a' + depth);
    Print("'");
    return Print(std::string_view(&name, 1));
  }
  Print(Format("'_{}", depth));
}

// "for<'a, 'b> "
void V0Demangler::PrintBinder() {
  const uint64_t count = OptionalBase62('G');
  if (count == 0 || failed_) return;
  if (count > 64) {
    failed_ = true;
    return;
  }
  Print("for<");
  for (uint64_t i = 0; i < count; ++i) {
    if (i > 0) Print(", ");
    ++bound_lifetimes_;
    PrintLifetime(1);
  }
  Print("> ");
}

void V0Demangler::PrintType() {
  const Step step(*this);
  if (failed_) return;
  const char tag = Next();
  if (const std::string_view basic = BasicType(tag); !basic.empty()) return Print(basic);
  switch (tag) {
    case 'R':
    case 'Q':
      Print("&");
      if (Eat('L')) {
        if (const uint64_t lifetime = Base62(); lifetime != 0) {
          PrintLifetime(lifetime);
          Print(" ");
        }
      }
      if (tag == 'Q') Print("mut ");
      return PrintType();
    case 'P':
      Print("*const ");
      return PrintType();
    case 'O':
      Print("*mut ");
      return PrintType();
    case 'A':
    case 'S':
      Print("[");
      PrintType();
      if (tag == 'A') {
        Print("; ");
        PrintConst();
      }
      return Print("]");
    case 'T':
      Print("(");
      if (List([&] { PrintType(); }) == 1) Print(",");
      return Print(")");
    case 'F':
      return PrintFunction();
    case 'D':
      return PrintDyn();
    case 'B':
      return BackReference([&] { PrintType(); });
    default:
      --at_;
      return PrintPath(false);
  }
}

void V0Demangler::PrintFunction() {
  const uint64_t bound_before = bound_lifetimes_;
  PrintBinder();
  if (Eat('U')) Print("unsafe ");
  if (Eat('K')) {
    std::string abi = "C";
    if (!Eat('C')) abi = std::string(UndisambiguatedName().text);
    std::replace(abi.begin(), abi.end(), '_', '-');
    Print(Format("extern \"{}\" ", abi));
  }
  Print("fn(");
  List([&] { PrintType(); });
  Print(")");
  if (!Eat('u')) {
    Print(" -> ");
    PrintType();
  }
  bound_lifetimes_ = bound_before;
}

void V0Demangler::PrintDyn() {
  const uint64_t bound_before = bound_lifetimes_;
  Print("dyn ");
  PrintBinder();
  for (bool first = true; !failed_ && !Eat('E'); first = false) {
    if (!first) Print(" + ");
    bool open = PrintDynTrait();
    while (Eat('p')) {
      Print(open ? ", " : "<");
      open = true;
      PrintName(UndisambiguatedName());
      Print(" = ");
      PrintType();
    }
    if (open) Print(">");
  }
  bound_lifetimes_ = bound_before;
  if (!Eat('L')) failed_ = true;
  if (const uint64_t lifetime = Base62(); lifetime != 0) {
    Print(" + ");
    PrintLifetime(lifetime);
  }
}

// The trait without the ">" that ends its arguments: associated types go before it. True: it has
// arguments.
bool V0Demangler::PrintDynTrait() {
  const Step step(*this);
  if (failed_) return false;
  bool open = false;
  if (Eat('B')) {
    BackReference([&] { open = PrintDynTrait(); });
  } else if (Eat('I')) {
    PrintPath(false);
    Print("<");
    PrintGenericArgs();
    open = true;
  } else {
    PrintPath(false);
  }
  return open;
}

void V0Demangler::PrintConst() {
  const Step step(*this);
  if (failed_) return;
  if (Eat('B')) return BackReference([&] { PrintConst(); });
  if (Eat('p')) return Print("_");
  PrintConstData(Next());
}

void V0Demangler::PrintConstData(char type) {
  // Integers, bool and char; what newer compilers allow beyond is not shown.
  if (std::string_view("abchijlmnostxy").find(type) == std::string_view::npos) failed_ = true;
  const bool is_negative = Eat('n');
  const size_t begin = at_;
  while (!failed_ && IsLowerHex(Peek())) ++at_;
  const std::string_view digits = text_.substr(begin, at_ - begin);
  if (!Eat('_')) failed_ = true;
  if (failed_) return;
  uint64_t value = 0;
  if (digits.size() > 16) return Print(Format("{}0x{}", is_negative ? "-" : "", digits));
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (type == 'b') return Print(value != 0 ? "true" : "false");
  if (type != 'c') return Print(Format("{}{}", is_negative ? "-" : "", value));
  std::string text = "'";
  if (value >= 0x20 && value <= 0x10ffff) AppendUtf8(text, static_cast<uint32_t>(value));
  Print(text + "'");
}

}  // namespace

std::optional<std::string> DemangleRustV0(std::string_view mangled) {
  if (!mangled.starts_with("_R")) return std::nullopt;
  const std::string_view rest = mangled.substr(2);
  // A digit would be the version of a mangling that is not known.
  if (rest.empty() || rest.front() < 'A' || rest.front() > 'Z') return std::nullopt;
  return V0Demangler(rest).Demangle();
}

}  // namespace xpu
