// The end of a session in a program that goes on: CUPTI gives up the program, so that it is as fast
// as before. Its manual allows that in the callback at the end of a call of the program's, on the
// thread of that call, or anywhere once the device has finished its work and it was flushed.
//
// Where graphs are replayed that is dangerous (CUPTI 13.0 with driver 580). The program crashes, at
// once or in a later replay,
//   if a graph whose nodes were recorded is replayed after their kinds were disabled and before
//       cuptiFinalize: so these kinds stay on until then;
//   if another thread replays a graph during cuptiFinalize, which nothing can prevent: so only a
//       process in which a single thread has ever been seen to replay graphs is left, by that
//       thread.
// Every other process with graphs keeps CUPTI initialized for good, without subscriber and kinds:
// if several threads replay them, if that thread has ended or makes no call in time, or if CUPTI is
// older than kFirstToFinalizeWithGraphs. There each node of a replay costs 0.05 to 0.4 us more than
// before the attach.
#pragma once

#include "cupti_inject/injection.h"

namespace xpu::inject {

// Whether the kinds have to stay on until LeaveCupti.
bool KeepsKindsOn(const Injection& self);

// On our thread, after the last flush. `is_idle`: the device had finished all that was recorded.
// Afterwards nothing calls us any more, or it finds that there is no session.
void LeaveCupti(Injection& self, bool is_idle);

}  // namespace xpu::inject
