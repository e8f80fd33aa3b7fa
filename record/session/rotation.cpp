#include "record/session/rotation.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <malloc.h>

#include "format/base/terminal_text.h"
#include "record/base/clock.h"
#include "record/output/output_queue.h"
#include "record/symbols/kernel_symbols.h"
#include "record/symbols/symbol_slices.h"

namespace xpu {
namespace {

// Of --max-size a quarter may be file symbols and a quarter names of generated code, of which a
// program may write any number. The mebibyte is always available for the functions in stacks.
SymbolLimits LimitsWithin(uint64_t max_bytes) {
  constexpr uint64_t kLeast = uint64_t{1} << 20;
  SymbolLimits limits;
  if (max_bytes == 0) return limits;
  limits.slice_bytes = std::max(max_bytes / 4, kLeast);
  limits.generated_bytes = std::min(limits.generated_bytes, max_bytes / 4);
  return limits;
}

void CompletePart(EventSink& sink, const OccurringCode& code, const KernelSymbolLookup& kernel,
                  const Rotation::Options& options, const RecordingEnd& end) {
  WriteKernelSymbols(kernel, sink);
  sink.Flush();  // done now, whatever happens while symbols are read
  if (options.symbols != SymbolDetail::kNone) {
    // Their own object: what occurs now in Python belongs to the next part.
    std::optional<SourceTexts> sources;
    if (options.stores_native_sources) sources.emplace(nullptr);
    WriteSymbols(code, options.symbols, LimitsWithin(options.max_bytes), sink,
                 sources ? &*sources : nullptr);
    if (sources) sources->Write(sink, SourceTexts::Waits::kYes);
  }
  sink.Close(end);
}

}  // namespace

std::unique_ptr<BlockOutput> Rotation::OutputTo(OutputParts::Opened opened) {
  OutputQueue::Options options;
  options.limit_bytes = options_.output.buffer_bytes;
  auto queue = std::make_unique<OutputQueue>(std::move(opened.fd), std::move(opened.name), options);
  queue_ = queue.get();
  return queue;
}

Result<CaptureWriter> Rotation::Begin() {
  auto opened = parts_.OpenNext();
  auto writer = opened.ok() ? CaptureWriter::Create(OutputTo(*std::move(opened)))
                            : Result<CaptureWriter>(std::move(opened).error());
  if (!writer.ok()) parts_.Discard();
  return writer;
}

bool Rotation::IsDue(const EventSink& sink) {
  if (!parts_.rotates() ||
      sink.bytes_written() < std::max(options_.output.rotate_bytes, next_bytes_)) {
    return false;
  }
  Collect();
  return ended_ == nullptr;
}

void Rotation::BeginNext(EventSink& sink) {
  OutputQueue* const queue = queue_;
  auto opened = parts_.OpenNext();
  const bool was_opened = opened.ok();
  auto ended = opened.ok() ? sink.BeginPart(OutputTo(*std::move(opened)), parts_.part())
                           : Result<CaptureWriter>(std::move(opened).error());
  if (!ended.ok()) {
    if (was_opened) parts_.TakeBack();
    queue_ = queue;
    next_bytes_ = sink.bytes_written() + options_.output.rotate_bytes;
    if (std::exchange(complained_, true)) return;
    std::fprintf(stderr, "xpu-record: cannot start another part: %s\n",
                 ForTerminal(ended.error()).c_str());
    return;
  }
  next_bytes_ = 0;
  queue->WaitForRoom();  // the thread that completes a part drains no source, so it may wait
  auto part = std::make_shared<Ended>(*std::move(ended));
  if (texts_ != nullptr) texts_->Write(part->sink, SourceTexts::Waits::kNo);
  part->code = TakeCode();
  part->kernel_addresses = sink.TakeKernelAddresses();
  part->end.time_ns = MonotonicNs();
  part->end.is_continued = true;
  Complete(std::move(part));
}

void Rotation::Complete(std::shared_ptr<Ended> ended) {
  ended_ = std::move(ended);
  const auto work = [part = ended_, options = options_] {
    CompletePart(part->sink, part->code, ReadKernelSymbols(std::move(part->kernel_addresses)),
                 options, part->end);
    part->code = {};
    ::malloc_trim(0);  // reading symbols needs much memory for a moment, which the allocator would
                       // keep
    part->is_complete = true;
  };
  if (!threads_.Start(work)) work();
}

void Rotation::Collect() {
  if (ended_ == nullptr || !ended_->is_complete) return;
  threads_.Join();
  Add(ended_->sink);
  ended_.reset();
}

void Rotation::Add(EventSink& sink) {
  totals_.events += sink.events_written();
  totals_.bytes += sink.bytes_written();
  totals_.losses.AddTotals(sink.losses());
  if (!totals_.failure) totals_.failure = sink.failure();
}

bool Rotation::HasReachedMax(const EventSink& sink) const {
  if (options_.max_bytes == 0) return false;
  uint64_t bytes = totals_.bytes + sink.bytes_written();
  if (ended_ != nullptr) bytes += ended_->bytes_before_end;
  return bytes >= options_.max_bytes;
}

void Rotation::LookUpKernelFunctions(EventSink& sink) {
  kernel_ = ReadKernelSymbols(sink.TakeKernelAddresses());
}

Rotation::Totals Rotation::Finish(EventSink& sink, const RecordingEnd& end) {
  queue_->WaitForRoom();
  if (texts_ != nullptr) texts_->Write(sink, SourceTexts::Waits::kYes);
  CompletePart(sink, TakeCode(), kernel_, options_, end);
  threads_.Join();
  Collect();
  Add(sink);
  return std::move(totals_);
}

}  // namespace xpu
