// Where a finished capture ends, so that a writer can go on after it (CaptureWriter::Continue).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "format/base/result.h"

namespace xpu {

struct CaptureEnd {
  uint64_t capture_id = 0;
  uint64_t sequence = 0;     // of the last block
  uint64_t events = 0;       // in all blocks
  uint32_t next_string = 0;  // ids that no block defines
  uint32_t next_stack = 0;
};

// Fails when the bytes are not a capture, or one whose header is damaged. A last block that is cut
// counts as a block: what follows it is distinguished by the next number, and its loss stays known.
Result<CaptureEnd> FindCaptureEnd(std::span<const std::byte> capture, const std::string& name);

}  // namespace xpu
