#include "cupti_inject/loaded_files.h"

#include <atomic>
#include <new>

#include <pthread.h>

#include "cupti_inject/lock.h"

namespace xpu::inject {
namespace {

constexpr uint64_t kLongestWaitNs = 20'000'000;
constexpr uint64_t kStepNs = 20'000;

constinit Lock g_iterates;
constinit std::atomic<pthread_t> g_forks{0};  // the thread that keeps ours from it

}  // namespace

int ForEachLoadedFile(int (*visit)(dl_phdr_info*, size_t, void*), void* data) {
  const Locked locked(g_iterates);
  return dl_iterate_phdr(visit, data);
}

bool KeepFromLoadedFiles() {
  for (uint64_t waited_ns = 0; waited_ns < kLongestWaitNs; waited_ns += kStepNs) {
    if (g_iterates.TryAcquire()) {
      g_forks.store(pthread_self());
      return true;
    }
    SleepNs(kStepNs);
  }
  return false;
}

void ReturnToLoadedFiles() {
  if (g_forks.load() != pthread_self()) return;
  g_forks.store(0);
  g_iterates.Release();
}

void ReturnToLoadedFilesInChild() {
  g_forks.store(0);
  new (&g_iterates) Lock();
}

}  // namespace xpu::inject
