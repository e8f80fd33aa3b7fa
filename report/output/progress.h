// What a long run is doing, for a user who waits at a terminal.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace xpu {

// One line on standard error, only when that is a terminal and not before the work has taken a
// second; gone again when this ends. Any thread may call it.
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
  // Of what has begun; 0 of 0: not known. Cheap enough for every few thousand events.
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
