// The text of source lines: those that a capture carries (`xpu-record --sources`), else those of
// files that are here.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/model/source_parts.h"

namespace xpu {

class SourceLines {
 public:
  // The text that `sources` refers to must outlive this.
  explicit SourceLines(const SourceParts& sources);

  // Without its line feed, as long as this lives. Empty: it is not known. A file of which the
  // capture has lines is not looked for here, where it may be another one; of those here only
  // regular files whose names are those of sources are read, since the capture may be anybody's.
  std::string_view Line(std::string_view file, uint32_t line);
  // The same of the capture alone.
  std::string_view StoredLine(std::string_view file, uint32_t line) const;
  // Of those that lines were asked of.
  const std::set<std::string, std::less<>>& unknown_files() const { return unknown_; }

 private:
  static std::vector<std::string> LinesHere(const std::string& path);

  std::unordered_map<std::string_view, std::map<uint32_t, std::string_view>> stored_;
  std::map<std::string, std::vector<std::string>, std::less<>> here_;
  std::set<std::string, std::less<>> unknown_;
};

}  // namespace xpu
