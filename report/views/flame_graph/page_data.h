// Writes the JSON of a page in parts, so that no text holds a whole large capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "format/base/json_text.h"
#include "format/base/text.h"
#include "report/output/output.h"

namespace xpu {

class PageData {
 public:
  explicit PageData(Output& output) : output_(output) {}
  ~PageData() { output_.Write(text_); }
  PageData(const PageData&) = delete;
  PageData& operator=(const PageData&) = delete;

  void Raw(std::string_view json) {
    text_ += json;
    if (text_.size() < kPartBytes) return;
    output_.Write(text_);
    text_.clear();
  }
  // Without `<`: no name can end the script element around it.
  void String(std::string_view text) {
    std::string json;
    AppendJsonString(json, text);
    for (size_t at = 0; (at = json.find('<', at)) != std::string::npos;) {
      json.replace(at, 1, "\\u003c");
    }
    Raw(json);
  }
  void Number(uint64_t number) { Raw(std::to_string(number)); }
  // "key":[...], an entry for each element.
  template <typename List, typename WriteOne>
  void Array(std::string_view key, const List& list, WriteOne write_one) {
    Raw(Format("\"{}\":[", key));
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
  std::string text_;
};

}  // namespace xpu
