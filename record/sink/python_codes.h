// The code objects in Python stacks. Each is defined once in the capture by its names, whichever
// processes it occurs in.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xpu {

// Decodes a string of an interpreter, with `kind` bytes per character (1: Latin-1, 2, 4), to UTF-8.
// Empty for another kind.
std::string PythonText(std::span<const std::byte> bytes, uint32_t kind);

// The co_lnotab of Python 3.9 or the co_linetable of 3.10 in the format of 3.11 and later, which is
// the capture's (format/python_lines.h). 3.9 does not say where the last line ends: it gets half a
// kibibyte of code.
std::string NewLineTable(std::string_view old_table, uint32_t version);

class PythonCodes {
 public:
  // `line_table` as the version has it.
  struct Content {
    std::string name;
    std::string path;
    uint32_t first_line = 0;
    std::string line_table;
    uint32_t version = 0;
    auto operator<=>(const Content&) const = default;
  };

  // Returns PythonCode::code. A new definition is due. 0: there are too many.
  uint32_t NumberOf(Content content);
  // A reader of what follows may not know earlier definitions, so all of them are due again.
  void MakeAllDue() { ++round_; }
  // The definition to write before a stack with the code; nullptr if it is not due. It is not due
  // afterwards.
  const Content* TakeDue(uint32_t code);

 private:
  struct Definition {
    const Content* content = nullptr;  // owned by numbers_
    uint32_t round = 0;                // in which it was last written
  };

  std::map<Content, uint32_t> numbers_;
  std::vector<Definition> definitions_;  // indexed by number - 1
  uint32_t round_ = 1;
  size_t bytes_ = 0;  // of the strings
};

}  // namespace xpu
