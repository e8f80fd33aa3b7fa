#include "cupti_inject/connection.h"

#include <cstdlib>

#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

namespace xpu::inject {
namespace {

uint64_t RandomNumber() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number) || number == 0) {
    // Before the machine's entropy is there: unique enough among the processes of one recording.
    number = MonotonicNs() << 20 ^ static_cast<uint64_t>(getpid()) ^ 0x9e3779b97f4a7c15;
  }
  return number;
}

// The child shares our ring but has neither our thread nor CUDA: it must not write.
void OnForkedChild() {
  g_injection.active.store(false, std::memory_order_relaxed);
  g_injection.nvtx.active.store(false, std::memory_order_relaxed);
}

bool ConnectToRecorder(Injection& self, WakeDescriptor* wake) {
  // As root set-uid programs must not load what the environment says, secure_getenv.
  ConnectionString connection_string;
  if (!ParseConnectionString(secure_getenv(wire::kEnvironmentVariable), &connection_string))
    return false;
  self.instance = RandomNumber();
  self.session = connection_string.session;
  if (!Connect(connection_string, self.instance, kConnectTimeoutNs, &self.mapped, wake))
    return false;
  self.ring.Attach(self.mapped.header, self.mapped.capacity_bytes);
  self.mapped.header->attached.store(1, std::memory_order_release);
  self.settings = self.mapped.header->settings;
  self.gate.Open(self.mapped.header, &self.ring);
  pthread_atfork(nullptr, nullptr, &OnForkedChild);
  if ((self.settings & wire::kSettingNvtx) != 0) {
    self.nvtx.active.store(true, std::memory_order_release);
  }
  return true;
}

}  // namespace

bool ConnectOnce(Injection& self, WakeDescriptor* wake) {
  std::atomic<Connection>& connection = self.connection;
  Connection before = Connection::kNone;
  if (connection.compare_exchange_strong(before, Connection::kBeingMade)) {
    const bool connected = ConnectToRecorder(self, wake);
    connection.store(connected ? Connection::kThere : Connection::kRefused);
    return connected;
  }
  // A child that was forked meanwhile waits for nobody.
  const uint64_t deadline_ns = MonotonicNs() + kConnectTimeoutNs;
  while (connection.load() == Connection::kBeingMade && MonotonicNs() < deadline_ns) {
    SleepNs(1'000'000);
  }
  return connection.load() == Connection::kThere;
}

}  // namespace xpu::inject
