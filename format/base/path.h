// The parts of a path, as it is written.
#pragma once

#include <string_view>

namespace xpu {

// "/usr/lib" of "/usr/lib/libfoo.so"; empty where there is no slash.
inline std::string_view DirectoryOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

// "libfoo.so" of "/usr/lib/libfoo.so".
inline std::string_view FileNameOf(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace xpu
