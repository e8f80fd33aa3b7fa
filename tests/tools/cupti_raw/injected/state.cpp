#include "state.h"

#include <pthread.h>

namespace xpu::cupti_raw {

void WriteInfo(const char* key, std::string_view value) {
  Payload payload;
  payload.AddString(key);
  payload.AddString(value);
  g_state->writer.Write(EntryType::kInfo, std::move(payload), Now(CLOCK_MONOTONIC), 100);
}

void WriteThreadOnce() {
  static thread_local bool written = false;
  if (written) return;
  written = true;
  char comm[16] = {};
  pthread_getname_np(pthread_self(), comm, sizeof(comm));
  Payload payload;
  payload.Add(ThreadPayload{static_cast<uint64_t>(pthread_self())});
  payload.AddString(comm);
  g_state->writer.Write(EntryType::kThread, std::move(payload), Now(CLOCK_MONOTONIC), 100);
}

}  // namespace xpu::cupti_raw
