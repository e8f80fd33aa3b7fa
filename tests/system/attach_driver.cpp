// Attaches to a process again and again, for record_attach_test.py:
//   PID LIBRARY COUNT [--session N] [--pause-us N]
//   [--end-at STAGE | --end-target-at STAGE | --stand-still-at STAGE --seconds N]
// For each attach a line: the time for which a thread stood still in ns, attempts, whether the
// library was mapped, the thread. A random pause of up to twice --pause-us lies between two. At the
// stage, a number of AttachStage, this program or the other one is killed, or this one stands still
// for so long. Status 3: an error, which it prints.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

#include "record/attach/attach.h"
#include "record/base/clock.h"

namespace {

struct Arguments {
  xpu::AttachTarget target;
  int count = 1;
  unsigned pause_us = 0;
  int end_at = -1;
  int end_target_at = -1;
  int stand_still_at = -1;
  unsigned seconds = 0;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  arguments.target.pid = std::atoi(argv[1]);
  arguments.target.library = argv[2];
  arguments.target.session = 1;
  arguments.count = std::atoi(argv[3]);
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const int value = std::atoi(argv[i + 1]);
    if (name == "--session") arguments.target.session = static_cast<uint64_t>(value);
    if (name == "--pause-us") arguments.pause_us = static_cast<unsigned>(value);
    if (name == "--end-at") arguments.end_at = value;
    if (name == "--stand-still-at") arguments.stand_still_at = value;
    if (name == "--seconds") arguments.seconds = static_cast<unsigned>(value);
    if (name == "--end-target-at") arguments.end_target_at = value;
  }
  return arguments;
}

// Takes all turns; nothing else is to do meanwhile.
xpu::Result<xpu::Attached> Attach(const xpu::AttachTarget& target,
                                  const xpu::AttachObserver& observe) {
  xpu::Attaching attaching(target, observe);
  while (true) {
    if (auto done = attaching.Continue()) return *std::move(done);
    const uint64_t now_ns = xpu::MonotonicNs();
    if (attaching.due_ns() > now_ns) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(attaching.due_ns() - now_ns));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const Arguments arguments = Parse(argc, argv);
  const xpu::AttachObserver observe = [&](xpu::AttachStage stage) {
    const int number = static_cast<int>(stage);
    if (number == arguments.end_at) ::kill(::getpid(), SIGKILL);
    if (number == arguments.stand_still_at) ::sleep(arguments.seconds);
    if (number == arguments.end_target_at) ::kill(arguments.target.pid, SIGKILL);
  };
  std::mt19937 random(std::random_device{}());
  for (int i = 0; i < arguments.count; ++i) {
    auto attached = Attach(arguments.target, observe);
    if (!attached.ok()) {
      std::printf("%s\nhint: %s\n", attached.error().message.c_str(),
                  attached.error().hint.c_str());
      return 3;
    }
    char byte = 0;
    if (::recv(attached->connection.get(), &byte, 1, 0) != 1) {
      std::printf("the library sent nothing\n");
      return 3;
    }
    std::printf("%llu %u %d %d\n", static_cast<unsigned long long>(attached->held_ns),
                attached->attempts, attached->was_mapped ? 1 : 0, attached->tid);
    std::fflush(stdout);
    if (arguments.pause_us > 0) ::usleep(random() % (2 * arguments.pause_us));
  }
  return 0;
}
