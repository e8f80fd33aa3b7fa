// The end of a session in a program that goes on: CUPTI gives up the program, so that it is as fast
// as before. Its manual allows that in the callback at the end of a call of the program's, on the
// thread of that call, or anywhere once the device has finished its work and it was flushed.
#pragma once

#include "cupti_inject/injection.h"

namespace xpu::inject {

// On our thread, after the last flush. `is_idle`: the device had finished all that was recorded.
// Afterwards nothing calls us any more, or it finds that there is no session.
void LeaveCupti(Injection& self, bool is_idle);

}  // namespace xpu::inject
