// Divides one recording into files: begins the next part when the current one is large enough, and
// completes the previous part in the background, because reading symbols takes long. Used by the
// recorder's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "format/events.h"
#include "record/base/background_threads.h"
#include "record/options/output_options.h"
#include "record/output/output_parts.h"
#include "record/output/output_queue.h"
#include "record/sink/event_sink.h"
#include "record/symbols/hit_files.h"
#include "record/symbols/kernel_symbols.h"
#include "record/symbols/source_texts.h"

namespace xpu {

class Rotation {
 public:
  struct Options {
    OutputOptions output;
    SymbolDetail symbols = SymbolDetail::kNames;
    bool stores_native_sources = false;
    uint64_t max_bytes = 0;  // of all parts; 0: no limit
  };
  // All outlive this object; `hits` is nullptr if symbols are not recorded, `texts` without
  // sources.
  Rotation(OutputParts& parts, const Options& options, HitFiles* hits = nullptr,
           SourceTexts* texts = nullptr)
      : parts_(parts), options_(options), hits_(hits), texts_(texts) {}

  // The first part of the capture.
  Result<CaptureWriter> Begin();
  // True if the part is large enough and the previous one is complete.
  bool IsDue(const EventSink& sink);
  // Events written from now on go to the next part. If it cannot be opened, the recording continues
  // in this one, which is reported once on stderr.
  void BeginNext(EventSink& sink);
  bool HasReachedMax(const EventSink& sink) const;

  // After the last event: our BPF programs have names in the kernel as long as they are loaded.
  void LookUpKernelFunctions(EventSink& sink);
  // Completes the last part, with names for the code in it, and waits for the previous part. Takes
  // a while.
  struct Totals {
    uint64_t events = 0;
    uint64_t bytes = 0;
    LossLedger losses;
    std::optional<Error> failure;
  };
  Totals Finish(EventSink& sink, const RecordingEnd& end);

 private:
  struct Ended {
    explicit Ended(CaptureWriter writer)
        : bytes_before_end(writer.bytes_written()), sink(std::move(writer)) {}
    const uint64_t bytes_before_end;
    EventSink sink;
    OccurringCode code;
    std::vector<uint64_t> kernel_addresses;
    RecordingEnd end;
    std::atomic<bool> is_complete = false;
  };

  std::unique_ptr<BlockOutput> OutputTo(OutputParts::Opened opened);
  void Complete(std::shared_ptr<Ended> ended);
  OccurringCode TakeCode() { return hits_ != nullptr ? hits_->Take() : OccurringCode(); }
  void Collect();
  void Add(EventSink& sink);

  OutputParts& parts_;
  Options options_;
  HitFiles* hits_;
  SourceTexts* texts_;
  OutputQueue* queue_ = nullptr;  // of the current part; owned by its sink
  std::shared_ptr<Ended> ended_;  // being completed; nullptr: none
  BackgroundThreads threads_;     // declared after what the threads use
  uint64_t next_bytes_ = 0;       // do not try before this size; 0: at the size of a part
  bool complained_ = false;
  KernelSymbolLookup kernel_;  // of the last part
  Totals totals_;              // of completed parts
};

}  // namespace xpu
