#include "report/views/summary/fitting_names.h"

#include <map>

#include "report/analysis/kernel_name.h"
#include "report/output/text.h"

namespace xpu {
namespace {

FittingNames WithoutWholeOfDistinct(FittingNames names) {
  std::map<std::string, size_t> seen;
  for (const auto& [fitting, whole] : names) ++seen[fitting];
  for (auto& [fitting, whole] : names) {
    if (seen[fitting] == 1) whole.clear();
  }
  return names;
}

}  // namespace

FittingNames FitTexts(const std::vector<std::string>& names, size_t width) {
  FittingNames fitting;
  for (const std::string& name : names) fitting.emplace_back(ToWidth(name, width), name);
  return WithoutWholeOfDistinct(std::move(fitting));
}

FittingNames FitKernels(const std::vector<std::string>& names, size_t width) {
  std::map<std::string, std::string> distinct = DistinctKernelNames(names, width);
  FittingNames fitting;
  for (const std::string& name : names) {
    fitting.emplace_back(ToWidth(CompactKernelName(name, width), width), distinct[name]);
  }
  return WithoutWholeOfDistinct(std::move(fitting));
}

}  // namespace xpu
