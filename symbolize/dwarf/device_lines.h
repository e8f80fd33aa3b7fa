// The lines of GPU code, whose DWARF has no units: line tables alone, as `nvcc -lineinfo` makes
// them. The rows themselves name inlined functions and the rows that they were called at, an
// extension of NVIDIA's that libdw reads.
#pragma once

#include <cstdint>
#include <vector>

#include <elfutils/libdw.h>

#include "symbolize/dwarf/dwarf_file.h"
#include "symbolize/dwarf/source_function.h"

namespace xpu::dwarf {

class DeviceLines {
 public:
  // Reads nothing of a file that is for another machine. `file` must outlive this.
  explicit DeviceLines(const DwarfFile& file);

  bool empty() const { return rows_.empty(); }
  // Innermost first. The last one, which is not inlined, has no name: it is the kernel, or what its
  // symbol says.
  std::vector<SourceFrame> FramesAt(uint64_t link_address) const;

 private:
  struct Row {
    uint64_t link_address = 0;
    Dwarf_Lines* table = nullptr;
    Dwarf_Line* line = nullptr;  // nullptr: the end of a sequence
  };

  const DwarfFile& file_;
  Texts texts_;
  std::vector<Row> rows_;  // by address
};

}  // namespace xpu::dwarf
