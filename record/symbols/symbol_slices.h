// Puts into the capture what names the code that occurs in its stacks, so that it reads the same
// where the files are not.
#pragma once

#include "format/events.h"
#include "record/output/event_sink.h"

namespace xpu {

// At the end of a recording, behind the last stack. A file that cannot be read any more is in the
// ledger; nothing here fails the recording.
// `max_generated_bytes`: of names of generated code, about.
void WriteSymbols(const OccurringCode& code, SymbolDetail detail, uint64_t max_generated_bytes,
                  EventSink& sink);

}  // namespace xpu
