#include "symbolize/rust_v0_reader.h"

#include <limits>

#include "format/base/number.h"

namespace xpu {
char RustV0Reader::Next() {
  if (at_ >= text_.size()) failed_ = true;
  return failed_ ? '\0' : text_[at_++];
}

bool RustV0Reader::Eat(char c) {
  if (failed_ || Peek() != c) return false;
  ++at_;
  return true;
}

uint64_t RustV0Reader::Base62() {
  if (Eat('_')) return 0;
  uint64_t value = 0;
  while (!failed_ && !Eat('_')) {
    const char c = Next();
    uint64_t digit = 0;
    if (IsDigit(c)) {
      digit = static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'z') {
      digit = static_cast<uint64_t>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'Z') {
      digit = static_cast<uint64_t>(c - 'A') + 36;
    } else {
      failed_ = true;
    }
    if (value > (std::numeric_limits<uint64_t>::max() - 62) / 62) failed_ = true;
    value = value * 62 + digit;
  }
  return value + 1;
}

uint64_t RustV0Reader::Decimal() {
  if (!IsDigit(Peek())) failed_ = true;
  if (Eat('0')) return 0;
  uint64_t value = 0;
  while (!failed_ && IsDigit(Peek())) {
    value = value * 10 + static_cast<uint64_t>(Next() - '0');
    if (value > text_.size()) failed_ = true;
  }
  return value;
}

RustV0Reader::Name RustV0Reader::UndisambiguatedName() {
  Name name;
  name.is_punycode = Eat('u');
  const uint64_t length = Decimal();
  Eat('_');  // parts the length from a name that begins with a digit
  if (failed_ || length > text_.size() - at_) {
    failed_ = true;
    return {};
  }
  name.text = text_.substr(at_, length);
  at_ += length;
  return name;
}

RustV0Reader::Name RustV0Reader::ReadName() {
  const uint64_t disambiguator = OptionalBase62('s');
  Name name = UndisambiguatedName();
  name.disambiguator = disambiguator;
  return name;
}

}  // namespace xpu
