#include "symbolize/dwarf/line_program.h"

#include <algorithm>

#include "symbolize/dwarf/constants.h"

namespace xpu::dwarf {
namespace {

bool AddressLess(const LineRow& a, const LineRow& b) { return a.link_address < b.link_address; }

}  // namespace

uint64_t LineProgram::Run(std::string_view section, uint64_t offset) {
  if (offset >= section.size()) return 0;
  ByteReader reader(section, offset);
  const UnitLength length = reader.ReadUnitLength();
  format_.offset_bytes = length.offset_bytes;
  ByteReader program(reader.Take(std::min(length.bytes, reader.left())));
  ReadHeader(program);
  Execute(program);
  return reader.offset() - offset;
}

void LineProgram::ReadHeader(ByteReader& reader) {
  format_.version = reader.U16();
  if (format_.version < 2 || format_.version > 5) return reader.Fail();
  if (format_.version >= 5) {
    format_.address_bytes = reader.U8();
    reader.Skip(1);  // segment selectors
  }
  const uint64_t header_bytes = reader.Fixed(format_.offset_bytes);
  ByteReader header(reader.Take(header_bytes));
  instruction_bytes_ = header.U8();
  if (format_.version >= 4) header.Skip(1);  // operations an instruction: 1 but on VLIW machines
  header.Skip(1);                            // default_is_stmt
  line_base_ = header.Read<int8_t>();
  line_range_ = header.U8();
  opcode_base_ = header.U8();
  for (unsigned opcode = 1; opcode < opcode_base_; ++opcode) {
    operand_counts_[opcode] = header.U8();
  }
  if (header.failed() || line_range_ == 0) return reader.Fail();
  if (format_.version >= 5) {
    ReadTables(header);
  } else {
    ReadOldTables(header);
  }
}

void LineProgram::ReadOldTables(ByteReader& header) {
  table_.folders_.push_back(unit_.folder);
  while (!header.empty()) {
    const std::string_view folder = header.Text();
    if (folder.empty()) break;
    table_.folders_.push_back(folder);
  }
  while (!header.empty()) {
    LineTable::NamedFile file;
    file.name = header.Text();
    if (file.name.empty()) break;
    file.folder = header.Uleb();
    header.SkipLeb();  // time
    header.SkipLeb();  // size
    table_.files_.push_back(std::move(file));
  }
}

void LineProgram::ReadTables(ByteReader& header) {
  table_.counts_from_zero_ = true;
  ReadEntries(header, [&](std::string_view path, uint64_t) { table_.folders_.push_back(path); });
  ReadEntries(header, [&](std::string_view path, uint64_t folder) {
    table_.files_.push_back({.name = path, .folder = folder, .path = {}});
  });
}

// A list of what each entry is made of, then the entries.
template <typename Take>
void LineProgram::ReadEntries(ByteReader& header, Take take) {
  struct Part {
    uint64_t content;
    uint16_t form;
  };
  std::array<Part, 256> parts;
  const unsigned part_count = header.U8();
  for (unsigned i = 0; i < part_count; ++i) {
    parts[i].content = header.Uleb();
    parts[i].form = static_cast<uint16_t>(header.Uleb());
  }
  const uint64_t count = header.Uleb();
  for (uint64_t i = 0; i < count && !header.failed(); ++i) {
    const uint64_t before = header.left();
    std::string_view path;
    uint64_t folder = 0;
    for (unsigned part = 0; part < part_count; ++part) {
      const FormValue value = ReadForm(header, format_, parts[part].form, 0);
      if (parts[part].content == kLnctPath) path = unit_.Text(value);
      if (parts[part].content == kLnctDirectoryIndex) folder = value.number;
    }
    // Entries without bytes could be as many as a damaged count says.
    if (header.failed() || header.left() == before) return;
    take(path, folder);
  }
}

void LineProgram::Execute(ByteReader& reader) {
  first_row_ = table_.rows_.size();
  while (!reader.empty()) {
    const uint8_t opcode = reader.U8();
    if (opcode >= opcode_base_) {
      Special(opcode);
    } else if (opcode == kLnsExtended) {
      Extended(reader);
    } else {
      Standard(opcode, reader);
    }
  }
  table_.rows_.resize(first_row_);  // a sequence without its end
}

void LineProgram::Special(uint8_t opcode) {
  const auto adjusted = static_cast<uint8_t>(opcode - opcode_base_);
  now_.link_address += uint64_t{instruction_bytes_} * (adjusted / line_range_);
  now_.line += static_cast<uint64_t>(int64_t{line_base_} + adjusted % line_range_);
  AddRow();
}

void LineProgram::Standard(uint8_t opcode, ByteReader& reader) {
  switch (opcode) {
    case kLnsCopy:
      AddRow();
      break;
    case kLnsAdvancePc:
      now_.link_address += instruction_bytes_ * reader.Uleb();
      break;
    case kLnsAdvanceLine:
      now_.line += static_cast<uint64_t>(reader.Sleb());
      break;
    case kLnsSetFile:
      now_.file = reader.Uleb();
      break;
    case kLnsConstAddPc:
      now_.link_address += uint64_t{instruction_bytes_} * ((255u - opcode_base_) / line_range_);
      break;
    case kLnsFixedAdvancePc:
      now_.link_address += reader.U16();
      break;
    default:  // columns, statements, prologues, what is not known
      for (unsigned i = 0; i < operand_counts_[opcode]; ++i) reader.SkipLeb();
  }
}

void LineProgram::Extended(ByteReader& reader) {
  const uint64_t size_bytes = reader.Uleb();
  ByteReader operands(reader.Take(size_bytes));
  switch (operands.U8()) {
    case kLneEndSequence:
      EndSequence();
      break;
    case kLneSetAddress:
      now_.link_address =
          operands.Fixed(static_cast<unsigned>(std::min<uint64_t>(8, operands.left())));
      break;
    case kLneDefineFile: {
      LineTable::NamedFile file;
      file.name = operands.Text();
      file.folder = operands.Uleb();
      table_.files_.push_back(std::move(file));
      break;
    }
    default:
      break;
  }
}

void LineProgram::AddRow() {
  const LineRow row = {.link_address = now_.link_address,
                       .file = AtMost32Bits(now_.file),
                       .line = AtMost32Bits(now_.line)};
  auto& rows = table_.rows_;
  if (rows.size() > first_row_) {
    LineRow& last = rows.back();
    if (row.link_address < last.link_address) ascending_ = false;
    // Of several rows of one address the last counts; rows that change only columns say nothing.
    if (row.link_address == last.link_address) {
      last = row;
      return;
    }
    if (ascending_ && row.file == last.file && row.line == last.line) return;
  }
  rows.push_back(row);
}

void LineProgram::EndSequence() {
  auto& rows = table_.rows_;
  const auto begin = rows.begin() + static_cast<ptrdiff_t>(first_row_);
  if (!ascending_) std::stable_sort(begin, rows.end(), AddressLess);
  const uint64_t end = now_.link_address;
  if (begin != rows.end() && begin->link_address < end && live_.Holds(begin->link_address)) {
    const uint64_t start = begin->link_address;
    rows.push_back({.link_address = end, .file = 0, .line = 0});
    table_.sequences_.push_back({.range = {.begin = start, .end = end},
                                 .first_row = first_row_,
                                 .row_count = rows.size() - first_row_});
  } else {
    rows.resize(first_row_);
  }
  first_row_ = rows.size();
  ascending_ = true;
  now_ = {};
}

}  // namespace xpu::dwarf
