// --user: the user that the program runs as, without any of root's privileges.
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
  std::vector<gid_t> groups;  // as a login sets them
  std::string home;
  std::string shell;
};

// Finds the user by name, else by number. Root is refused, because privileges are not dropped to
// it.
Result<TargetUser> FindTargetUser(const std::string& text);

// Sets HOME, USER, LOGNAME and SHELL and leaves everything else.
void SetUserVariables(const TargetUser& user, std::vector<std::string>& environment);

// The step that failed on the way to the other user; error_number 0: none. Points to literals.
struct UserFailure {
  int error_number = 0;
  const char* step = "";
  const char* hint = "";
};

// Sets groups, ids (real, effective, saved and file system) and all capability sets except the
// bounding one, which gives nothing without a way back to root. Then verifies that the
// change is permanent. Makes only system calls: for a child of a process with threads.
UserFailure BecomeUser(const TargetUser& user);

// Checks in a child that has become the user that the program will be able to use what
// `environment` names: the injected library, the selected libcupti, the recorder's socket.
Status CheckUserReaches(const TargetUser& user, const std::vector<std::string>& environment);

}  // namespace xpu
