#include "report/import/import_line.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

namespace xpu {
namespace {

constexpr std::string_view kOldKernel = "CONC KERNEL";
constexpr std::string_view kSpaces = " \t\r";

bool IsKindLetter(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// Takes a number from the front of `text`. Sets `is_too_large` for one that has more than 64 bits.
std::optional<uint64_t> TakeNumber(std::string_view& text, bool& is_too_large) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  const bool is_negative = text.starts_with('-');
  uint64_t value = 0;
  const char* begin = text.data() + (is_negative ? 1 : 0);
  const char* end = text.data() + text.size();
  const bool is_hex = end - begin > 2 && begin[0] == '0' && begin[1] == 'x';
  const auto [stop, error] =
      std::from_chars(is_hex ? begin + 2 : begin, end, value, is_hex ? 16 : 10);
  is_too_large |= error == std::errc::result_out_of_range;
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  return is_negative ? 0 - value : value;
}

// Takes the times from the text after the opening bracket, which then begins after the closing one.
std::optional<TraceLine::Times> TakeTimes(std::string_view& text, bool& is_too_large) {
  TraceLine::Times times;
  const auto start = TakeNumber(text, is_too_large);
  if (!start) return std::nullopt;
  times.start_ns = times.end_ns = *start;
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  if (text.starts_with(',') || text.starts_with('-')) {
    text.remove_prefix(1);
    const auto end = TakeNumber(text, is_too_large);
    if (!end) return std::nullopt;
    times.end_ns = *end;
  }
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  if (!text.starts_with(']')) return std::nullopt;
  text.remove_prefix(1);
  return times;
}

// The value of the field `name`, and all that is after it.
std::optional<std::string_view> ValueIn(std::string_view fields, std::string_view name) {
  for (size_t at = fields.find(name); at != std::string_view::npos;
       at = fields.find(name, at + 1)) {
    const bool begins =
        at == 0 || std::string_view(" \t,(").find(fields[at - 1]) != std::string_view::npos;
    const std::string_view value = fields.substr(at + name.size());
    const size_t begin = std::min(value.find_first_not_of(" =:"), value.size());
    if (begins && begin > 0) return value.substr(begin);
  }
  return std::nullopt;
}

// The index is value >> 16, but for the compiler, whose value is 1.
constexpr std::array<std::string_view, 9> kOverheadKinds = {"DRIVER_COMPILER",
                                                            "CUPTI_BUFFER_FLUSH",
                                                            "CUPTI_INSTRUMENTATION",
                                                            "CUPTI_RESOURCE",
                                                            "RUNTIME_TRIGGERED_MODULE_LOADING",
                                                            "LAZY_FUNCTION_LOADING",
                                                            "COMMAND_BUFFER_FULL",
                                                            "ACTIVITY_BUFFER_REQUEST",
                                                            "UVM_ACTIVITY_INIT"};
constexpr std::array<std::string_view, 4> kOldOverheadKinds = {"COMPILER", "BUFFER_FLUSH",
                                                               "INSTRUMENTATION", "RESOURCE"};
constexpr std::array<std::string_view, 6> kObjectKinds = {"UNKNOWN", "PROCESS", "THREAD",
                                                          "DEVICE",  "CONTEXT", "STREAM"};

// "<null>", "(null)", "<default domain>": how the printers write what is not there.
std::string_view TextOrNothing(std::string_view text) {
  return text == "<null>" || text == "(null)" || text == "<default domain>" ? std::string_view()
                                                                            : text;
}

}  // namespace

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::optional<uint64_t> LeadingNumber(std::string_view text) {
  bool is_too_large = false;
  return TakeNumber(text, is_too_large);
}

TraceLine::TraceLine(std::string_view line) : text_(line) {
  while (text_.ends_with('\r') || text_.ends_with('\n')) text_.remove_suffix(1);
  if (goes_on()) {
    fields_ = text_;
    return;
  }
  const auto kind_end = std::find_if_not(text_.begin(), text_.end(), IsKindLetter);
  kind_ = text_.substr(0, static_cast<size_t>(kind_end - text_.begin()));
  if (text_.starts_with(kOldKernel)) kind_ = kOldKernel;
  fields_ = text_.substr(kind_.size());
  // The names in these lines are not quoted and may hold quotation marks.
  const bool has_quotes = !kind_.starts_with("MARKER");
  const size_t first = fields_.find_first_of(has_quotes ? "[\"" : "[");
  if (first == std::string_view::npos) return;
  word_ = Trimmed(fields_.substr(0, first));
  if (fields_[first] == '[') {
    TakeTimesAt(first);
    if (has_quotes) TakeQuoted();
  } else {
    TakeQuoted();
    TakeTimesAt(fields_.find('['));
  }
}

void TraceLine::TakeTimesAt(size_t bracket) {
  if (bracket == std::string_view::npos) return;
  std::string_view behind = fields_.substr(bracket + 1);
  times_ = TakeTimes(behind, is_broken_);
  if (times_) fields_ = behind;
}

void TraceLine::TakeQuoted() {
  const size_t open = fields_.find('"');
  const size_t close = fields_.rfind('"');
  is_broken_ |= open == close && open != std::string_view::npos;
  if (open == close) return;
  quoted_ = fields_.substr(open + 1, close - open - 1);
  fields_.remove_prefix(close + 1);
}

bool TraceLine::is_empty() const { return Trimmed(text_).empty(); }

bool TraceLine::looks_like_record() const {
  return kind_.size() >= 3 && text_.size() > kind_.size() && text_[kind_.size()] == ' ';
}

std::optional<std::string_view> TraceLine::ValueOf(std::string_view name) const {
  if (const auto value = ValueIn(fields_, name)) return value;
  return ValueIn(word_, name);
}

std::optional<uint64_t> TraceLine::Number(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    std::optional<std::string_view> value = ValueOf(name);
    if (!value) continue;
    if (const auto number = TakeNumber(*value, is_broken_)) return number;
  }
  return std::nullopt;
}

