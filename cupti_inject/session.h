// One session with a recorder after the other in the same process.
#pragma once

#include "cupti_inject/injection.h"

namespace xpu::inject {

// Makes g_injection new for the caller; nullptr: there is a session already, or the program exits.
// Its owner calls EndSession.
Injection* BeginSession(bool attached);
// After an attach. A session that is about to end, or whose recorder has died unnoticed, is waited
// for, in bounded time.
Injection* BeginAttachedSession();
// A ring is there: `self` gets its ring, its gate, its numbers.
void UseRing(Injection& self, uint64_t session);
// Once `active` is false and CUPTI no longer calls: waits until no thread is in a callback, frees
// everything, and lets another session begin. Does nothing when the program exits.
void EndSession(Injection& self);
// The same before there is anything to free.
void GiveUpSession();

// Registers with libc what a forked child does, once in a process.
void HandleForks();

}  // namespace xpu::inject
