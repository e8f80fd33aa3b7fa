// Exceptions in flight: most samples fall into the unwinder of libgcc, below it the functions that
// throw, clean up and catch.
//   exceptions [MILLISECONDS]
#include "unwind.h"

XPU_LEAF(LeafCleanup)
XPU_LEAF(LeafCatch)

namespace {
uint64_t amount_of_cleanup = 0;
}

struct Cleanup {
  ~Cleanup() {
    LeafCleanup(amount_of_cleanup);
    XPU_BARRIER();
  }
};

XPU_FRAME void Throw(int value) {
  XPU_SPOIL_FRAME_POINTER();
  if (value != 0) throw value;
  XPU_BARRIER();
}

XPU_FRAME void PassOn(int value) {
  const Cleanup cleanup;
  Throw(value);
  XPU_BARRIER();
}

XPU_FRAME void PassDeep(int value, int depth) {
  if (depth > 0) {
    PassDeep(value, depth - 1);
  } else {
    PassOn(value);
  }
  XPU_BARRIER();
}

XPU_FRAME void Catch(uint64_t amount) {
  try {
    PassDeep(1, 10);
  } catch (int value) {
    LeafCatch(amount * static_cast<uint64_t>(value));
    XPU_BARRIER();
  }
}

int main(int argc, char** argv) {
  const double milliseconds = unwind::Milliseconds(argc, argv);
  const uint64_t amount = unwind::Amount(milliseconds / 20'000);
  amount_of_cleanup = amount;
  const uint64_t end =
      unwind::ClockNs(CLOCK_THREAD_CPUTIME_ID) + static_cast<uint64_t>(4 * milliseconds * 1e6);
  while (unwind::ClockNs(CLOCK_THREAD_CPUTIME_ID) < end) Catch(amount);
  using unwind::Expect;
  // The destructor is compiled into PassOn.
  Expect("LeafCleanup",
         "LeafCleanup;PassOn;PassDeep;PassDeep;PassDeep;PassDeep;PassDeep;PassDeep;PassDeep;"
         "PassDeep;PassDeep;PassDeep;PassDeep;Catch" XPU_BELOW_MAIN);
  Expect("LeafCatch", "LeafCatch;Catch" XPU_BELOW_MAIN);
  Expect("in:libgcc_s.so.1", "");
  Expect("in:libstdc++.so.6", "");
  return 0;
}
