#include "report/stacks/python_places.h"

#include <algorithm>
#include <array>

namespace xpu {
namespace {

constexpr std::array<std::string_view, 3> kInstalled = {"/site-packages/", "/dist-packages/",
                                                        "/lib/python3"};

}  // namespace

bool IsInstalledPython(std::string_view path) {
  return path.starts_with('<') ||
         std::any_of(kInstalled.begin(), kInstalled.end(), [&](std::string_view place) {
           return path.find(place) != std::string_view::npos;
         });
}

bool IsPythonImport(const NamedFrame& frame) {
  return frame.origin == FrameOrigin::kPython && (frame.module.starts_with("<frozen importlib") ||
                                                  frame.module.ends_with("/importlib/__init__.py"));
}

std::string PythonModuleName(std::string_view path) {
  size_t begin = path.rfind('/') + 1;
  for (const std::string_view place : kInstalled) {
    const size_t at = path.rfind(place);
    if (at == std::string_view::npos) continue;
    begin = at + place.size();
    if (!place.ends_with('/')) begin = path.find('/', begin) + 1;  // "/lib/python3" and "12/"
    break;
  }
  std::string name(path.substr(begin));
  for (const std::string_view end : {".py", "/__init__"}) {
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  }
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

}  // namespace xpu
