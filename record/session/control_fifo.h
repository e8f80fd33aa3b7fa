// Commands to the recorder, one a line, through a fifo, with the words of perf record --control.
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
    std::string text;  // at most kMaxBytes of it; '?' for what cannot be printed
  };
  static constexpr size_t kMaxBytes = 120;

  // `ack_path`: empty: commands are not acknowledged. Does not wait for the other end.
  static Result<ControlFifo> Open(const std::string& path, const std::string& ack_path);

  int fd() const { return commands_.get(); }
  // The whole lines that have come; what is longer than any command is unknown.
  std::vector<Line> Read();
  // A command was executed. A reader that is not there or does not read misses it.
  void Acknowledge() const;

 private:
  UniqueFd commands_;
  UniqueFd acks_;
  std::string begun_;  // a line whose end has not come
};

}  // namespace xpu
