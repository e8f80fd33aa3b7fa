// Sums and products that saturate: a damaged capture must not turn the largest sum into a small
// one.
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

}  // namespace xpu
