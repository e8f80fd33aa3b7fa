// Threads for work that can wait: at low priority, so that the recorded program is not slowed, and
// with all signals blocked, because the recorder's loop handles them.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace xpu {

// Starts a thread that handles no signals: they are for the recorder's loop. The result is not
// joinable if the system has no thread left.
std::thread StartWithoutSignals(std::function<void()> work);

class BackgroundThreads {
 public:
  BackgroundThreads() = default;
  BackgroundThreads(BackgroundThreads&&) = default;
  BackgroundThreads& operator=(BackgroundThreads&&) = delete;
  ~BackgroundThreads() { Join(); }

  // Returns false and runs nothing if the limit on processes leaves no thread.
  bool Start(std::function<void()> work);
  // Waits until all threads have returned.
  void Join();

 private:
  std::vector<std::thread> threads_;
};

}  // namespace xpu
