// What a user may have meant who gave an unknown name.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace xpu {

// "sched_switch, sched_stat_wait": those of `names` that hold `wanted` or differ from it in few
// letters, the nearest first, a few of them, each after `prefix`. Empty: none is near.
std::string NearestNames(std::span<const std::string> names, std::string_view wanted,
                         std::string_view prefix = {});

}  // namespace xpu
