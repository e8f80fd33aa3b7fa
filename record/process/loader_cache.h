// /etc/ld.so.cache: which file the loader takes for a library's name.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

namespace xpu {

inline constexpr char kLoaderCache[] = "/etc/ld.so.cache";

// Name to path, of the 64-bit x86 libraries that every processor runs, from the bytes of a file of
// format 1.1 (glibc 2.2 and newer, also behind the table of the older one). Empty: another format.
std::unordered_map<std::string_view, std::string_view> LibrariesOfLoaderCache(
    std::string_view cache);

}  // namespace xpu
