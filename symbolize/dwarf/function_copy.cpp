#include "symbolize/dwarf/function_copy.h"

#include <algorithm>

namespace xpu::dwarf {
namespace {

void AppendRange(std::vector<AddressRange>& ranges, AddressRange range) {
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

void CopyInlined(const CodePlace& place, CodeIndex& index, SourceFunction& function) {
  for (const InlinedCall& call : place.inlined->calls) {
    function.inlined.push_back({.function = index.NameOf(call.entry),
                                .call_file = place.lines->File(call.call_file),
                                .call_line = call.call_line,
                                .parent = call.parent,
                                .ranges = {}});
  }
  for (const RangeMap::Item& piece : place.inlined->map.pieces()) {
    for (uint32_t at = piece.value; at != RangeMap::kNone; at = function.inlined[at].parent) {
      AppendRange(function.inlined[at].ranges, piece.range);
    }
  }
}

}  // namespace

SourceFunction CopyFunction(const CodePlace& place, CodeIndex& index) {
  SourceFunction function;
  function.name = index.NameOf(place.function->entry);
  function.ranges = place.function->ranges;
  std::sort(function.ranges.begin(), function.ranges.end(),
            [](const AddressRange& a, const AddressRange& b) { return a.begin < b.begin; });
  CopyInlined(place, index, function);
  for (const AddressRange& range : function.ranges) {
    const std::vector<SourceRow> rows = place.lines->RowsOf(range);
    function.rows.insert(function.rows.end(), rows.begin(), rows.end());
  }
  return function;
}

}  // namespace xpu::dwarf
