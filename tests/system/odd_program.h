// What the files of odd_program.cpp share.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace odd {

[[noreturn]] inline void Fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::_Exit(99);
}

inline void Check(bool works, const char* what) {
  if (!works) Fail(what);
}

// A line of JSON: how this process sees itself.
void View();

// What a program needs that has everything open, and nothing more: memory, threads that are there,
// its output. `action`: "errno" or "kill".
void FilterStrictly(std::string_view action, int flags);
void FilterNetwork(std::string_view action);

// "nofile:20"
void Limit(const std::string& text);

}  // namespace odd
