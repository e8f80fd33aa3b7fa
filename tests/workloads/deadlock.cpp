// Two threads, each of which holds a mutex and waits for that of the other. Prints as JSON their
// numbers and the addresses of the mutexes, once both wait, and hangs. With --robust, the mutexes
// notice when their owner ends. With --rwlock, they are read-write locks that both threads hold for
// writing; one waits to read, the other to write.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <latch>
#include <mutex>
#include <thread>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "puppet.h"

namespace {

std::mutex left, right;
pthread_rwlock_t left_rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_rwlock_t right_rwlock = PTHREAD_RWLOCK_INITIALIZER;
bool uses_rwlocks = false;
std::latch both_hold{2};
std::atomic<long> left_tid, right_tid;

}  // namespace

extern "C" {

XPU_FRAME void TakeSecond(std::mutex* second) {
  second->lock();
  second->unlock();
}

XPU_FRAME void LeftThenRight() {
  if (uses_rwlocks) {
    ::pthread_rwlock_wrlock(&left_rwlock);
  } else {
    left.lock();
  }
  left_tid = ::syscall(SYS_gettid);
  both_hold.arrive_and_wait();
  if (uses_rwlocks) {
    ::pthread_rwlock_rdlock(&right_rwlock);
  } else {
    TakeSecond(&right);
  }
}

XPU_FRAME void RightThenLeft() {
  if (uses_rwlocks) {
    ::pthread_rwlock_wrlock(&right_rwlock);
  } else {
    right.lock();
  }
  right_tid = ::syscall(SYS_gettid);
  both_hold.arrive_and_wait();
  if (uses_rwlocks) {
    ::pthread_rwlock_wrlock(&left_rwlock);
  } else {
    TakeSecond(&left);
  }
}
}

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--robust") == 0) {
    pthread_mutexattr_t robust;
    ::pthread_mutexattr_init(&robust);
    ::pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    for (std::mutex* mutex : {&left, &right}) ::pthread_mutex_init(mutex->native_handle(), &robust);
  }
  uses_rwlocks = count > 1 && std::strcmp(arguments[1], "--rwlock") == 0;
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
              uses_rwlocks ? reinterpret_cast<unsigned long>(&left_rwlock)
                           : reinterpret_cast<unsigned long>(&left),
              uses_rwlocks ? reinterpret_cast<unsigned long>(&right_rwlock)
                           : reinterpret_cast<unsigned long>(&right),
              left_tid.load(), right_tid.load());
  std::fflush(stdout);
  first.join();
  second.join();
  return 0;
}
