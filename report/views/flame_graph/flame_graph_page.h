// The page of the flame graph with its style and code; made at build time from flame_graph.html,
// .css and .js.
#pragma once

#include <string_view>

namespace xpu {

// kFlameGraphData stands where the data go.
extern const std::string_view kFlameGraphPage;
inline constexpr std::string_view kFlameGraphData = "@DATA@";

}  // namespace xpu
