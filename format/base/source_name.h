// Which files may be sources, by their names.
#pragma once

#include <string_view>

namespace xpu {

// Whether a file of that name may be a source: by its extension. Who chooses names of files must
// not reach others by them.
bool IsSourceName(std::string_view path);

}  // namespace xpu
