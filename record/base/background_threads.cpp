#include "record/base/background_threads.h"

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include <sys/resource.h>

namespace xpu {
namespace {

constexpr int kNiceness = 5;  // also where the starter already runs at a lower priority

}  // namespace

std::thread StartWithoutSignals(std::function<void()> work) {
  // The new thread inherits the signal mask, so it never runs without it.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(work));
  } catch (const std::system_error&) {
    // The limit on processes has been reached.
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

bool BackgroundThreads::Start(std::function<void()> work) {
  std::thread thread = StartWithoutSignals([work = std::move(work)] {
    // On Linux this changes the priority of this thread only.
    ::setpriority(PRIO_PROCESS, 0, std::max(::getpriority(PRIO_PROCESS, 0), 0) + kNiceness);
    work();
  });
  if (!thread.joinable()) return false;
  threads_.push_back(std::move(thread));
  return true;
}

void BackgroundThreads::Join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace xpu
