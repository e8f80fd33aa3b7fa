// The static libstdc++ of our build machine takes its random numbers from glibc 2.36; the tools run
// on 2.35. For executables only: it must come before libstdc++ in the link.
#include <cstdint>
#include <cstdlib>

#include <sys/random.h>

extern "C" uint32_t arc4random() noexcept {
  uint32_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) std::abort();
  return number;
}
