// Output for terminals beside the report itself: the pager, and the progress of the work.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <sys/types.h>

#include "format/base/handle.h"

namespace xpu {

// A pager for what a terminal gets and does not fit.
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

// Shows what a long run is doing, for a user who waits: one line on standard error, only when that
// is a terminal and not before the work has taken a second; gone again when this ends. Any thread
// may call it.
class Progress {
 public:
  Progress();
  // The line goes to `fd`, after `patience`.
  Progress(int fd, std::chrono::milliseconds patience);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { Stop(); }

  // "reading capture.xpu". Begins without a share.
  void Begin(std::string what);
  // Sets the share of what has begun; 0 of 0: not known. Cheap enough for every few thousand
  // events.
  void Set(uint64_t done, uint64_t all);
  // Erases the line for good: the view itself is about to come to the terminal.
  void Stop();

 private:
  void Run(std::chrono::milliseconds patience);
  void Show();

  const int fd_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  bool shown_ = false;
  std::string what_;
  uint64_t done_ = 0;
  uint64_t all_ = 0;
  std::thread thread_;  // last: it uses the others
};

}  // namespace xpu
