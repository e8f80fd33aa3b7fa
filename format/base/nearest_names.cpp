#include "format/base/nearest_names.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace xpu {
namespace {

constexpr size_t kMostNames = 5;

// How many letters are to be put in, taken out or changed.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string NearestNames(std::span<const std::string> names, std::string_view wanted,
                         std::string_view prefix) {
  if (wanted.size() < 2) return {};  // any name holds a letter, or is short
  const size_t few = std::max<size_t>(1, wanted.size() / 3);
  std::vector<std::pair<size_t, std::string_view>> near;
  for (const std::string& name : names) {
    const bool holds = name.find(wanted) != std::string::npos;
    const size_t distance = EditDistance(name, wanted);
    if (holds || distance <= few) near.emplace_back(distance, name);
  }
  std::sort(near.begin(), near.end());
  std::string text;
  for (size_t i = 0; i < std::min(near.size(), kMostNames); ++i) {
    if (i > 0) text += ", ";
    text += prefix;
    text += near[i].second;
  }
  return text;
}

}  // namespace xpu
