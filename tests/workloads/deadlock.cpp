// Two threads, each of which holds a mutex and waits for that of the other. Prints as JSON their
// numbers and the addresses of the mutexes, once both wait, and hangs.
#include <atomic>
#include <cstdio>
#include <latch>
#include <mutex>
#include <thread>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "puppet.h"

namespace {

std::mutex left, right;
std::latch both_hold{2};
std::atomic<long> left_tid, right_tid;

}  // namespace

extern "C" {

XPU_FRAME void TakeSecond(std::mutex* second) {
  second->lock();
  second->unlock();
}

XPU_FRAME void LeftThenRight() {
  const std::lock_guard lock(left);
  left_tid = ::syscall(SYS_gettid);
  both_hold.arrive_and_wait();
  TakeSecond(&right);
}

XPU_FRAME void RightThenLeft() {
  const std::lock_guard lock(right);
  right_tid = ::syscall(SYS_gettid);
  both_hold.arrive_and_wait();
  TakeSecond(&left);
}
}

int main() {
  std::thread first([] {
    ::pthread_setname_np(::pthread_self(), "first");
    LeftThenRight();
  });
  std::thread second([] {
    ::pthread_setname_np(::pthread_self(), "second");
    RightThenLeft();
  });
  both_hold.wait();
  std::printf("{\"left\": %lu, \"right\": %lu, \"left_holder\": %ld, \"right_holder\": %ld}\n",
              reinterpret_cast<unsigned long>(&left), reinterpret_cast<unsigned long>(&right),
              left_tid.load(), right_tid.load());
  std::fflush(stdout);
  first.join();
  second.join();
  return 0;
}
