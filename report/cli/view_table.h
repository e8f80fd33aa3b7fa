// All views.
#pragma once

#include <span>
#include <string_view>

#include "report/views/view.h"

namespace xpu {

// In the order of --help; the first is the one without an option.
std::span<const View> Views();

// By its option; it must be there.
const View& FindView(std::string_view option);

}  // namespace xpu
