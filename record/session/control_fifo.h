// Reads commands to the recorder from a FIFO, one per line, with the words of perf record
// --control.
#pragma once

#include <string>
#include <vector>

#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

class ControlFifo {
 public:
  enum class Command { kEnable, kDisable, kPing, kStop, kUnknown };
  struct Line {
    Command command = Command::kUnknown;
    std::string text;  // at most kMaxBytes; '?' for characters that cannot be printed
  };
  static constexpr size_t kMaxBytes = 120;

  // An empty `ack_path` means that commands are not acknowledged. Does not wait for the other end.
  static Result<ControlFifo> Open(const std::string& path, const std::string& ack_path);

  int fd() const { return commands_.get(); }
  // The complete lines that have arrived; one that is longer than any command is unknown.
  std::vector<Line> Read();
  // Acknowledges an executed command. A reader that is missing or does not read misses it.
  void Acknowledge() const;

 private:
  UniqueFd commands_;
  UniqueFd acks_;
  std::string begun_;  // an incomplete line
};

}  // namespace xpu
