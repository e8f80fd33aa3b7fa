// Reads /proc/PID of a process: the fields of its status, by the names there without the colon, its
// name, and its owner; and whether it is there, by its pidfd.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace xpu {

// The process, or another of its threads if the first one has ended: from then on /proc/PID has no
// memory, mappings, root, environment and namespaces, and system calls do not find its memory.
uint32_t LivingThread(uint32_t pid);
inline pid_t LivingThread(pid_t pid) {
  return static_cast<pid_t>(LivingThread(static_cast<uint32_t>(pid)));
}

// The value without leading space; empty if the field is missing.
std::string_view StatusField(std::string_view status, std::string_view name);

// The words of fields such as "Uid", "Groups" and "NSpid".
std::vector<std::string_view> StatusWords(std::string_view status, std::string_view name);

// Where a link of /proc leads to: a path, or a namespace as "mnt:[4026531841]"; empty: not known.
std::string LinkText(const std::string& path);
// `link`: a user namespace, as /proc/PID/ns/user or an open one.
inline bool IsOwnUserNamespace(const std::string& link) {
  return LinkText(link) == LinkText("/proc/self/ns/user");
}

// Reads the name from a /proc/PID/comm; empty if it cannot be read.
std::string ReadComm(const std::string& path);

// Parses a bit set such as "CapEff" or "SigIgn"; 0 if the field is missing.
uint64_t StatusBits(std::string_view status, std::string_view name);

// True if the main thread runs or waits for a processor; false also if there is no such process.
bool IsRunnable(pid_t pid);

// Whether all threads of a pidfd's process have ended. Waits for that, if it is asked to.
bool AllHaveEnded(int pidfd, int timeout_ms = 0);

// Fields of /proc/PID/stat.
struct ProcessStat {
  uint32_t parent_pid = 0;
  uint64_t start_ticks = 0;  // since boot, 10 ms each (_SC_CLK_TCK)
};
// Returns {} if the text is invalid.
ProcessStat ParseProcessStat(std::string_view text);
// How long ago that was. Ticks also count while the machine sleeps.
uint64_t AgeNs(uint64_t ticks);

struct ProcessOwner {
  std::optional<uid_t> user;   // effective user; nullopt: the process has ended
  uint32_t own_pid = 0;        // its pid in its innermost pid namespace; 0: not known
  uint64_t began_unix_ns = 0;  // when its program began, CLOCK_REALTIME; 0: not known
};

// nullopt if the process does not exist any more. When its program began is not determined.
std::optional<ProcessOwner> OwnerOf(uint32_t pid);
// When the process began, CLOCK_REALTIME; 0: it does not exist any more.
uint64_t BeganUnixNs(uint32_t pid);
// Parses the text of /proc/PID/status.
ProcessOwner ParseOwner(std::string_view status);

// True if a file owned by `file_user` may describe code of that process. Anybody can create files
// in /tmp, so only those of the process's user and of root are trusted; if the process's user is
// not known, those of the recorder's user.
bool MayDescribe(const ProcessOwner& owner, uid_t file_user);

}  // namespace xpu
