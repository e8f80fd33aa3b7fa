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

class EventSink;

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

  // PythonCode::code. Writes the definition when it is new. 0: there are too many.
  uint32_t Define(Content content, EventSink& sink);
  // What was written until now may not be known to the reader of what comes: before a stack with
  // the code, StateIfDue writes its definition again.
  void StateAgain() { ++round_; }
  void StateIfDue(uint32_t code, EventSink& sink);

 private:
  struct Stated {
    const Content* content = nullptr;  // in numbers_
    uint32_t round = 0;
  };
  void Write(uint32_t code, const Content& content, EventSink& sink);

  std::map<Content, uint32_t> numbers_;
  std::vector<Stated> stated_;  // by number - 1
  uint32_t round_ = 0;
  size_t bytes_ = 0;  // of the texts
};

}  // namespace xpu
