// The end of a session in a program that goes on: CUPTI gives up the program, so that it is as fast
// as before. Its manual allows that in the callback at the end of a call of the program's, on the
// thread of that call, or anywhere once the device has finished its work and it was flushed.
//
// A graph whose nodes were recorded crashes on the device when it is replayed after cuptiFinalize
// (CUPTI 13.0 with driver 580; in the callback or elsewhere, with the device idle or not, however
// long after the kinds were disabled). Such a program keeps CUPTI initialized, without subscriber
// and kinds, and pays nothing for it: replays took 1.002 to 1.004 of what they took before. So does
// every program with a CUPTI older than kFirstToFinalizeWithGraphs.
#pragma once

#include "cupti_inject/injection.h"

namespace xpu::inject {

// On our thread, after the last flush. `is_idle`: the device had finished all that was recorded.
// Afterwards nothing calls us any more, or it finds that there is no session.
void LeaveCupti(Injection& self, bool is_idle);

}  // namespace xpu::inject
