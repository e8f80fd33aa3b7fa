#include "report/stacks/stack_names.h"

#include <map>
#include <utility>

namespace xpu {
namespace {

constexpr size_t kMaxSliceBytes = size_t{64} << 20;

// The slices of one file, as they come.
struct Growing {
  AssembledSlice slice;
  size_t bytes = 0;
  uint32_t part_count = 0;  // 0: none is being put together
  AssembledSlice whole;     // the last complete one; no parts: there is none

  void Add(const SymbolSlice& part, std::string_view text) {
    if (part.part == 0) {
      slice.parts.clear();
      slice.detail = part.detail;
      bytes = 0;
      part_count = part.part_count;
    }
    bytes += text.size();
    const bool fits = part.part == slice.parts.size() && part.part_count == part_count &&
                      part.part < part_count && !text.empty() && bytes <= kMaxSliceBytes;
    if (!fits) {
      part_count = 0;
      return;
    }
    slice.parts.push_back(text);
    if (slice.parts.size() < part_count) return;
    std::vector<std::vector<std::string_view>> older = std::move(whole.older);
    if (!whole.parts.empty()) older.push_back(std::move(whole.parts));
    whole = slice;
    whole.older = std::move(older);
    part_count = 0;
  }
};

}  // namespace

std::string AssembledSlice::Bytes() const {
  std::string bytes;
  for (const std::string_view part : parts) bytes += part;
  return bytes;
}

size_t AssembledSlice::size_bytes() const {
  size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size();
  for (const auto& slice : older) {
    for (const std::string_view part : slice) bytes += part.size();
  }
  return bytes;
}

SliceCollection CollectSlices(const Model& model) {
  std::map<std::pair<std::string_view, std::string_view>, Growing> by_file;
  SliceCollection collection;
  for (const SymbolSlice& part : model.events.symbol_slices) {
    // A lost name would be a file called "[lost]".
    if (part.path == kLostString || part.build_id == kLostString) continue;
    const std::string_view path = model.Text(part.path);
    const std::string_view build_id = model.Text(part.build_id);
    Growing& growing = by_file[{path, build_id}];
    growing.slice.path = path;
    growing.slice.build_id = build_id;
    growing.Add(part, part.bytes == kLostString ? std::string_view() : model.Bytes(part.bytes));
  }
  for (auto& [file, growing] : by_file) {
    if (growing.whole.parts.empty()) {
      ++collection.incomplete;
    } else {
      collection.slices.push_back(std::move(growing.whole));
    }
  }
  return collection;
}

StackNames::StackNames(const Trace& trace, SymbolOptions options)
    : lines_if_any(options.lines_if_any),
      slices(CollectSlices(trace.model)),
      symbolizer(std::move(options.symbolizer)),
      resolver(trace.model, trace.processes, trace.api_names, symbolizer, frames, options.places),
      stacks(trace.model, trace.sources, resolver, frames, options.places, options.python) {
  for (const AssembledSlice& slice : slices.slices) {
    symbolizer.SetSlice(symbolizer.Module(slice.path, slice.build_id), slice.parts, slice.older);
  }
}

}  // namespace xpu
