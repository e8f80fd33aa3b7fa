// JSON on its way out: keys and punctuation that were known at compile time, numbers, and texts,
// which are escaped.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "format/base/json_text.h"
#include "format/base/text.h"
#include "report/base/byte_buffer.h"
#include "report/base/text.h"

namespace xpu {

class JsonWriter : public ByteBuffer {
 public:
  void Put(Literal json) { Append(json.text); }
  void Put(char c) { *Room(1) = c; }
  // Numbers in a pattern.
  template <typename... Numbers>
  requires(std::is_arithmetic_v<Numbers>&&...) void PutFormat(format_string<Numbers&...> pattern,
                                                              Numbers... numbers) {
    Append(Format(pattern, numbers...));
  }
  void PutString(std::string_view text) {
    quoted_.clear();
    AppendJsonString(quoted_, text);
    Append(quoted_);
  }
  // Without `<`: no name can end the script element around it.
  void PutStringOfPage(std::string_view text) {
    quoted_.clear();
    AppendJsonString(quoted_, text);
    for (size_t at = 0; (at = quoted_.find('<', at)) != std::string::npos;) {
      quoted_.replace(at, 1, "\\u003c");
    }
    Append(quoted_);
  }
  // The digits of a number; null for anything else.
  void PutDigits(std::string_view number) {
    const bool is_number =
        !number.empty() && number.find_first_not_of("+-.0123456789e") == std::string_view::npos;
    Append(is_number ? number : "null");
  }

  template <std::integral Number>
  void PutNumber(Number number) {
    constexpr size_t kMostDigits = 20;
    char* const begin = Room(kMostDigits);
    EndAt(std::to_chars(begin, begin + kMostDigits, number).ptr);
  }
  // 12345: 12.345
  void PutThousandths(uint64_t number) {
    PutNumber(number / 1000);
    char* const fraction = Room(4);
    fraction[0] = '.';
    fraction[1] = static_cast<char>('0' + number / 100 % 10);
    fraction[2] = static_cast<char>('0' + number / 10 % 10);
    fraction[3] = static_cast<char>('0' + number % 10);
  }

 private:
  friend class TraceWriter;  // what it has written before

  std::string quoted_;
};

}  // namespace xpu
