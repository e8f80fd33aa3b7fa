#include "symbolize/dwarf/file_source.h"

#include <unordered_set>

#include "symbolize/dwarf/function_copy.h"

namespace xpu::dwarf {

std::vector<std::vector<SourceFrame>> FileSource::FramesAt(std::span<const uint64_t> addresses) {
  std::vector<std::vector<SourceFrame>> found;
  found.reserve(addresses.size());
  for (const uint64_t link_address : addresses) found.push_back(Read(link_address));
  return found;
}

std::vector<SourceFunction> FileSource::FunctionsAt(std::span<const uint64_t> addresses) {
  std::vector<SourceFunction> functions;
  std::unordered_set<const void*> seen;
  for (const uint64_t link_address : addresses) {
    const CodePlace place = index_.Find(link_address);
    if (place.function == nullptr || !seen.insert(place.function).second) continue;
    functions.push_back(CopyFunction(place, index_));
  }
  return functions;
}

std::vector<SourceFrame> FileSource::Read(uint64_t link_address) {
  std::vector<SourceFrame> frames;
  const CodePlace place = index_.Find(link_address);
  if (place.lines == nullptr) return device_lines_.FramesAt(link_address);
  const LineTable::Place row = place.lines->Find(link_address);
  SourceFrame frame;
  frame.file = row.file;
  frame.line = row.line;
  if (place.function == nullptr) {
    if (row.exists) frames.push_back(frame);
    return frames;
  }
  uint32_t call = place.inlined->map.Find(link_address);
  while (call != RangeMap::kNone) {
    const InlinedCall& inlined = place.inlined->calls[call];
    frame.function = index_.NameOf(inlined.entry);
    frame.is_inlined = true;
    frames.push_back(frame);
    frame.file = place.lines->File(inlined.call_file);
    frame.line = inlined.call_line;
    call = inlined.parent;
  }
  frame.function = index_.NameOf(place.function->entry);
  frame.is_inlined = false;
  frames.push_back(frame);
  return frames;
}

}  // namespace xpu::dwarf
