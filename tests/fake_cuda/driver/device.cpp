#include "device.h"

#include <algorithm>
#include <ctime>

#include "../settings.h"

namespace xpu::fake_cuda {

Device& TheDevice() {
  // Never destroyed: programs and injected libraries call CUDA from their destructors.
  static Device* const device = [] {
    auto* made = new Device;
    made->null_stream.id = 7;
    made->null_stream.blocking = true;
    made->launch_latency_ns = EnvNumber("XPU_FAKE_LAUNCH_LATENCY_NS", 3000);
    made->gap_ns = EnvNumber("XPU_FAKE_GAP_NS", 500);
    return made;
  }();
  return *device;
}

uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void SleepUntil(uint64_t monotonic_ns) {
  const timespec until{static_cast<time_t>(monotonic_ns / 1'000'000'000),
                       static_cast<long>(monotonic_ns % 1'000'000'000)};
  while (NowNs() < monotonic_ns) {
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
}

CUstream Resolve(CUstream stream) { return stream == nullptr ? &TheDevice().null_stream : stream; }

void UseChannel(const CUstream_st& stream, Activity* activity) {
  constexpr uint32_t kCompute = 1;
  constexpr uint32_t kFirstOfTheProgram = 13;
  if (activity->channel_type != kCompute) return;
  activity->channel_id =
      stream.id < kFirstOfTheProgram ? 0 : 1 + (stream.id - kFirstOfTheProgram) % 8;
}

int64_t GridIds(const Activity& activity) {
  constexpr uint64_t kSetByKernel = 1024;
  switch (activity.kind) {
    case ActivityKind::kKernel:
      return 1;
    case ActivityKind::kMemset:
      return activity.bytes >= kSetByKernel ? 1 : 0;
    default:
      return 0;
  }
}

namespace {

// When the stream may start something; the legacy null stream and blocking streams wait for each
// other.
uint64_t EarliestStart(Device& device, CUstream stream) {
  uint64_t tail = stream->tail_ns;
  if (stream == &device.null_stream) {
    for (const CUstream other : device.streams) {
      if (other->blocking) tail = std::max(tail, other->tail_ns);
    }
  } else if (stream->blocking) {
    tail = std::max(tail, device.null_stream.tail_ns);
  }
  return std::max(NowNs() + device.launch_latency_ns, tail == 0 ? 0 : tail + device.gap_ns);
}

}  // namespace

uint64_t Enqueue(CUstream stream, Activity activity, uint64_t duration_ns, CUfunction function) {
  stream = Resolve(stream);
  if (stream->capture != nullptr) {
    AddNode(stream->capture, activity, duration_ns, function);
    return 0;
  }
  Device& device = TheDevice();
  {
    const std::lock_guard lock(device.mutex);
    activity.start_ns = EarliestStart(device, stream);
    activity.end_ns = activity.start_ns + duration_ns;
    stream->tail_ns = activity.end_ns;
    activity.grid_id = device.next_grid_id;
    device.next_grid_id += GridIds(activity);
  }
  activity.context_id = 1;
  activity.stream_id = stream->id;
  UseChannel(*stream, &activity);
  activity.correlation_id = TheDriver().current_correlation_id();
  Emit(activity);
  return activity.end_ns;
}

uint64_t TailOf(CUstream stream) {
  Device& device = TheDevice();
  const std::lock_guard lock(device.mutex);
  stream = Resolve(stream);
  uint64_t tail = stream->tail_ns;
  if (stream == &device.null_stream) {
    for (const CUstream other : device.streams) {
      if (other->blocking) tail = std::max(tail, other->tail_ns);
    }
  }
  return tail;
}

uint64_t TailOfAll() {
  Device& device = TheDevice();
  const std::lock_guard lock(device.mutex);
  uint64_t tail = device.null_stream.tail_ns;
  for (const CUstream stream : device.streams) tail = std::max(tail, stream->tail_ns);
  return tail;
}

bool IsPinned(const void* pointer) {
  Device& device = TheDevice();
  const std::lock_guard lock(device.mutex);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto after = device.pinned_memory.upper_bound(address);
  if (after == device.pinned_memory.begin()) return false;
  --after;
  return address < after->first + after->second;
}

}  // namespace xpu::fake_cuda
