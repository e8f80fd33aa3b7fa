// What record_attach_test.py loads into programs: a library that connects to its recorder as the
// injected one does, sends one byte, and ends when the connection is closed.
#include <cstdio>
#include <ctime>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cupti_inject/attach_request.h"

using xpu::wire::AttachRequest;
using xpu::wire::AttachState;

namespace {

// False: nobody took the offer in time.
bool WaitUntilTaken(AttachRequest& request) {
  for (int waits = 0; waits < 10'000; ++waits) {
    if (request.state == AttachState::kTaken) return true;
    if (request.state == AttachState::kWithdrawn) return false;
    const timespec pause{0, 200'000};
    ::nanosleep(&pause, nullptr);
  }
  return false;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* xpu_inject_attach(void* area) {
  ::pthread_detach(::pthread_self());  // nobody joins it
  ::prctl(PR_SET_NAME, "xpu-inject");
  auto& request = *static_cast<AttachRequest*>(area);
  if (request.session == 0) {  // the test wants to be refused
    std::snprintf(request.error, sizeof(request.error), "session 0 is refused");
    request.state = AttachState::kRefused;
    WaitUntilTaken(request);
    ::munmap(area, request.area_bytes);
    return nullptr;
  }
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return nullptr;
  request.socket = pair[1];
  request.state = AttachState::kOffered;
  const bool is_taken = WaitUntilTaken(request);
  ::close(pair[1]);
  ::munmap(area, request.area_bytes);
  char byte = 'x';
  if (is_taken && ::send(pair[0], &byte, 1, MSG_NOSIGNAL) == 1) ::recv(pair[0], &byte, 1, 0);
  ::close(pair[0]);
  return nullptr;
}
