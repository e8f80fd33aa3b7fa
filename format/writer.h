// Writes a capture: events in, blocks of compressed columns out. The bytes are in FORMAT.md.
//
// Not thread-safe: one thread owns a writer. A block is written when its raw size is about
// `Options::block_bytes` and at Flush(); the recorder calls Flush() at least once a second.
// A capture is useful up to its last whole block, so there is no step that "completes" a file; but
// what was written since the last Flush() is gone without Close().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "format/block_output.h"
#include "format/capture_end.h"
#include "format/events.h"
#include "format/live_state.h"

namespace xpu {

class CaptureWriter {
 public:
  struct Options {
    size_t block_bytes = size_t{512} << 10;       // raw size at which a block is closed
    uint64_t restate_bytes = uint64_t{64} << 20;  // written bytes after which tables start afresh
    int compression_level = 3;
  };

  // Takes over `fd`, which is open for writing at the file's start (a file or a pipe), and writes
  // the header. `name` is what errors call it.
  static Result<CaptureWriter> Create(UniqueFd fd, std::string name, Options options);
  static Result<CaptureWriter> Create(UniqueFd fd, std::string name) {
    return Create(std::move(fd), std::move(name), Options{});
  }
  static Result<CaptureWriter> Create(std::unique_ptr<BlockOutput> output, Options options);
  static Result<CaptureWriter> Create(std::unique_ptr<BlockOutput> output) {
    return Create(std::move(output), Options{});
  }
  // Goes on with the recording in another capture, which begins with the processes, threads and
  // mappings that are alive, and is restating. What is still written here concerns others.
  Result<CaptureWriter> NextPart(std::unique_ptr<BlockOutput> output);
  // Goes on with a capture whose bytes are in `fd` already: it is open for writing at their end.
  static CaptureWriter Continue(UniqueFd fd, std::string name, const CaptureEnd& end);

  CaptureWriter(CaptureWriter&&) noexcept;
  CaptureWriter& operator=(CaptureWriter&&) noexcept;
  ~CaptureWriter();

  // Ids hold until the next Write or Flush call returns; intern right before the Write that uses
  // them (tables start afresh every `restate_bytes`, and when a block could not be written).
  // Text or bytes; what is beyond 1 MiB is cut. Empty: StringId 0.
  StringId InternString(std::string_view text);
  // Frames innermost first, as unwinders give them; what is beyond 2048 is cut. Empty: StackId 0.
  StackId InternStack(std::span<const Frame> innermost_first);

  // An id that was given out while this was the number is good for the next Write.
  uint64_t TablesNumber();

  // What was interned, while the id holds.
  std::string_view TextOf(StringId id) const;
  StackNode NodeOf(StackId id) const;

  // One for each event type of EventBatch. Fails when the system refuses the bytes of a block that
  // became full; the events of that block are counted in events_lost(), and later blocks may
  // succeed again. A descriptor that is a pipe raises SIGPIPE unless the process ignores it.
  template <typename Event>
  Status Write(const Event& event);

  // What is repeated where the tables start afresh, here and in later parts; nullptr: nothing.
  // It outlives the writer.
  void SetLiveState(LiveState* live);
  // Whether what is written from now on only repeats what was written before
  // (EventBatch::restated).
  void SetRestating(bool restating);

  Status Flush();
  // Flush and close; errors of close are reported (a full disk may show only here).
  Status Close();

  // Whether the last block was taken.
  bool is_writable() const;
  uint64_t bytes_written() const;  // in the header and whole blocks
  // Of those given to Write; what is restated is in neither.
  uint64_t events_written() const;  // in blocks that reached the file
  uint64_t events_lost() const;     // in blocks that did not

 private:
  class Impl;
  explicit CaptureWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu
