// Programs that gain privileges when they start: the kernel removes them from the perf events of
// the process that started them, and the loader hides the injected library's variables from them.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "format/base/result.h"

namespace xpu {

// The process that will start a program.
struct Starter {
  uid_t uid = 0;
  gid_t gid = 0;
  uint64_t capabilities = 0;  // permitted
};
Starter OwnStarter();

// The privileges that starting the file gives, as "user root (setuid)". Empty if there are none, if
// the file does not exist or is not a program, or if the kernel ignores its bits (nosuid,
// no_new_privs).
std::string GainedPrivileges(const std::string& file, const Starter& starter);

// Returns an error if it gives any.
Status CheckGainsNothing(const std::string& file, const Starter& starter);

// The permitted set in the value of a file's attribute security.capability.
uint64_t PermittedOfFile(const void* value, size_t bytes);

}  // namespace xpu
