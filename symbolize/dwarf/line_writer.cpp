#include "symbolize/dwarf/line_writer.h"

#include <algorithm>

#include <dwarf.h>

namespace xpu::dwarf {
namespace {

constexpr int kLineBase = -5;
constexpr int kLineRange = 14;
constexpr int kOpcodeBase = 13;
constexpr uint8_t kOperandCounts[kOpcodeBase - 1] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};

// The length of the directory in front of the last slash; 0: the path is written whole, because its
// parts would not join to the same text.
size_t DirectoryBytes(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == path.size()) return 0;
  return path[slash - 1] == '/' ? 0 : slash;
}

void PutEntryFormat(ByteWriter& out, uint64_t content, uint64_t form) {
  out.Uleb(content);
  out.Uleb(form);
}

}  // namespace

LineWriter::LineWriter() {
  // libdw joins the directory and the name with a slash, also an empty directory.
  directories_.push_back(texts_.OffsetOf("."));
  files_.push_back({.text_at = texts_.OffsetOf(kUnknownFile), .directory = 0});
  file_numbers_.emplace("", 0);
}

uint32_t LineWriter::FileOf(std::string_view path) {
  if (const auto found = file_numbers_.find(path); found != file_numbers_.end()) {
    return found->second;
  }
  File file{.text_at = 0, .directory = 0};
  if (const size_t directory_bytes = DirectoryBytes(path); directory_bytes != 0) {
    const auto next = static_cast<uint32_t>(directories_.size());
    const auto [directory, is_new] =
        directory_numbers_.try_emplace(std::string(path.substr(0, directory_bytes)), next);
    if (is_new) directories_.push_back(texts_.OffsetOf(directory->first));
    file.directory = directory->second;
    file.text_at = texts_.OffsetOf(path.substr(directory_bytes + 1));
  } else {
    file.text_at = texts_.OffsetOf(path);
  }
  const auto number = static_cast<uint32_t>(files_.size());
  files_.push_back(file);
  file_numbers_.emplace(path, number);
  return number;
}

void LineWriter::AddRange(AddressRange range, const std::vector<SourceRow>& rows) {
  auto row = std::lower_bound(
      rows.begin(), rows.end(), range.begin,
      [](const SourceRow& each, uint64_t address) { return each.link_address < address; });
  for (; row != rows.end() && row->link_address < range.end; ++row) {
    if (row->is_gap) {
      EndSequence(row->link_address);
    } else {
      AddRow(*row);
    }
  }
  EndSequence(range.end);
}

void LineWriter::AddRow(const SourceRow& row) {
  if (!state_.open) {
    Extended(DW_LNE_set_address, 8);
    program_.U64(row.link_address);
    state_ = {.link_address = row.link_address, .open = true};
  }
  if (const uint32_t file = FileOf(row.file); file != state_.file) {
    program_.U8(DW_LNS_set_file);
    program_.Uleb(file);
    state_.file = file;
  }
  AdvanceTo(row.link_address, row.line);
}

// Makes a row: in one byte when both steps are small.
void LineWriter::AdvanceTo(uint64_t link_address, uint32_t line) {
  const uint64_t address_step = link_address - state_.link_address;
  const int64_t line_step = int64_t{line} - int64_t{state_.line};
  state_.link_address = link_address;
  state_.line = line;
  const bool small_line = line_step >= kLineBase && line_step < kLineBase + kLineRange;
  if (small_line && address_step < 256) {
    const uint64_t opcode =
        static_cast<uint64_t>(line_step - kLineBase) + address_step * kLineRange + kOpcodeBase;
    if (opcode < 256) return program_.U8(static_cast<unsigned>(opcode));
  }
  if (address_step != 0) {
    program_.U8(DW_LNS_advance_pc);
    program_.Uleb(address_step);
  }
  if (line_step != 0) {
    program_.U8(DW_LNS_advance_line);
    program_.Sleb(line_step);
  }
  program_.U8(DW_LNS_copy);
}

void LineWriter::EndSequence(uint64_t link_address) {
  if (!state_.open) return;
  program_.U8(DW_LNS_advance_pc);
  program_.Uleb(link_address - state_.link_address);
  Extended(DW_LNE_end_sequence, 0);
  state_ = {};
}

void LineWriter::Extended(uint8_t opcode, uint64_t operand_bytes) {
  program_.U8(0);
  program_.Uleb(1 + operand_bytes);
  program_.U8(opcode);
}

std::string LineWriter::TakeLines() {
  ByteWriter out;
  const size_t length = out.BeginLength();
  out.U16(5);
  out.U8(8);  // bytes of an address
  out.U8(0);  // of a segment selector
  const size_t header_length = out.BeginLength();
  out.U8(1);  // bytes of an instruction
  out.U8(1);  // operations of an instruction
  out.U8(1);  // rows are statements
  out.U8(static_cast<uint8_t>(kLineBase));
  out.U8(kLineRange);
  out.U8(kOpcodeBase);
  for (const uint8_t count : kOperandCounts) out.U8(count);
  out.U8(1);
  PutEntryFormat(out, DW_LNCT_path, DW_FORM_line_strp);
  out.Uleb(directories_.size());
  for (const uint64_t text_at : directories_) out.U32(text_at);
  out.U8(2);
  PutEntryFormat(out, DW_LNCT_path, DW_FORM_line_strp);
  PutEntryFormat(out, DW_LNCT_directory_index, DW_FORM_udata);
  out.Uleb(files_.size());
  for (const File& file : files_) {
    out.U32(file.text_at);
    out.Uleb(file.directory);
  }
  out.EndLength(header_length);
  out.Append(program_.bytes());
  out.EndLength(length);
  return std::move(out.bytes());
}

}  // namespace xpu::dwarf
