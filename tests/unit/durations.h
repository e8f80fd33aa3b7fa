// Times of tests, in ns.
#pragma once

#include <cstdint>

namespace xpu::test {

inline constexpr uint64_t kUs = 1'000;
inline constexpr uint64_t kMs = 1'000'000;
inline constexpr uint64_t kSecond = 1'000'000'000;

}  // namespace xpu::test
