#include "symbolize/dwarf/debug_writer.h"

#include <algorithm>
#include <map>
#include <utility>

#include <dwarf.h>

#include "symbolize/dwarf/byte_writer.h"
#include "symbolize/dwarf/line_writer.h"

namespace xpu {
namespace dwarf {
namespace {

// The layouts that .debug_abbrev defines: by what an entry is and how its code and its name are
// written.
enum Layout : uint8_t {
  kUnit = 1,
  kAbstract,  // the function that an inlined one is of
  kFunction = 4,
  kInlinedCall = 12,
};
enum LayoutBits : uint8_t { kHasRanges = 1, kHasLinkageName = 2, kHasChildren = 4 };

bool IsMangled(std::string_view name) {
  return name.substr(0, 2) == "_Z" || name.substr(0, 2) == "_R";
}

class AbbreviationWriter {
 public:
  std::string Write() {
    Begin(kUnit, DW_TAG_compile_unit, true);
    Attribute(DW_AT_producer, DW_FORM_strp);
    Attribute(DW_AT_name, DW_FORM_strp);
    Attribute(DW_AT_language, DW_FORM_data1);
    Attribute(DW_AT_stmt_list, DW_FORM_sec_offset);
    Attribute(DW_AT_low_pc, DW_FORM_addr);
    Attribute(DW_AT_ranges, DW_FORM_sec_offset);
    End();
    for (const unsigned bits : {0u, unsigned{kHasLinkageName}}) {
      Begin(kAbstract + bits / kHasLinkageName, DW_TAG_subprogram, false);
      Name(bits);
      Attribute(DW_AT_inline, DW_FORM_data1);
      End();
    }
    for (unsigned bits = 0; bits < 8; ++bits) {
      Begin(kFunction + bits, DW_TAG_subprogram, (bits & kHasChildren) != 0);
      Name(bits);
      Code(bits);
      End();
    }
    for (const unsigned bits : {0u, 1u, 4u, 5u}) {
      Begin(kInlinedCall + bits, DW_TAG_inlined_subroutine, (bits & kHasChildren) != 0);
      Attribute(DW_AT_abstract_origin, DW_FORM_ref4);
      Code(bits);
      Attribute(DW_AT_call_file, DW_FORM_udata);
      Attribute(DW_AT_call_line, DW_FORM_udata);
      End();
    }
    out_.U8(0);
    return std::move(out_.bytes());
  }

 private:
  void Begin(unsigned code, unsigned tag, bool has_children) {
    out_.Uleb(code);
    out_.Uleb(tag);
    out_.U8(has_children ? 1 : 0);
  }
  void Attribute(unsigned name, unsigned form) {
    out_.Uleb(name);
    out_.Uleb(form);
  }
  void Name(unsigned bits) {
    Attribute((bits & kHasLinkageName) != 0 ? DW_AT_linkage_name : DW_AT_name, DW_FORM_strp);
  }
  void Code(unsigned bits) {
    if ((bits & kHasRanges) != 0) return Attribute(DW_AT_ranges, DW_FORM_sec_offset);
    Attribute(DW_AT_low_pc, DW_FORM_addr);
    Attribute(DW_AT_high_pc, DW_FORM_udata);
  }
  void End() { Attribute(0, 0); }

  ByteWriter out_;
};

// .debug_rnglists without a table of offsets.
class ListWriter {
 public:
  ListWriter() {
    length_ = out_.BeginLength();
    out_.U16(5);
    out_.U8(8);   // bytes of an address
    out_.U8(0);   // of a segment selector
    out_.U32(0);  // offsets
  }
  uint64_t Add(const std::vector<AddressRange>& ranges) {
    const uint64_t at = out_.size();
    const uint64_t base = ranges.empty() ? 0 : ranges.front().begin;
    out_.U8(DW_RLE_base_address);
    out_.U64(base);
    for (const AddressRange& range : ranges) {
      out_.U8(DW_RLE_offset_pair);
      out_.Uleb(range.begin - base);
      out_.Uleb(range.end - base);
    }
    out_.U8(DW_RLE_end_of_list);
    return at;
  }
  std::string Take() {
    out_.EndLength(length_);
    return std::move(out_.bytes());
  }

 private:
  ByteWriter out_;
  size_t length_ = 0;
};

class InfoWriter {
 public:
  std::vector<DebugSectionBytes> Write(const std::vector<SourceFunction>& functions);

 private:
  void WriteAbstract(std::string_view name);
  void WriteFunction(const SourceFunction& function);
  // The calls of `function` below `parent`.
  void WriteCalls(const SourceFunction& function, uint32_t parent);
  void WriteCode(const std::vector<AddressRange>& ranges);

