// Device records after an attach. CUPTI (13.0) writes that of a device only when its first context
// is created; for contexts that exist already they are made here, from the driver's answers.
#pragma once

#include "cupti_inject/injection.h"

namespace xpu::inject {

// On our thread, once `self.drain` is open.
void SendDevices(Injection& self);

}  // namespace xpu::inject
