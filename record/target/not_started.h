// Explains why a program could not be started, where the error of the system is ambiguous.
#pragma once

#include <string>
#include <string_view>

#include "format/base/result.h"
#include "record/process/file_rights.h"
#include "record/target/target.h"
#include "record/target/target_user.h"

namespace xpu {

// `program`: as the user named it. `user`: the user that it was to run as; nullptr for the caller.
Error NotStarted(const ExecFailure& failure, const std::string& program, const TargetUser* user);

// A hint for an exec that failed with `error_number`; empty if the error explains itself. `path`:
// of the program in PATH; empty if there is none. `rights`: those of the attempt, which messages
// attribute to `who`.
std::string HintForExec(const std::string& program, const std::string& path, int error_number,
                        const FileRights& rights, std::string_view who);

}  // namespace xpu
