/* A program of the C library musl, which starts a program and its threads by code without call
 * frame information. Busy in main and in a thread, in code of its own alone: musl's is without any.
 *   musl [MILLISECONDS]   about as many in each */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

__attribute__((noinline)) static void burn(uint64_t iterations) {
  volatile uint64_t x = 1;
  while (iterations--) x = x * 3 + 1;
}

static void* run_thread(void* iterations) {
  burn(*(uint64_t*)iterations);
  return 0;
}

int main(int argc, char** argv) {
  uint64_t iterations = (argc > 1 ? atoi(argv[1]) : 100) * 500000ull;
  pthread_t thread;
  pthread_create(&thread, 0, run_thread, &iterations);
  burn(iterations);
  pthread_join(thread, 0);
  return 0;
}
