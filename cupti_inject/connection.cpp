#include "cupti_inject/connection.h"

#include <cstdlib>

#include "cupti_inject/session.h"

namespace xpu::inject {
namespace {

bool ConnectToRecorder(WakeDescriptor* wake) {
  // As root set-uid programs must not load what the environment says, secure_getenv.
  ConnectionString connection_string;
  if (!ParseConnectionString(secure_getenv(wire::kEnvironmentVariable), &connection_string))
    return false;
  Injection* self = BeginSession(false);
  if (self == nullptr) return false;
  if (!Connect(connection_string, self->instance, kConnectTimeoutNs, &self->mapped, wake)) {
    GiveUpSession();
    return false;
  }
  UseRing(*self, connection_string.session);
  if ((self->settings & wire::kSettingNvtx) != 0) {
    g_process.nvtx.active.store(true, std::memory_order_release);
  }
  return true;
}

}  // namespace

Injection* ConnectOnce(WakeDescriptor* wake) {
  std::atomic<Connection>& connection = g_process.connection;
  Connection before = Connection::kNone;
  if (connection.compare_exchange_strong(before, Connection::kBeingMade)) {
    const bool connected = ConnectToRecorder(wake);
    connection.store(connected ? Connection::kThere : Connection::kRefused);
    return connected ? &g_injection : nullptr;
  }
  // A child that was forked meanwhile waits for nobody.
  const uint64_t deadline_ns = MonotonicNs() + kConnectTimeoutNs;
  while (connection.load() == Connection::kBeingMade && MonotonicNs() < deadline_ns) {
    SleepNs(1'000'000);
  }
  const bool is_there = connection.load() == Connection::kThere && g_process.has_session.load() &&
                        !g_injection.attached;
  return is_there ? &g_injection : nullptr;
}

}  // namespace xpu::inject
