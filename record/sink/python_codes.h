// The code objects that stacks of Python consist of: defined in the capture once for what they are
// called, whatever processes they are in.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xpu {

// Text of an interpreter, `kind` bytes a character (1: Latin-1, 2, 4), as UTF-8. Empty for another
// kind.
std::string PythonText(std::span<const std::byte> bytes, uint32_t kind);

class PythonCodes {
 public:
  struct Content {
    std::string name;
    std::string path;
    uint32_t first_line = 0;
    std::string line_table;
    uint32_t version = 0;
    auto operator<=>(const Content&) const = default;
  };

  // PythonCode::code. A definition that is new is due. 0: there are too many.
  uint32_t NumberOf(Content content);
  // What was written until now may not be known to the reader of what comes: all are due again.
  void MakeAllDue() { ++round_; }
  // To be written before a stack with the code; nullptr: it is not due. The last call that says so.
  const Content* TakeDue(uint32_t code);

 private:
  struct Definition {
    const Content* content = nullptr;  // in numbers_
    uint32_t round = 0;                // in which it was written last
  };

  std::map<Content, uint32_t> numbers_;
  std::vector<Definition> definitions_;  // by number - 1
  uint32_t round_ = 1;
  size_t bytes_ = 0;  // of the texts
};

}  // namespace xpu
