// What answers for a DebugInfo: libdw in this process (FileSource), or in one of its own
// (ReaderProcess).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "symbolize/dwarf/source_function.h"

namespace xpu::dwarf {

class DebugSource {
 public:
  virtual ~DebugSource() = default;
  // Of each address what DebugInfo::At says. Texts live as long as this.
  virtual std::vector<std::vector<SourceFrame>> FramesAt(std::span<const uint64_t> addresses) = 0;
  // As DebugInfo::FunctionsAt.
  virtual std::vector<SourceFunction> FunctionsAt(std::span<const uint64_t> addresses) = 0;
  // Why it answers nothing more; empty: it does.
  virtual const std::string& failure() const = 0;
};

}  // namespace xpu::dwarf
