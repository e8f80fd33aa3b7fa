// Threads for work that can wait: of low priority, so that the recorded program is not slowed, and
// with every signal blocked, because the recorder's loop handles them.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace xpu {

class BackgroundThreads {
 public:
  BackgroundThreads() = default;
  BackgroundThreads(const BackgroundThreads&) = delete;
  BackgroundThreads& operator=(const BackgroundThreads&) = delete;
  ~BackgroundThreads() { Join(); }

  // At the limit of processes there is no thread, and nothing runs.
  void Start(std::function<void()> work);
  // Waits until each has returned.
  void Join();

 private:
  std::vector<std::thread> threads_;
};

}  // namespace xpu
