// Runs the line number program of a unit into a LineTable.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "symbolize/dwarf/byte_reader.h"
#include "symbolize/dwarf/line_table.h"

namespace xpu::dwarf {

class LineProgram {
 public:
  LineProgram(LineTable& table, const Unit& unit, const LiveCode& live)
      : table_(table), unit_(unit), live_(live), format_(unit.format) {}

  // The whole program at `offset`; returns how many bytes of it were read.
  uint64_t Run(std::string_view section, uint64_t offset);

 private:
  // The state machine's registers that lead to file and line.
  struct Registers {
    uint64_t link_address = 0;
    uint64_t file = 1;
    uint64_t line = 1;
  };

  void ReadHeader(ByteReader& reader);
  void ReadOldTables(ByteReader& header);
  void ReadTables(ByteReader& header);
  template <typename Take>
  void ReadEntries(ByteReader& header, Take take);

  void Execute(ByteReader& reader);
  void Standard(uint8_t opcode, ByteReader& reader);
  void Extended(ByteReader& reader);
  void Special(uint8_t opcode);
  void AddRow();
  void EndSequence();

  LineTable& table_;
  const Unit& unit_;
  const LiveCode& live_;
  UnitFormat format_;  // of the program: its version is its own

  uint8_t instruction_bytes_ = 1;
  int8_t line_base_ = 0;
  uint8_t line_range_ = 1;
  uint8_t opcode_base_ = 1;
  std::array<uint8_t, 256> operand_counts_{};

  Registers now_;
  size_t first_row_ = 0;  // of the sequence that is being read
  bool ascending_ = true;
};

}  // namespace xpu::dwarf
