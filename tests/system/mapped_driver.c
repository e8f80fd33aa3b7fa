/* Maps libcuda.so.1 of its working directory as if it used CUDA, prints a line, and computes until
   it is killed. Without a C library, so that it can be built for 32 bits everywhere. */
#define PROT_READ_EXEC 5
#define MAP_PRIVATE 2
#define AT_FDCWD (-100)

#ifdef __x86_64__
enum { kWrite = 1, kMmap = 9, kExit = 60, kOpenAt = 257 };
static long Call(long number, long a, long b, long c, long d, long e) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = 0;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#else
enum { kWrite = 4, kMmap = 192 /* mmap2 */, kExit = 1, kOpenAt = 295 };
static long Call(long number, long a, long b, long c, long d, long e) {
  long result;
  /* The sixth argument, an offset of 0, is in ebp, which has to be saved by hand. */
  __asm__ volatile("pushl %%ebp\n\txorl %%ebp, %%ebp\n\tint $0x80\n\tpopl %%ebp"
                   : "=a"(result)
                   : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
                   : "memory");
  return result;
}
#endif

void _start(void) {
  const long fd = Call(kOpenAt, AT_FDCWD, (long)"libcuda.so.1", 0, 0, 0);
  const long at = Call(kMmap, 0, 4096, PROT_READ_EXEC, MAP_PRIVATE, fd);
  if (fd < 0 || (at < 0 && at > -4096)) Call(kExit, 1, 0, 0, 0, 0);
  Call(kWrite, 1, (long)"running\n", 8, 0, 0);
  for (volatile unsigned long count = 0;; ++count) {
  }
}
