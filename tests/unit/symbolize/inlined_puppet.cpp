// A program whose functions were inlined, with debug information, for symbolizer_test.
static volatile int g_sum = 0;

inline __attribute__((always_inline)) void Innermost(int value) { g_sum = g_sum + value; }
inline __attribute__((always_inline)) void Middle(int value) {
  Innermost(value);
  Innermost(value * 3);
}

__attribute__((noinline)) void Outermost(int value) {
  Middle(value);
  g_sum = g_sum - 1;
}

int main(int argc, char**) {
  Outermost(argc);
  return g_sum;
}
