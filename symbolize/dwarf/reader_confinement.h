// What a process that reads debug information gives up before it opens the file.
#pragma once

#include <cstdint>
#include <string>

#include "symbolize/dwarf/reader_messages.h"

namespace xpu::dwarf {

// Of the calling process, for good:
// - the user, where the greeting names one, and all capabilities: root reads a file as its owner,
//   who gains nothing by what he writes into it, and the split units that it names are found by
//   him only where he may read. In a user namespace that does not know the owner, or for a root
//   that may not change users, the capabilities alone;
// - new privileges (no_new_privs), core dumps, memory beyond the greeting's limit, an hour of
//   processor time;
// - system calls but those that memory, reading files and answering take (seccomp). Opening is
//   allowed for reading, since libdw opens split units by itself, long after it read their paths
//   from the file; it writes to nothing but the socket and makes no sockets, processes or signals
//   for others. The filter is left out where the kernel has none, and in sanitized builds, whose
//   runtime needs more.
// Empty: done; else what failed.
std::string ConfineReader(const ReaderGreeting& greeting);

}  // namespace xpu::dwarf
