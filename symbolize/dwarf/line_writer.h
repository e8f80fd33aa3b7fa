// Writes a line number program (.debug_line, .debug_line_str) of DWARF 5.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "symbolize/dwarf/byte_writer.h"
#include "symbolize/dwarf/source_function.h"

namespace xpu::dwarf {

class LineWriter {
 public:
  LineWriter();

  // The number that the program has for a file; 0: for the empty one.
  uint32_t FileOf(std::string_view path);
  // Ranges must be added in ascending order. `rows`: all of the function's.
  void AddRange(AddressRange range, const std::vector<SourceRow>& rows);
  // Once, at the end.
  std::string TakeLines();
  std::string TakeTexts() { return std::move(texts_.bytes()); }

 private:
  struct File {
    uint64_t text_at;
    uint32_t directory;
  };
  struct State {
    uint64_t link_address = 0;
    uint32_t file = UINT32_MAX;  // not said yet: readers differ on what the first one is
    uint32_t line = 1;
    bool open = false;
  };

  void AddRow(const SourceRow& row);
  void AdvanceTo(uint64_t link_address, uint32_t line);
  void EndSequence(uint64_t link_address);
  void Extended(uint8_t opcode, uint64_t operand_bytes);

  TextWriter texts_;
  std::map<std::string, uint32_t, std::less<>> directory_numbers_;
  std::map<std::string, uint32_t, std::less<>> file_numbers_;
  std::vector<uint64_t> directories_;  // where their texts are
  std::vector<File> files_;
  ByteWriter program_;
  State state_;
};

}  // namespace xpu::dwarf
