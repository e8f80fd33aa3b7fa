/* Makes the kernel write records, and nothing else: kernel_records names|churn|keep COUNT. Prints the
 * seconds that it took. Of kernel_records_bench.py. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

enum { kPageBytes = 4096 };

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int ChangeNames(long count) {
  for (long i = 0; i < count; ++i) {
    char name[16];
    snprintf(name, sizeof(name), "n%ld", i);
    if (prctl(PR_SET_NAME, name) != 0) return 1;
  }
  return 0;
}

static int MapCode(long count, int keep) {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 1;
  for (long i = 0; i < count; ++i) {
    void* code = mmap(NULL, kPageBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    if (code == MAP_FAILED) return 1;
    if (!keep) munmap(code, kPageBytes);
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long count = strtol(argv[2], NULL, 10);
  const double begin = Now();
  const int status = strcmp(argv[1], "names") == 0 ? ChangeNames(count)
                                                   : MapCode(count, strcmp(argv[1], "keep") == 0);
  if (status == 0) printf("%.6f\n", Now() - begin);
  return status;
}
