// --user: keeps a program that runs as another user from gaining anything from the root that starts
// it: privileges by other ways, root's keys and open files, and input to root's terminal.
#pragma once

#include <span>

#include <linux/filter.h>

#include "record/target/target_user.h"

namespace xpu {

struct Confinement {
  bool allows_new_privileges = false;  // setuid programs and file capabilities keep their effect
  bool keeps_descriptors = false;      // descriptors above 2 are inherited
};

// Calls BecomeUser and applies, permanently and to all descendants:
// - no_new_privs, unless `confinement` allows new privileges;
// - no ioctl that puts input into a terminal (TIOCSTI, TIOCLINUX): a terminal that is shared with
// root's shell would execute it as root. A session of its own would prevent that too, but would
// take away the terminal and job control;
// - a new session keyring: whoever possesses root's keyring can use its keys;
// - closing of descriptors above 2 by the exec, unless `confinement` keeps them.
// Fails if any of these is not possible. Makes only system calls: for a child of a process with
// threads, before its exec.
UserFailure BecomeConfinedUser(const TargetUser& user, const Confinement& confinement);

// The seccomp filter against terminal input: EPERM for those two ioctl requests, however ioctl is
// called; everything else is allowed.
std::span<const sock_filter> TerminalInputFilter();

}  // namespace xpu
