// The GPUs of a program that had its contexts before CUPTI was there: CUPTI (13.0) has records of
// devices at their first context alone, so here they are made from what the driver says.
#pragma once

#include "cupti_inject/injection.h"

namespace xpu::inject {

// On our thread, once `self.drain` is open.
void SendDevices(Injection& self);

}  // namespace xpu::inject
