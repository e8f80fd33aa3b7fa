#include "format/base/source_name.h"

#include <algorithm>
#include <array>

namespace xpu {
namespace {

constexpr std::array<std::string_view, 24> kExtensions = {
    ".py", ".pyi", ".pyx", ".pxd", ".pxi", ".c",   ".cc", ".cpp", ".cxx", ".cu",  ".cuh",  ".h",
    ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".rs", ".go",  ".jl",  ".ptx", ".ttir", ".cl"};

}  // namespace

bool IsSourceName(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::any_of(kExtensions.begin(), kExtensions.end(), [&](std::string_view extension) {
    return name.size() > extension.size() && name.ends_with(extension);
  });
}

bool IsInstalledPython(std::string_view path) {
  return path.starts_with('<') ||
         std::any_of(kInstalledPython.begin(), kInstalledPython.end(), [&](std::string_view place) {
           return path.find(place) != std::string_view::npos;
         });
}

}  // namespace xpu
