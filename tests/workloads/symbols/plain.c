/* The C unit of the programs. */
#include <stdint.h>

static inline uint64_t rotate(uint64_t value, int by) { return value << by | value >> (64 - by); }

static inline uint64_t scramble(uint64_t value) {
  value = rotate(value, 13);
  value *= 31;
  return rotate(value, 7);
}

static __attribute__((noinline)) uint64_t rare(uint64_t value) {
  uint64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += scramble(value + (uint64_t)i);
  return sum;
}

uint64_t plain_sum(const uint64_t* values, int count) {
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += scramble(values[i]);
    if (__builtin_expect(sum == 0, 0)) sum += rare(sum);
  }
  return sum;
}
