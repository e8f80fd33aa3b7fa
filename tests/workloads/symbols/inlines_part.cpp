// A second unit that inlines the same functions.
#include "inlines.h"

namespace shapes {

static uint64_t Weighted(uint64_t value, int index) {
  if (index % 3 == 0) return Tower<3>::Climb(value);
  return Square(value).side() + Tower<1>::Climb(value);
}

uint64_t SumInOtherUnit(const uint64_t* values, int count) {
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += Weighted(values[i], i);
    if (sum == 4711) Fail("other unit");
  }
  return sum;
}

}  // namespace shapes
