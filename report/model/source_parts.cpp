#include "report/model/source_parts.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace xpu {
namespace {

constexpr size_t kLongestPart = size_t{64} << 10;
constexpr uint64_t kMostBytes = uint64_t{64} << 20;
// Files may have parts in common, but few of those that are large.
constexpr uint64_t kMostUses = 8;
constexpr uint64_t kFewBytes = uint64_t{256} << 10;

}  // namespace

SourceParts::SourceParts(const Model& model) {
  std::set<std::tuple<std::string_view, uint32_t, uint32_t>> seen;
  uint64_t bytes = 0;
  uint64_t most_bytes = kFewBytes;
  std::set<StringId> texts;
  for (const SourceText& text : model.events.source_texts) {
    if (texts.insert(text.text).second) most_bytes += kMostUses * model.Bytes(text.text).size();
  }
  for (const SourceText& text : model.events.source_texts) {
    const SourcePart part{model.Text(text.path), text.first_line,
                          model.Bytes(text.text).substr(0, kLongestPart)};
    if (!seen.emplace(part.path, part.first_line, text.text.value).second) continue;
    if (bytes + part.text.size() > std::min(most_bytes, kMostBytes)) {
      ++left_out;
      continue;
    }
    bytes += part.text.size();
    parts.push_back(part);
  }
}

}  // namespace xpu
