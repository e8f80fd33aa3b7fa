/* A libcuda.so.1 that opens the CUDA device and never gets loaded: its constructor does not return.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void Wait(void) {
  if (open(getenv("XPU_FAKE_DEVICE_FILE"), O_RDONLY) < 0) abort();
  if (write(STDOUT_FILENO, "waiting\n", 8) != 8) abort();
  for (;;) sleep(1000);
}
