// Whose a process is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <sys/types.h>

namespace xpu {

struct ProcessOwner {
  std::optional<uid_t> user;  // its effective user; nullopt: it was gone
  uint32_t own_pid = 0;       // how it knows itself, in the innermost pid namespace; 0: not known
};

// nullopt: there is no such process any more.
std::optional<ProcessOwner> OwnerOf(uint32_t pid);
// What /proc/PID/status says.
ProcessOwner ParseOwner(std::string_view status);

// Whether a file of `file_user` tells of the code of that process: what everybody can put into /tmp
// is believed of the process's user and of root; where that user is not known, of who records.
bool MayTellOf(const ProcessOwner& owner, uid_t file_user);

}  // namespace xpu
