// Makes one recording, from its options to the finished capture.
//
// It owns everything that a recording holds, created in an order in which each object dies before
// what it uses: output files, writer and sink, process table, sources, program. Sources are opened
// before the program is forked and armed before its exec, so that nothing of it is missed; the
// program starts only when the capture can be written. A failure after that never ends the program,
// and this process ends as the program did. Nothing is interpreted here: events are stored as they
// arrive, and xpu-report correlates them.
#pragma once

#include <optional>
#include <string>

#include "format/base/result.h"
#include "record/options/options.h"
#include "record/session/sources.h"

namespace xpu {

struct Outcome {
  // How this process must end (ExitLike in Target): the program's own status, or an exit status of
  // 125 (the recording failed), 126 or 127 (the program could not be started).
  int wait_status = 0;
  std::optional<Error> error;  // printed by the caller
  std::string summary;         // printed unless --quiet
};

Outcome Record(const RecordOptions& options, TestHooks hooks = {});

// The wait status of a process that called exit(status).
constexpr int WaitStatusOfExit(int status) { return status << 8; }
inline constexpr int kOwnFailure = 125;

}  // namespace xpu
