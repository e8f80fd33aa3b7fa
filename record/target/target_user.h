// --user: another user that the program runs as, with nothing left of root's privileges.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "format/base/result.h"

namespace xpu {

struct TargetUser {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // as login gives them
  std::string home;
  std::string shell;
};

// By name, else by number, as this system knows its users. Root is none: it is not dropped to.
Result<TargetUser> FindTargetUser(const std::string& text);

// HOME, USER, LOGNAME and SHELL; everything else stays.
void SetUserVariables(const TargetUser& user, std::vector<std::string>& environment);

// What did not work on the way to the other user; error_number 0: all did. Literals.
struct UserFailure {
  int error_number = 0;
  const char* step = "";
  const char* hint = "";
};

// Groups, ids (real, effective, saved and of the filesystem) and all sets of capabilities but the
// bounding one, which with no way back to root gives nothing. Then tries to get back. Only system
// calls: for a child of a process that has threads.
UserFailure BecomeUser(const TargetUser& user);

// Whether the program will reach, as that user, what `environment` names for it: the injected
// library, the chosen libcupti, the recorder's socket. Tried by a child that has become the user.
Status CheckUserReaches(const TargetUser& user, const std::vector<std::string>& environment);

}  // namespace xpu
