// A C++ name as a tree: what stands before each list of template arguments, and the arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace xpu {

struct TemplateName {
  struct Part {
    std::string text;  // "at::native::reduce_kernel", after a list "::impl"
    std::vector<TemplateName> arguments;
    bool has_list = false;
  };
  std::vector<Part> parts;

  // Any text: what is no list of arguments, and what is nested deeper than any real name, is text.
  static TemplateName Parse(std::string_view name);
  std::string Text() const;
};

// Where the bracket at `open`, one of ( { [ <, is closed; npos: nowhere. Brackets of operators
// ("operator<<", "->") are none.
size_t ClosingBracket(std::string_view name, size_t open);

}  // namespace xpu
