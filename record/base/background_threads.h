// Threads for work that can wait: of low priority, so that the recorded program is not slowed, and
// with every signal blocked, because the recorder's loop handles them.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace xpu {

// A thread on which no signal is handled: they are for the recorder's loop. Not joinable when the
// system has none left.
std::thread StartWithoutSignals(std::function<void()> work);

class BackgroundThreads {
 public:
  BackgroundThreads() = default;
  BackgroundThreads(BackgroundThreads&&) = default;
  BackgroundThreads& operator=(BackgroundThreads&&) = delete;
  ~BackgroundThreads() { Join(); }

  // False: at the limit of processes there is no thread, and nothing runs.
  bool Start(std::function<void()> work);
  // Waits until each has returned.
  void Join();

 private:
  std::vector<std::thread> threads_;
};

}  // namespace xpu
