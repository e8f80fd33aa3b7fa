// A program of one thread that waits in one system call, for record_attach_test.py: CALL, or
// CALL-limit for one with a time limit of a second. A child process ends a wait without limit when
// standard input ends. It prints "waiting", and when the call has returned what it returned, its
// error number and for a limit whether the time was right.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <string>

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr double kLimitSeconds = 1;
// A limit that began again with each of many attaches would be longer than that.
constexpr double kMostSeconds = 6;
constexpr timespec kLimit{1, 0};

struct Shared {
  sem_t semaphore;
  uint32_t word;
};

struct Places {
  int pipe[2];
  int pair[2];
  int listener;
  int epoll;
  int file;        // locked by the child
  int semaphores;  // System V
  int queue;
  sockaddr_un address;
  Shared* shared;
  pid_t parent;
};
Places at;

double Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

timespec After(clockid_t clock) {
  timespec end{};
  ::clock_gettime(clock, &end);
  end.tv_sec += kLimit.tv_sec;
  return end;
}

long Futex(int operation, const timespec* limit) {
  return ::syscall(SYS_futex, &at.shared->word, operation, 0, limit, nullptr,
                   FUTEX_BITSET_MATCH_ANY);
}

long Select(timeval* limit) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(at.pipe[0], &set);
  return ::select(at.pipe[0] + 1, &set, nullptr, nullptr, limit);
}

long SignalWait(const timespec* limit) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  return ::sigtimedwait(&set, nullptr, limit);
}

long ReceiveWithLimit() {
  const timeval limit{60, 0};
  ::setsockopt(at.pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  char byte = 0;
  return ::recv(at.pair[0], &byte, 1, 0);
}

long Operate(const timespec* limit) {
  sembuf take{0, -1, 0};
  return ::semtimedop(at.semaphores, &take, 1, limit);
}

const std::map<std::string, std::function<long()>> kCalls = {
    {"read",
     [] {
       char byte;
       return ::read(at.pipe[0], &byte, 1);
     }},
    {"poll",
     [] {
       pollfd one{at.pipe[0], POLLIN, 0};
       return ::poll(&one, 1, -1);
     }},
    {"poll-limit",
     [] {
       pollfd one{at.pipe[0], POLLIN, 0};
       return ::poll(&one, 1, 1000);
     }},
    {"ppoll-limit",
     [] {
       pollfd one{at.pipe[0], POLLIN, 0};
       return ::ppoll(&one, 1, &kLimit, nullptr);
     }},
    {"select", [] { return Select(nullptr); }},
    {"select-limit",
     [] {
       timeval limit{1, 0};
       return Select(&limit);
     }},
    {"epoll_wait",
     [] {
       epoll_event event;
       return ::epoll_wait(at.epoll, &event, 1, -1);
     }},
    {"nanosleep-limit", [] { return ::nanosleep(&kLimit, nullptr); }},
    {"clock_nanosleep-limit",
     [] { return ::clock_nanosleep(CLOCK_MONOTONIC, 0, &kLimit, nullptr); }},
    {"clock_nanosleep-until-limit",
     [] {
       const timespec end = After(CLOCK_MONOTONIC);
       return ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr);
     }},
    {"futex", [] { return Futex(FUTEX_WAIT, nullptr); }},
    {"futex-limit", [] { return Futex(FUTEX_WAIT, &kLimit); }},
    {"futex-until-limit",
     [] {
       const timespec end = After(CLOCK_MONOTONIC);
       return Futex(FUTEX_WAIT_BITSET, &end);
     }},
    {"sem_wait", [] { return ::sem_wait(&at.shared->semaphore); }},
    {"sem_timedwait-limit",
     [] {
       const timespec end = After(CLOCK_REALTIME);
       return ::sem_timedwait(&at.shared->semaphore, &end);
     }},
    {"sigtimedwait", [] { return SignalWait(nullptr); }},
    {"accept", [] { return ::accept(at.listener, nullptr, nullptr) >= 0 ? 0 : -1; }},
    {"recv",
     [] {
       char byte;
       return ::recv(at.pair[0], &byte, 1, 0);
     }},
    {"recv-timeout", ReceiveWithLimit},
    {"wait4", [] { return ::waitpid(-1, nullptr, 0) > 0 ? 0 : -1; }},
    {"flock", [] { return ::flock(at.file, LOCK_EX); }},
    {"semop", [] { return Operate(nullptr); }},
    {"msgrcv",
     [] {
       char message[64];
       return ::msgrcv(at.queue, message, 1, 0, 0);
     }},
};

// All ways at once to end a wait.
void EndWaits() {
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  const bool is_sent = ::write(at.pipe[1], "x", 1) == 1 && ::send(at.pair[1], "x", 1, 0) == 1;
  const int client = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ::connect(client, reinterpret_cast<const sockaddr*>(&at.address), sizeof(at.address));
  at.shared->word = 1;
  ::syscall(SYS_futex, &at.shared->word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  ::sem_post(&at.shared->semaphore);
  ::kill(at.parent, SIGUSR1);
  sembuf give{0, 1, 0};
  ::semop(at.semaphores, &give, 1);
  const struct {
    long type;
    char text;
  } message{1, 'x'};
  ::msgsnd(at.queue, &message, 1, 0);
  ::_exit(is_sent ? 0 : 1);
}

void Prepare() {
  at.parent = ::getpid();
  at.shared = static_cast<Shared*>(
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ::sem_init(&at.shared->semaphore, 1, 0);
  if (::pipe(at.pipe) != 0 || ::socketpair(AF_UNIX, SOCK_STREAM, 0, at.pair) != 0) std::exit(2);
  at.listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  at.address.sun_family = AF_UNIX;
  std::snprintf(at.address.sun_path + 1, sizeof(at.address.sun_path) - 1, "attach_waits-%d",
                static_cast<int>(at.parent));
  if (::bind(at.listener, reinterpret_cast<sockaddr*>(&at.address), sizeof(at.address)) != 0 ||
      ::listen(at.listener, 1) != 0) {
    std::exit(2);
  }
  at.epoll = ::epoll_create1(0);
  epoll_event event{EPOLLIN, {}};
  ::epoll_ctl(at.epoll, EPOLL_CTL_ADD, at.pipe[0], &event);
  char path[] = "/tmp/attach_waits-XXXXXX";
  const int locked = ::mkstemp(path);
  ::flock(locked, LOCK_EX);
  at.file = ::open(path, O_RDONLY);
  ::unlink(path);
  at.semaphores = ::semget(IPC_PRIVATE, 1, 0600);
  at.queue = ::msgget(IPC_PRIVATE, 0600);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  if (::fork() == 0) EndWaits();
  ::close(locked);  // the child holds the lock
}

}  // namespace

int main(int argc, char** argv) {
  const auto call = argc == 2 ? kCalls.find(argv[1]) : kCalls.end();
  if (call == kCalls.end()) return 2;
  Prepare();
  std::printf("waiting\n");
  std::fflush(stdout);
  const double begin = Now();
  errno = 0;
  const long result = call->second();
  const int error = errno;
  const double seconds = Now() - begin;
  ::semctl(at.semaphores, 0, IPC_RMID);
  ::msgctl(at.queue, IPC_RMID, nullptr);
  std::printf("%ld %d", result, error);
  if (call->first.ends_with("-limit")) {
    const bool is_right = seconds >= kLimitSeconds && seconds < kMostSeconds;
    std::printf(is_right ? " in time" : " in %f s", seconds);
  }
  std::printf("\n");
  return 0;
}
