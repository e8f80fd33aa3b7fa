// Functions that are inlined deep into each other, as in every optimized C++ program.
#pragma once

#include <cstdint>

namespace shapes {

template <int kDepth>
struct Tower {
  static inline __attribute__((always_inline)) uint64_t Climb(uint64_t seed) {
    seed = seed * 6364136223846793005u + kDepth;
    if (seed % 7 == 3) seed ^= seed >> 11;
    return Tower<kDepth - 1>::Climb(seed) + kDepth;
  }
};

template <>
struct Tower<0> {
  static inline __attribute__((always_inline)) uint64_t Climb(uint64_t seed) {
    return seed ^ (seed >> 17);
  }
};

struct Shape {
  virtual ~Shape() = default;
  virtual uint64_t Area(uint64_t scale) const = 0;
};

class Square : public Shape {
 public:
  explicit Square(uint64_t side) : side_(side) {}
  uint64_t Area(uint64_t scale) const override;
  uint64_t side() const { return Checked(side_); }

 private:
  static uint64_t Checked(uint64_t value) {
    if (value > 1u << 30) value = 1u << 30;
    return value;
  }
  uint64_t side_;
};

uint64_t SumInOtherUnit(const uint64_t* values, int count);
[[noreturn]] void Fail(const char* why);

}  // namespace shapes

extern "C" uint64_t plain_sum(const uint64_t* values, int count);