uint32_t TraceLine::Number32(std::initializer_list<std::string_view> names) const {
  const uint64_t value = Number64(names);
  // -1 is how some versions print an id of 32 bits that is none.
  const bool fits =
      value <= std::numeric_limits<uint32_t>::max() || static_cast<int64_t>(value) == -1;
  is_broken_ |= !fits;
  return fits ? static_cast<uint32_t>(value) : 0;
}

std::string_view TraceLine::Word(std::string_view name) const {
  const std::optional<std::string_view> value = ValueOf(name);
  return value ? value->substr(0, value->find_first_of(", \t\r")) : std::string_view();
}

std::optional<std::array<uint32_t, 3>> TraceLine::Triple(std::string_view name) const {
  std::optional<std::string_view> value = ValueOf(name);
  if (!value || !value->starts_with('[')) return std::nullopt;
  std::array<uint32_t, 3> triple{};
  for (uint32_t& number : triple) {
    value->remove_prefix(1);  // the bracket or a comma
    const auto part = TakeNumber(*value, is_broken_);
    // CUDA's sizes of grids and blocks are ints.
    is_broken_ |= !part || *part > std::numeric_limits<int32_t>::max() || value->empty();
    if (is_broken_) return std::nullopt;
    number = static_cast<uint32_t>(*part);
  }
  return triple;
}

uint32_t IndexIn(std::span<const std::string_view> words, std::string_view word) {
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() ? 0 : static_cast<uint32_t>(found - words.begin());
}

uint32_t OverheadKindOf(std::string_view word) {
  for (const std::span<const std::string_view> kinds :
       {std::span<const std::string_view>(kOverheadKinds),
        std::span<const std::string_view>(kOldOverheadKinds)}) {
    const auto found = std::find(kinds.begin(), kinds.end(), word);
    if (found == kinds.end()) continue;
    return std::max(1u, static_cast<uint32_t>(found - kinds.begin()) << 16);
  }
  return 0;
}

uint32_t ObjectKindIn(std::string_view fields) {
  uint32_t kind = 0;
  size_t first = std::string_view::npos;
  for (uint32_t i = 1; i < kObjectKinds.size(); ++i) {
    const size_t at = fields.find(kObjectKinds[i]);
    if (at >= first) continue;
    first = at;
    kind = i;
  }
  return kind;
}

MarkerTexts MarkerTextsOf(std::string_view fields) {
  constexpr std::string_view kDomain = ", domain ";
  constexpr std::string_view kName = ", name ";
  MarkerTexts texts;
  size_t domain = fields.find(kDomain);
  const size_t name = fields.find(kName);
  if (name == std::string_view::npos) return texts;
  if (domain < name) {
    texts.domain = fields.substr(domain + kDomain.size(), name - domain - kDomain.size());
    texts.name = fields.substr(name + kName.size());
  } else {
    domain = std::min(fields.rfind(kDomain), fields.size());
    texts.name = fields.substr(name + kName.size(), domain - name - kName.size());
    if (domain < fields.size()) texts.domain = fields.substr(domain + kDomain.size());
  }
  texts.name = TextOrNothing(texts.name);
  texts.domain = TextOrNothing(texts.domain);
  return texts;
}

NvtxPayload PayloadTypeOf(uint64_t bits, std::string_view printed) {
  if (bits == 0) return NvtxPayload::kNone;
  const size_t slash = printed.find('/');
  const std::string_view number =
      slash == std::string_view::npos ? std::string_view() : printed.substr(slash + 1);
  if (number.find("nan") != std::string_view::npos) return NvtxPayload::kInt64;
  const bool is_zero = number.find_first_not_of("-0.") == std::string_view::npos;
  return is_zero ? NvtxPayload::kUint64 : NvtxPayload::kDouble;
}

}  // namespace xpu
