// Which files may be sources, by their names.
#pragma once

#include <array>
#include <string_view>

namespace xpu {

// Whether a file of that name may be a source: by its extension. Who chooses names of files must
// not reach others by them.
bool IsSourceName(std::string_view path);

// Where Python keeps packages and its standard library.
inline constexpr std::array<std::string_view, 3> kInstalledPython = {
    "/site-packages/", "/dist-packages/", "/lib/python3"};
// Whose code a function of Python is, by the path of its file: of a package or the standard
// library: not what a user who looks for a line of the program means.
bool IsInstalledPython(std::string_view path);

}  // namespace xpu
