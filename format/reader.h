// Reads a capture block by block. The file is untrusted: no content makes the reader crash, hang,
// or take more memory than one block of FORMAT.md's limits and tables in proportion to the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "format/events.h"

namespace xpu {

// What was found wrong with the file while reading it.
struct ReadProblems {
  uint64_t blocks_read = 0;
  uint64_t blocks_damaged = 0;   // skipped: checksum, size or content wrong, or not found at all
  uint64_t events_lost = 0;      // in damaged blocks, as far as a later block or their header tells
  uint64_t bytes_skipped = 0;    // that belong to no block that was read
  bool header_damaged = false;   // of the file; the blocks were found without it
  bool cut = false;              // the file ends inside a block
  bool captures_follow = false;  // after the first, and nothing of them was read
  uint64_t unknown_events = 0;   // of kinds that only a newer reader knows
  uint64_t references_lost = 0;  // of events, to texts and stacks that were in damaged blocks, or
                                 // to stacks whose outer frames were
};

class CaptureReader {
 public:
  // Fails when the file cannot be opened, is not a capture, or needs a newer reader (says which).
  static Result<CaptureReader> Open(const std::string& path);
  // The same over bytes that outlive the reader (tests, fuzzing).
  static Result<CaptureReader> FromBytes(std::span<const std::byte> bytes, std::string name);

  CaptureReader(CaptureReader&&) noexcept;
  CaptureReader& operator=(CaptureReader&&) noexcept;
  ~CaptureReader();

  // The next block's events, nullopt at the end. Damaged blocks are skipped and counted.
  // Every StringId and StackId in the events is either defined or kLostString, kLostStack.
  std::optional<EventBatch> Next();

  // The text of an id; "[lost]" when its definition was lost; "" for 0.
  std::string_view String(StringId id) const;
  // The node of an id. A lost one has no caller and IsLost(id). A caller's id is less than its own.
  StackNode Node(StackId id) const;
  bool IsLost(StackId id) const;
  // Innermost frame first. Ends before a lost node.
  std::vector<Frame> Stack(StackId id) const;
  // Every id below this bound may be passed to Node().
  uint32_t stack_bound() const;

  const ReadProblems& problems() const;
  // Of the file, without its holes.
  uint64_t data_bytes() const;

 private:
  class Impl;
  explicit CaptureReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpu
