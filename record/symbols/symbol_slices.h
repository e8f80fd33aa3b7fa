// Writes symbols of the code that occurs in stacks into the capture, so that it can be read where
// the files are missing.
#pragma once

#include "format/events.h"
#include "record/sink/event_sink.h"
#include "record/symbols/hit_files.h"
#include "record/symbols/source_texts.h"

namespace xpu {

// Limits on symbols in a capture, before compression.
struct SymbolLimits {
  uint64_t slice_bytes = UINT64_MAX;
  uint64_t generated_bytes = uint64_t{64} << 20;  // names of generated code, approximately
};

// Called at the end of a recording, after the last stack. Counts files that cannot be read any more
// or exceed the limits. Never fails the recording. With SymbolDetail::kLines `sources`, if it is
// not nullptr, gets the lines that occur, of files whose processes are known.
void WriteSymbols(const OccurringCode& code, SymbolDetail detail, const SymbolLimits& limits,
                  EventSink& sink, SourceTexts* sources = nullptr);

}  // namespace xpu
