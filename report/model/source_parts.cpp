#include "report/model/source_parts.h"

#include <set>
#include <tuple>

namespace xpu {
namespace {

constexpr size_t kLongestPart = size_t{64} << 10;
constexpr uint64_t kMostBytes = uint64_t{64} << 20;

}  // namespace

std::vector<SourcePart> SourcePartsOf(const Model& model) {
  std::vector<SourcePart> parts;
  std::set<std::tuple<std::string_view, uint32_t, uint32_t>> seen;
  uint64_t bytes = 0;
  for (const SourceText& text : model.events.source_texts) {
    const SourcePart part{model.Text(text.path), text.first_line,
                          model.Bytes(text.text).substr(0, kLongestPart)};
    if (!seen.emplace(part.path, part.first_line, text.text.value).second) continue;
    bytes += part.text.size();
    if (bytes > kMostBytes) break;
    parts.push_back(part);
  }
  return parts;
}

}  // namespace xpu
