/* A small library with debug information, which the fuzz targets of ELF files begin from: inlined
 * calls, a table of jumps, and what an interpreter of Python is known by. */

unsigned long _PyRuntime[96] = {0x7970677562656478ul, 0x030d00f0ul, 0,   624, 40,  56, 7544, 0, 7376,
                                7272, 96, 216, 7320, 0, 0, 0, 0, 0, 0, 272, 0, 8, 16, 72, 152, 160, 24};
unsigned long PyCode_Type[4] = {1, 2, 3, 4};
const unsigned long Py_Version = 0x030b00f0ul;

static inline __attribute__((always_inline)) int Twice(int value) {
  return value * 2 + (value > 7 ? 1 : 0);
}

static __attribute__((noinline)) int Choose(int value) {
  switch (value & 7) {
    case 0:
      return Twice(value) + 3;
    case 1:
      return value - 1;
    case 2:
      return value * value;
    case 3:
      return Twice(Twice(value));
    default:
      return -value;
  }
}

int Work(const int* values, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += Choose(values[i]);
  return sum;
}
