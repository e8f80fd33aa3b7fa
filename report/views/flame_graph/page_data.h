// Writes the JSON of a page in parts, so that no text holds a whole large capture.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "format/base/text.h"
#include "report/base/json_writer.h"
#include "report/base/output.h"

namespace xpu {

class PageData {
 public:
  explicit PageData(Output& output) : output_(output) {}
  ~PageData() { output_.Write(json_); }
  PageData(const PageData&) = delete;
  PageData& operator=(const PageData&) = delete;

  void Raw(Literal json) {
    json_.Put(json);
    if (json_.size() < kPartBytes) return;
    output_.Write(json_);
    json_.Clear();
  }
  template <typename... Of>
  void Numbers(format_string<Of&...> pattern, Of... numbers) {
    json_.PutFormat(pattern, numbers...);
  }
  void String(std::string_view text) { json_.PutStringOfPage(text); }
  void Number(std::integral auto number) { json_.PutNumber(number); }
  void Number(std::optional<uint64_t> number) {
    if (number) return Number(*number);
    Raw("null");
  }
  // "key":[...], an entry for each element.
  template <typename List, typename WriteOne>
  void Array(Literal key, const List& list, WriteOne write_one) {
    String(key);
    Raw(":[");
    bool first = true;
    for (const auto& element : list) {
      if (!std::exchange(first, false)) Raw(",");
      write_one(element);
    }
    Raw("]");
  }

 private:
  static constexpr size_t kPartBytes = size_t{64} << 10;
  Output& output_;
  JsonWriter json_;
};

}  // namespace xpu
