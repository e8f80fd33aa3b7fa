// Where an output goes: a name in a directory that is held open, and what has that name by now.
//
// Whoever may write to a directory on the way to an output can exchange what lies in it between two
// looks at it. So each step is opened relative to the one before it and judged by its descriptor,
// and what is found is opened by its descriptor, never by its name again. Root follows a symbolic
// link only when root or the user who called sudo made it; for everybody else the kernel's rules
// are enough. openat2(2) cannot do this: it follows either all links or none.
#pragma once

#include <optional>
#include <string>

#include <sys/stat.h>

#include "format/base/handle.h"
#include "format/base/result.h"

namespace xpu {

struct OutputLocation {
  UniqueFd directory;           // O_PATH; none: a link of /proc led to the entry
  std::string name;             // of one component; empty: the path ends in a slash
  UniqueFd entry;               // what has the name, O_PATH, no link; none: nothing has it
  struct stat info {};          // of the entry
  bool is_behind_link = false;  // the path names a link to it
};

// kPermission: a link on the way was made by a user whose links root does not follow. `operation`
// is what errors say after the path.
Result<OutputLocation> FindOutputLocation(const std::string& path,
                                          std::string operation = "create");

// False for root where a user has put something of his own into a directory of another user, as
// into /tmp: there it may have been put in the way of what root creates. The kernel's rule too
// (protected_fifos, protected_regular).
bool MayBeMeant(const OutputLocation& place);

// Opens what was found, whatever its name leads to by now. `flags`: O_WRONLY and others. None:
// errno says why.
UniqueFd OpenEntry(const OutputLocation& place, int flags);

// A file that is created with mode 0666, or the existing one, which is emptied, by the rules above.
// Links to files are followed. Devices and pipes are opened as they are.
Result<UniqueFd> CreateOrReplace(const std::string& path);

// Of SUDO_UID or SUDO_GID, for root; nullopt: sudo did not start this process.
std::optional<unsigned> NumberFromSudo(const char* variable);

// Whether root may rely on what this user made; true for all users but root.
bool IsTrustedOwner(uid_t owner);

}  // namespace xpu
