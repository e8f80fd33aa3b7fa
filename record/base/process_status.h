// What /proc/PID says of a process: the fields of its status, by their names there without the
// colon, its name, and whose it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace xpu {

// Without the space in front; empty: it is not there.
std::string_view StatusField(std::string_view status, std::string_view name);

// Its words: "Uid", "Groups", "NSpid".
std::vector<std::string_view> StatusWords(std::string_view status, std::string_view name);

// The name in a /proc/PID/comm; empty: it cannot be read.
std::string ReadComm(const std::string& path);

// A set of bits: "CapEff", "SigIgn"; 0: it is not there.
uint64_t StatusBits(std::string_view status, std::string_view name);

struct ProcessOwner {
  std::optional<uid_t> user;  // its effective user; nullopt: it was gone
  uint32_t own_pid = 0;       // how it knows itself, in the innermost pid namespace; 0: not known
};

// nullopt: there is no such process any more.
std::optional<ProcessOwner> OwnerOf(uint32_t pid);
// What /proc/PID/status says.
ProcessOwner ParseOwner(std::string_view status);

// Whether a file of `file_user` may describe code of that process: what everybody can put into /tmp
// is believed of the process's user and of root; where that user is not known, of who records.
bool MayTellOf(const ProcessOwner& owner, uid_t file_user);

}  // namespace xpu
