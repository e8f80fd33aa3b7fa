#include "plt_library.h"

#define XPU_DEFINE(n) \
  void PltFunction##n() { asm volatile(""); }
XPU_EACH_PLT_FUNCTION(XPU_DEFINE)

void PltCallBack(void (*function)(uint64_t), uint64_t amount) {
  asm volatile("movl $0x5150, %%ebp" ::: "rbp", "memory");
  function(amount);
  asm volatile("" ::: "memory");
}
