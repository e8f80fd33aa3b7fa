// The letters, numbers and identifiers that Rust's v0 mangling is written with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xpu {

// Damage makes everything after it fail, and reads as nothing.
class RustV0Reader {
 protected:
  struct Name {
    std::string_view text;
    uint64_t disambiguator = 0;
    bool is_punycode = false;
  };

  // `text`: what is behind "_R". It must outlive this.
  explicit RustV0Reader(std::string_view text) : text_(text) {}

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char Next();
  bool Eat(char c);
  uint64_t Base62();
  // 0 where the tag is not there, else one more than the number behind it.
  uint64_t OptionalBase62(char tag) { return Eat(tag) ? Base62() + 1 : 0; }
  uint64_t Decimal();
  Name UndisambiguatedName();
  Name ReadName();

  std::string_view text_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace xpu
