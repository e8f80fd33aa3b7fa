#include "record/base/test_drop.h"

#include <charconv>
#include <cstdlib>

namespace xpu {

TestDrop TestDrop::FromEnvironment(std::string_view kind) {
  const char* text = std::getenv("XPU_TEST_DROP");
  return text == nullptr ? TestDrop() : Parse(text, kind);
}

TestDrop TestDrop::Parse(std::string_view text, std::string_view kind) {
  if (!text.starts_with(kind) || text.substr(kind.size(), 1) != ":") return TestDrop();
  const std::string_view number = text.substr(kind.size() + 1);
  uint64_t every = 0;
  std::from_chars(number.data(), number.data() + number.size(), every);
  return TestDrop(every);
}

}  // namespace xpu
