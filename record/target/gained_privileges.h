// A program that gains privileges when it starts: the kernel takes it out of the perf events of
// whoever started it, and the loader lets it see nothing of the injected library.
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "format/base/result.h"

namespace xpu {

// Whoever is to start a program.
struct Starter {
  uid_t uid = 0;
  gid_t gid = 0;
  uint64_t capabilities = 0;  // permitted
};
Starter OwnStarter();

// What starting the file gives, in words: "user root (setuid)". Empty: nothing, also where the file
// is not there, is not a program, or the kernel ignores its bits (nosuid, no_new_privs).
std::string GainedPrivileges(const std::string& file, const Starter& starter);

// An error where it gives any.
Status CheckGainsNothing(const std::string& file, const Starter& starter);

// Of the value of a file's attribute security.capability.
uint64_t PermittedOfFile(const void* value, size_t bytes);

}  // namespace xpu
