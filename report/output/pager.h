// A pager for what a terminal gets and does not fit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "format/base/handle.h"

namespace xpu {

class Pager {
 public:
  // For standard output. None when it is no terminal, when the user wants none ($XPU_PAGER or
  // $PAGER is empty or "cat"), or when none is set and there is no less.
  static std::optional<Pager> ForTerminal();
  // `command` is run by the shell, as git runs its pager: it is the user's own.
  Pager(std::string command, size_t screen_rows);

  Pager(Pager&& other) noexcept;
  Pager& operator=(Pager&& other) noexcept;
  ~Pager() { Finish(); }

  // Where `text` goes: to the screen while all of it so far fits, else to the pager, which this
  // starts. From then on an interrupt from the keyboard is the pager's.
  int FdFor(std::string_view text);
  // Waits until the user has left it. False: the shell could not run it.
  bool Finish();
  const std::string& command() const { return command_; }

 private:
  void Start();

  std::string command_;
  size_t rows_left_;
  bool can_start_ = true;
  UniqueFd pipe_;
  pid_t child_ = -1;
};

}  // namespace xpu
