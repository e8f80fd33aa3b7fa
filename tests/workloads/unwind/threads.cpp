// Threads, and children that share the memory (vfork) or not (fork, posix_spawn).
//   threads [MILLISECONDS]
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

#include "unwind.h"

XPU_LEAF(LeafThread)
XPU_LEAF(LeafTinyStack)
XPU_LEAF(LeafVfork)
XPU_LEAF(LeafFork)
XPU_LEAF(LeafSpawned)

namespace {
uint64_t amount = 0;
}

XPU_FRAME void* RunThread(void*) {
  XPU_SPOIL_FRAME_POINTER();
  LeafThread(amount);
  XPU_BARRIER();
  return nullptr;
}

XPU_FRAME void* RunTinyStack(void*) {
  LeafTinyStack(amount);
  XPU_BARRIER();
  return nullptr;
}

XPU_FRAME void RunThreads() {
  pthread_t threads[2];
  for (pthread_t& thread : threads) pthread_create(&thread, nullptr, RunThread, nullptr);
  for (pthread_t& thread : threads) pthread_join(thread, nullptr);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 16384);
  pthread_create(&threads[0], &attributes, RunTinyStack, nullptr);
  pthread_join(threads[0], nullptr);
  pthread_attr_destroy(&attributes);
}

XPU_FRAME void RunVfork() {
  if (vfork() == 0) {
    LeafVfork(amount);
    _exit(0);
  }
  wait(nullptr);
}

XPU_FRAME void RunFork() {
  if (fork() == 0) {
    LeafFork(amount);
    _exit(0);
  }
  wait(nullptr);
}

XPU_FRAME void RunSpawn(char** argv, char** environment) {
  char milliseconds[] = "100";
  char spawned[] = "spawned";
  char* const arguments[] = {argv[0], argv[1] == nullptr ? milliseconds : argv[1], spawned,
                             nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environment) == 0) {
    wait(nullptr);
  }
}

int main(int argc, char** argv, char** environment) {
  amount = unwind::Amount(unwind::Milliseconds(argc, argv));
  if (argc > 2) {
    LeafSpawned(amount);
    XPU_BARRIER();
    return 0;
  }
  RunThreads();
  RunVfork();
  RunFork();
  RunSpawn(argv, environment);
  using unwind::Expect;
  Expect("LeafThread", "LeafThread;RunThread" XPU_BELOW_THREAD);
  Expect("LeafTinyStack", "LeafTinyStack;RunTinyStack" XPU_BELOW_THREAD);
  Expect("LeafVfork", "LeafVfork;RunVfork" XPU_BELOW_MAIN);
  Expect("LeafFork", "LeafFork;RunFork" XPU_BELOW_MAIN);
  Expect("LeafSpawned", "LeafSpawned" XPU_BELOW_MAIN);
  return 0;
}
