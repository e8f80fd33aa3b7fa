// Sums and products that saturate: neither a damaged capture nor a program that lies about what it
// has lost turns the largest sum into a small one.
#pragma once

#include <cstdint>
#include <limits>

namespace xpu {

inline uint64_t AddSaturated(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<uint64_t>::max() : sum;
}

inline uint64_t MultiplySaturated(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<uint64_t>::max() : product;
}

// Without its fraction; what is not a number, and less than 0, is 0.
inline uint64_t ToSaturated(double value) {
  constexpr double kEnd = 18446744073709551616.0;  // 2^64
  if (!(value > 0)) return 0;
  return value < kEnd ? static_cast<uint64_t>(value) : std::numeric_limits<uint64_t>::max();
}

}  // namespace xpu