  ByteWriter info_;
  TextWriter texts_;
  ListWriter lists_;
  LineWriter lines_;
  std::map<std::string_view, uint64_t> abstract_;   // where in .debug_info
  std::vector<std::vector<uint32_t>> calls_below_;  // of the present function; last: itself
};

void InfoWriter::WriteAbstract(std::string_view name) {
  const auto [found, is_new] = abstract_.try_emplace(name, info_.size());
  if (!is_new) return;
  info_.Uleb(kAbstract + (IsMangled(name) ? 1 : 0));
  info_.U32(texts_.OffsetOf(name));
  info_.U8(DW_INL_inlined);
}

void InfoWriter::WriteCode(const std::vector<AddressRange>& ranges) {
  if (ranges.size() != 1) return info_.U32(lists_.Add(ranges));
  info_.U64(ranges.front().begin);
  info_.Uleb(ranges.front().end - ranges.front().begin);
}

void InfoWriter::WriteFunction(const SourceFunction& function) {
  const size_t count = function.inlined.size();
  calls_below_.assign(count + 1, {});
  for (uint32_t call = 0; call < count; ++call) {
    if (function.inlined[call].ranges.empty()) continue;
    calls_below_[std::min<size_t>(function.inlined[call].parent, count)].push_back(call);
  }
  const bool has_children = !calls_below_[count].empty();
  info_.Uleb(kFunction + (function.ranges.size() != 1 ? kHasRanges : 0) +
             (IsMangled(function.name) ? kHasLinkageName : 0) + (has_children ? kHasChildren : 0));
  info_.U32(texts_.OffsetOf(function.name));
  WriteCode(function.ranges);
  if (has_children) WriteCalls(function, static_cast<uint32_t>(count));
}

void InfoWriter::WriteCalls(const SourceFunction& function, uint32_t parent) {
  for (const uint32_t call : calls_below_[parent]) {
    const SourceInline& inlined = function.inlined[call];
    const bool has_children = !calls_below_[call].empty();
    info_.Uleb(kInlinedCall + (inlined.ranges.size() != 1 ? kHasRanges : 0) +
               (has_children ? kHasChildren : 0));
    info_.U32(abstract_.at(inlined.function));
    WriteCode(inlined.ranges);
    info_.Uleb(lines_.FileOf(inlined.call_file));
    info_.Uleb(inlined.call_line);
    if (has_children) WriteCalls(function, call);
  }
  info_.U8(0);
}

std::vector<DebugSectionBytes> InfoWriter::Write(const std::vector<SourceFunction>& functions) {
  std::vector<AddressRange> ranges;
  std::vector<std::pair<AddressRange, const SourceFunction*>> pieces;
  for (const SourceFunction& function : functions) {
    for (const AddressRange& range : function.ranges) pieces.emplace_back(range, &function);
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
  for (const auto& [range, function] : pieces) {
    ranges.push_back(range);
    lines_.AddRange(range, function->rows);
  }

  const size_t length = info_.BeginLength();
  info_.U16(5);
  info_.U8(DW_UT_compile);
  info_.U8(8);   // bytes of an address
  info_.U32(0);  // in .debug_abbrev
  info_.Uleb(kUnit);
  info_.U32(texts_.OffsetOf("xpu"));
  info_.U32(texts_.OffsetOf("symbol slice"));
  info_.U8(DW_LANG_C_plus_plus_14);
  info_.U32(0);  // in .debug_line
  info_.U64(0);
  info_.U32(lists_.Add(ranges));
  for (const SourceFunction& function : functions) {
    for (const SourceInline& inlined : function.inlined) {
      if (!inlined.ranges.empty()) WriteAbstract(inlined.function);
    }
  }
  for (const SourceFunction& function : functions) WriteFunction(function);
  info_.U8(0);
  info_.EndLength(length);
  return {{".debug_abbrev", AbbreviationWriter().Write()},
          {".debug_info", std::move(info_.bytes())},
          {".debug_line", lines_.TakeLines()},
          {".debug_line_str", lines_.TakeTexts()},
          {".debug_rnglists", lists_.Take()},
          {".debug_str", std::move(texts_.bytes())}};
}

}  // namespace
}  // namespace dwarf

std::vector<DebugSectionBytes> WriteDebugSections(std::vector<SourceFunction> functions) {
  if (functions.empty()) return {};
  std::stable_sort(functions.begin(), functions.end(),
                   [](const SourceFunction& a, const SourceFunction& b) {
                     return a.ranges.front().begin < b.ranges.front().begin;
                   });
  return dwarf::InfoWriter().Write(functions);
}

}  // namespace xpu
