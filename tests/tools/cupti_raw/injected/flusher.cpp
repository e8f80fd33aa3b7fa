#include "flusher.h"

#include <chrono>
#include <string>

#include <dlfcn.h>
#include <pthread.h>

#include "state.h"

namespace xpu::cupti_raw {
namespace {

void WriteClockPair() {
  if (g_state->cupti.cuptiGetTimestamp == nullptr) return;
  ClockPairPayload pair{};
  pair.monotonic_before_ns = Now(CLOCK_MONOTONIC);
  pair.result = g_state->cupti.cuptiGetTimestamp(&pair.cupti_timestamp);
  pair.monotonic_after_ns = Now(CLOCK_MONOTONIC);
  pair.realtime_ns = Now(CLOCK_REALTIME);
  Payload payload;
  payload.Add(pair);
  g_state->writer.Write(EntryType::kClockPair, std::move(payload), pair.monotonic_before_ns, 100);
}

void FlushActivities(uint32_t flag) {
  const uint64_t begin = Now(CLOCK_MONOTONIC);
  const CUptiResult result = g_state->cupti.cuptiActivityFlushAll(flag);
  Payload payload;
  payload.Add(FlushPayload{Now(CLOCK_MONOTONIC), flag, result});
  g_state->writer.Write(EntryType::kFlush, std::move(payload), begin, 100);
}

void WriteDriverVersion() {
  // The driver that loaded us is mapped; asking before it is initialized could take its init lock.
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return;
  using GetVersion = int (*)(int*);
  const auto get_version = reinterpret_cast<GetVersion>(dlsym(driver, "cuDriverGetVersion"));
  int version = 0;
  const int result = get_version == nullptr ? kNotFound : get_version(&version);
  WriteInfo("driver_version", result == 0 ? std::to_string(version) : "error");
}

}  // namespace

void RunFlusher() {
  t_own_call = true;
  pthread_setname_np(pthread_self(), "cupti_raw");
  WriteThreadOnce();
  std::unique_lock lock(g_state->thread_mutex);
  g_state->wake.wait(lock, [] { return g_state->context_exists || g_state->stopping; });
  if (g_state->stopping) return;
  lock.unlock();
  WriteDriverVersion();
  WriteClockPair();
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto next_pair = start + std::chrono::seconds(1);
  bool forced = g_state->force_at_ms == 0;
  const auto period = std::chrono::milliseconds(g_state->flush_ms == 0 ? 100 : g_state->flush_ms);
  auto next_tick = start + period;
  lock.lock();
  while (!g_state->wake.wait_until(lock, next_tick, [] { return g_state->stopping; })) {
    lock.unlock();
    if (g_state->flush_ms != 0) FlushActivities(0);
    if (!forced && Clock::now() - start >= std::chrono::milliseconds(g_state->force_at_ms)) {
      forced = true;
      FlushActivities(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    }
    if (Clock::now() >= next_pair) {
      WriteClockPair();
      next_pair += std::chrono::seconds(1);
    }
    g_state->writer.Flush();
    next_tick += period;
    lock.lock();
  }
}

void Finish() {
  if (g_state->silent.load()) return;
  t_own_call = true;
  {
    const std::lock_guard lock(g_state->thread_mutex);
    g_state->stopping = true;
    g_state->wake.notify_all();
  }
  if (g_state->flusher.joinable()) g_state->flusher.join();
  if (g_state->context_seen.load()) WriteClockPair();
  FlushActivities(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  for (const CUpti_ActivityKind kind : g_state->kinds) {
    Setup("cuptiActivityDisable", kind, g_state->cupti.cuptiActivityDisable, kind);
  }
  Setup("cuptiUnsubscribe", 0, g_state->cupti.cuptiUnsubscribe, g_state->subscriber);
  Payload payload;
  payload.Add(SummaryPayload{g_state->callbacks, g_state->callbacks_left_out,
                             g_state->buffers_requested, g_state->buffers_completed,
                             g_state->buffers_left_out});
  g_state->writer.Write(EntryType::kSummary, std::move(payload), Now(CLOCK_MONOTONIC), 100);
  g_state->silent = true;
  g_state->writer.Flush();
}

}  // namespace xpu::cupti_raw
