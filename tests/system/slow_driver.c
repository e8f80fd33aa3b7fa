/* A libcuda.so.1 that maps the CUDA device and never gets loaded: its constructor does not return.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((constructor)) static void Wait(void) {
  const int file = open(getenv("XPU_FAKE_DEVICE_FILE"), O_RDWR);
  if (mmap(0, 4096, PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED) abort();
  if (write(STDOUT_FILENO, "waiting\n", 8) != 8) abort();
  for (;;) sleep(1000);
}
