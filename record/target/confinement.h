// --user: what a program that runs as another user must not get from the root that starts it beside
// its privileges: ways to get them back, root's keys and open files, root's terminal as a keyboard.
#pragma once

#include <span>

#include <linux/filter.h>

#include "record/target/target_user.h"

namespace xpu {

struct Confinement {
  bool allows_new_privileges = false;  // setuid programs and file capabilities give theirs
  bool keeps_descriptors = false;      // those above 2 are passed on
};

// BecomeUser, and for good, for all that the process starts:
//  - no_new_privs, unless `confinement` allows new privileges;
//  - no ioctl that puts input into a terminal (TIOCSTI, TIOCLINUX): a terminal that is shared with
//    root's shell would run it as root. A session of its own would prevent that too, and take the
//    terminal and job control away;
//  - a new session keyring: the possessor of root's could use the keys in it;
//  - descriptors above 2 are closed by the exec, unless `confinement` keeps them.
// Fails where one of them cannot be had. Only system calls: for a child of a process that has
// threads, in front of its exec.
UserFailure BecomeConfinedUser(const TargetUser& user, const Confinement& confinement);

// The seccomp filter against input for terminals: EPERM for those two requests of ioctl, however it
// is called, all else is allowed.
std::span<const sock_filter> TerminalInputFilter();

}  // namespace xpu
