// Functions of a shared library that do nothing.
#pragma once

#include <cstdint>

#define XPU_TEN(each, n)                                                                  \
  each(n##0) each(n##1) each(n##2) each(n##3) each(n##4) each(n##5) each(n##6) each(n##7) \
      each(n##8) each(n##9)
#define XPU_EACH_PLT_FUNCTION(each) \
  XPU_TEN(each, ) XPU_TEN(each, 1) XPU_TEN(each, 2) XPU_TEN(each, 3) XPU_TEN(each, 4)

#define XPU_DECLARE(n) void PltFunction##n();
extern "C" {
XPU_EACH_PLT_FUNCTION(XPU_DECLARE)
void PltCallBack(void (*function)(uint64_t), uint64_t amount);
}
