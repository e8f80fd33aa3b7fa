// Why a program could not be started, where the system's own reason leaves a choice.
#pragma once

#include <string>
#include <string_view>

#include "format/base/result.h"
#include "record/process/file_rights.h"
#include "record/target/target.h"
#include "record/target/target_user.h"

namespace xpu {

// `program`: as the user named it. `user`: the user that it was to run as; nullptr: ours.
Error NotStarted(const ExecFailure& failure, const std::string& program, const TargetUser* user);

// What to do about an exec that failed with `error_number`; empty: the error says it all.
// `path`: where PATH has the program, empty: nowhere. `rights` are those it
// was tried with, `who` has them in messages.
std::string HintForExec(const std::string& program, const std::string& path, int error_number,
                        const FileRights& rights, std::string_view who);

}  // namespace xpu
