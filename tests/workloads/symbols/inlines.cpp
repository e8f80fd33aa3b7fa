// Prints a number; what counts are its functions: templates, lambdas, local classes, constructors,
// anonymous namespaces, recursion, cold paths.
#include "inlines.h"

#include <cstdio>
#include <cstdlib>

namespace shapes {
namespace {

template <typename Visit>
inline void ForEach(uint64_t* values, int count, Visit visit) {
  for (int i = 0; i < count; ++i) {
    visit(values[i], i);
  }
}

inline uint64_t Mix(uint64_t a, uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15u + (a << 6);
  if (a == 42) Fail("unlikely");
  return a;
}

__attribute__((noinline)) uint64_t FillAndFold(uint64_t* values, int count) {
  uint64_t folded = 1;
  ForEach(values, count, [&](uint64_t& value, int index) {
    value = Tower<4>::Climb(static_cast<uint64_t>(index));
    folded = Mix(folded, value);
  });
  struct Local {
    static inline uint64_t Twice(uint64_t value) { return Mix(value, value * 2); }
    __attribute__((noinline)) static uint64_t Apart(uint64_t value) { return Twice(value) | 1; }
  };
  return Local::Twice(folded) + Local::Apart(folded);
}

__attribute__((noinline)) uint64_t Walk(uint64_t left) {
  if (left < 2) return Tower<2>::Climb(left);
  return Walk(left - 1) + Mix(left, Walk(left / 2));
}

}  // namespace

uint64_t Square::Area(uint64_t scale) const {
  const uint64_t length = side() * scale;
  return length * Checked(length);
}

[[noreturn]] __attribute__((cold, noinline)) void Fail(const char* why) {
  std::puts(why);
  std::abort();
}

}  // namespace shapes

int main(int argc, char**) {
  uint64_t values[32] = {};
  uint64_t sum = shapes::FillAndFold(values, 32);
  const shapes::Square square(static_cast<uint64_t>(argc) + sum % 9);
  const shapes::Shape* shape = &square;
  sum += shape->Area(3) + shapes::Walk(static_cast<uint64_t>(argc) + 8);
  sum += shapes::SumInOtherUnit(values, 32) + plain_sum(values, 32);
  std::printf("%llu\n", static_cast<unsigned long long>(sum));
  return 0;
}
