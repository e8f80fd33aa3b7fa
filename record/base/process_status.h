// The fields of /proc/PID/status, by their names there without the colon, and /proc/PID/comm.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xpu {

// Without the space in front; empty: it is not there.
std::string_view StatusField(std::string_view status, std::string_view name);

// Its words: "Uid", "Groups", "NSpid".
std::vector<std::string_view> StatusWords(std::string_view status, std::string_view name);

// The name in a /proc/PID/comm; empty: it cannot be read.
std::string ReadComm(const std::string& path);

// A set of bits: "CapEff", "SigIgn"; 0: it is not there.
uint64_t StatusBits(std::string_view status, std::string_view name);

}  // namespace xpu
