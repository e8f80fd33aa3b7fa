// The lines of Python's line tables, PythonCode::line_table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace xpu {

// The lines of the instructions of a Python function: co_linetable of Python 3.11 and later
// (CPython's InternalDocs/code_objects.md, "Source code locations").
class PythonLines {
 public:
  // Of a damaged table the part before the damage counts.
  explicit PythonLines(std::string_view line_table);

  // The line of the instruction at `offset` bytes, counted from the function's first one; it may
  // lie before that. nullopt: the instruction has none, or is not in the table.
  std::optional<int64_t> At(uint32_t offset) const;
  bool has_lines() const { return has_lines_; }

 private:
  struct Entry {
    uint32_t end = 0;  // the first offset after it
    std::optional<int32_t> line;
  };

  std::vector<Entry> entries_;  // in order of their offsets
  bool has_lines_ = false;
};

}  // namespace xpu
