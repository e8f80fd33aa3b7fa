// Where the blocks of a capture go. A writer has one; what is after it may take its time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

// What one or several blocks hold.
struct BlockCounts {
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  uint64_t events = 0;
  uint64_t given_events = 0;  // without those that repeat earlier ones

  BlockCounts& operator+=(const BlockCounts& more) {
    blocks += more.blocks;
    bytes += more.bytes;
    events += more.events;
    given_events += more.given_events;
    return *this;
  }
};

class BlockOutput {
 public:
  virtual ~BlockOutput() = default;

  // The file header, before all blocks. It is in the file when this returns Ok.
  virtual Status Begin(std::string_view header) = 0;
  // Fails when this block will not be in the file; kBusy: only because there is no room for it now.
  // When it fails for another reason, earlier blocks may be missing too: TakeLost() tells.
  virtual Status Write(std::string_view block, const BlockCounts& counts) = 0;
  // Blocks that were accepted and are not in the file nevertheless, since the last call: the newest
  // ones, without a gap.
  virtual BlockCounts TakeLost() { return {}; }
  // Errors of close are reported (a full disk may show only here).
  virtual Status Close() = 0;
};

// Writes to a descriptor, and returns when the system has taken the bytes.
class FdOutput : public BlockOutput {
 public:
  // `name` is what errors call it.
  FdOutput(UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {}

  Status Begin(std::string_view header) override;
  Status Write(std::string_view block, const BlockCounts& counts) override;
  Status Close() override;

 private:
  UniqueFd fd_;
  const std::string name_;
};

}  // namespace xpu
