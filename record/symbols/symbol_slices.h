// Puts into the capture what names the code that occurs in its stacks, so that it reads the same
// where the files are not.
#pragma once

#include "format/events.h"
#include "record/sink/event_sink.h"
#include "record/symbols/hit_files.h"

namespace xpu {

// How much of a capture they take at most, before it is compressed.
struct SymbolLimits {
  uint64_t slice_bytes = UINT64_MAX;
  uint64_t generated_bytes = uint64_t{64} << 20;  // names of generated code, about
};

// At the end of a recording, after the last stack. A file that cannot be read any more, or has no
// room, is in the ledger; nothing here fails the recording.
void WriteSymbols(const OccurringCode& code, SymbolDetail detail, const SymbolLimits& limits,
                  EventSink& sink);

}  // namespace xpu
