#include "report/query/source_lines.h"

#include "format/base/file.h"
#include "format/base/open_file.h"
#include "format/base/source_name.h"
#include "format/base/split.h"

namespace xpu {
namespace {

constexpr uint64_t kLargestSource = uint64_t{16} << 20;

}  // namespace

SourceLines::SourceLines(const SourceParts& sources) {
  for (const SourcePart& part : sources.parts) {
    std::map<uint32_t, std::string_view>& lines = stored_[part.path];
    uint32_t number = part.first_line;
    ForEachLine(part.text, [&](std::string_view line) { lines.try_emplace(number++, line); });
  }
}

std::string_view SourceLines::StoredLine(std::string_view file, uint32_t line) const {
  const auto lines = stored_.find(file);
  if (lines == stored_.end()) return {};
  const auto found = lines->second.find(line);
  return found == lines->second.end() ? std::string_view() : found->second;
}

std::string_view SourceLines::Line(std::string_view file, uint32_t line) {
  if (stored_.contains(file)) return StoredLine(file, line);
  auto here = here_.find(file);
  if (here == here_.end()) {
    here = here_.try_emplace(std::string(file), LinesHere(std::string(file))).first;
    if (here->second.empty()) unknown_.insert(here->first);
  }
  const std::vector<std::string>& lines = here->second;
  return line == 0 || line > lines.size() ? std::string_view() : lines[line - 1];
}

std::vector<std::string> SourceLines::LinesHere(const std::string& path) {
  std::vector<std::string> lines;
  if (!IsSourceName(path)) return lines;
  auto opened = OpenRegularFile(path);
  if (!opened.ok() || static_cast<uint64_t>(opened->info.st_size) > kLargestSource) return lines;
  std::string text(static_cast<size_t>(opened->info.st_size), '\0');
  if (!ReadExactly(opened->fd.get(), text.data(), text.size())) return lines;
  ForEachLine(text, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

}  // namespace xpu
