// Two libraries of the same size with different frames at the same places (XPU_SECOND).
#include "unwind.h"

#ifdef XPU_SECOND
XPU_LEAF(LeafSecond)

XPU_FRAME void MiddleSecond(uint64_t amount) {
  volatile char room[200];
  room[0] = 1;
  XPU_SPOIL_FRAME_POINTER();
  LeafSecond(amount + static_cast<uint64_t>(room[0] - 1));
  XPU_BARRIER();
}

XPU_FRAME void RunLoaded(uint64_t amount) {
  MiddleSecond(amount);
  XPU_BARRIER();
}
#else
XPU_LEAF(LeafFirst)

XPU_FRAME void RunLoaded(uint64_t amount) {
  volatile char room[1000];
  room[0] = 1;
  XPU_SPOIL_FRAME_POINTER();
  LeafFirst(amount + static_cast<uint64_t>(room[0] - 1));
  XPU_BARRIER();
}
#endif
