// One recording, from its options to the finished capture.
#pragma once

#include <optional>
#include <string>

#include "format/base/result.h"
#include "record/options/options.h"
#include "record/session/sources.h"

namespace xpu {

struct Outcome {
  // How this process should end (Target's ExitLike): the program's own status, or an exit status of
  // 125 (the recording failed), 126, 127 (the program could not be started).
  int wait_status = 0;
  std::optional<Error> error;  // to print
  std::string summary;         // to print unless asked to be quiet
};

Outcome Record(const RecordOptions& options, TestHooks hooks = {});

// The wait status of a process that called exit(status).
constexpr int WaitStatusOfExit(int status) { return status << 8; }
inline constexpr int kOwnFailure = 125;

}  // namespace xpu
