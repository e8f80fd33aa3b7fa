#include "device.h"

#include <algorithm>
#include <ctime>
#include <string>
#include <string_view>

#include <unistd.h>

#include "../settings.h"
#include "graph.h"

namespace xpu::fake_cuda {

namespace {

Device* MakeDevice() {
  auto* made = new Device;
  const auto count = static_cast<uint32_t>(EnvNumber("XPU_FAKE_DEVICES", 1));
  for (uint32_t i = 0; i < count; ++i) {
    CUctx_st& context = made->contexts.emplace_back();
    context.ordinal = i;
    context.null_stream.id = 7;  // of the first one; the others get theirs when they are created
    context.null_stream.blocking = true;
    context.null_stream.context = &context;
  }
  return made;
}

}  // namespace

Device& TheDevice() {
  // Never destroyed: programs and injected libraries call CUDA from their destructors.
  static Device* const device = MakeDevice();
  return *device;
}

CUcontext CurrentContext() {
  const CUcontext current = TheDriver().current_context();
  return current != nullptr || TheDevice().contexts.empty() ? current
                                                            : &TheDevice().contexts.front();
}

uint32_t ContextId(CUcontext context) { return context->ordinal + 1; }

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

namespace {

// One launch of a kernel that goes wrong: a part of its name, then numbers, after colons.
class Mishap {
 public:
  Mishap(const char* variable, bool has_code) {
    const std::string text(EnvText(variable, ""));
    const char* at = text.c_str() + std::min(text.find(':'), text.size());
    name_ = text.substr(0, text.find(':'));
    const auto next = [&at] {
      char* end = nullptr;
      const uint64_t number = *at == ':' ? std::strtoull(at + 1, &end, 10) : 0;
      if (end != nullptr) at = end;
      return number;
    };
    if (has_code) code_ = static_cast<CUresult>(next());
    left_ = std::max<uint64_t>(next(), 1);
  }
  bool is_planned() const { return !name_.empty(); }
  CUresult code() const { return code_; }
  // Counts launches.
  bool Hits(const Activity& activity) {
    const bool fits = is_planned() && activity.kind == ActivityKind::kKernel &&
                      std::string_view(activity.name).find(name_) != std::string_view::npos;
    return fits && left_ > 0 && --left_ == 0;
  }

 private:
  std::string name_;
  CUresult code_ = CUDA_SUCCESS;
  uint64_t left_ = 0;
};

Mishap& TheFault() {
  static auto* const fault = new Mishap("XPU_FAKE_FAULT", true);
  return *fault;
}

}  // namespace

CUresult FaultOf(const CUctx_st& context) {
  return NowNs() < context.fault_ns.load() ? CUDA_SUCCESS : context.fault.load();
}

void WaitUntil(const CUctx_st& context, uint64_t monotonic_ns) {
  constexpr uint64_t kLookNs = 10'000'000;
  if (!TheFault().is_planned()) return SleepUntil(monotonic_ns);
  // Another thread can launch what faults.
  for (uint64_t now_ns = NowNs(); now_ns < std::min(monotonic_ns, context.fault_ns.load());
       now_ns = NowNs()) {
    SleepUntil(std::min({monotonic_ns, context.fault_ns.load(), now_ns + kLookNs}));
  }
}

void Schedule(CUcontext context, uint64_t start_ns, uint64_t duration_ns, Activity* activity) {
  static auto* const endless = new Mishap("XPU_FAKE_ENDLESS", false);
  activity->start_ns = start_ns;
  activity->end_ns = start_ns + duration_ns;
  if (endless->Hits(*activity)) activity->end_ns = std::max(activity->end_ns, kNever);
  if (TheFault().Hits(*activity) && activity->end_ns < context->fault_ns.load()) {
    context->fault.store(TheFault().code());
    context->fault_ns.store(activity->end_ns);
  }
}

namespace {

// Lives on when its thread has ended: its work may not have.
CUstream PerThreadStream(CUcontext context) {
  static thread_local std::map<CUcontext, CUstream> streams;
  CUstream& stream = streams[context];
  if (stream != nullptr) return stream;
  stream = new CUstream_st;
  stream->context = context;
  stream->blocking = true;
  Device& device = TheDevice();
  const std::lock_guard lock(device.mutex);
  stream->id = device.next_stream_id++;
  context->streams.insert(stream);
  return stream;
}

}  // namespace

CUstream Resolve(CUstream stream) {
  if (stream == nullptr || stream == CU_STREAM_LEGACY) return &CurrentContext()->null_stream;
  return stream == CU_STREAM_PER_THREAD ? PerThreadStream(CurrentContext()) : stream;
}

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

// When the stream may start something; the legacy null stream and blocking streams of a context
// wait for each other.
uint64_t BusyUntil(CUstream stream) {
  uint64_t tail = stream->tail_ns;
  CUstream_st& null_stream = stream->context->null_stream;
  if (stream == &null_stream) {
    for (const CUstream other : stream->context->streams) {
      if (other->blocking) tail = std::max(tail, other->tail_ns);
    }
  } else if (stream->blocking) {
    tail = std::max(tail, null_stream.tail_ns);
  }
  return tail;
}

uint64_t EarliestStart(CUstream stream) {
  const uint64_t tail = BusyUntil(stream);
  return std::max(NowNs() + kLaunchLatencyNs, tail == 0 ? 0 : tail + kGapNs);
}

}  // namespace

uint64_t Enqueue(CUstream stream, Work work) {
  stream = Resolve(stream);
  if (stream->capture != nullptr) {
    CaptureWork(stream, work);
    return 0;
  }
  Device& device = TheDevice();
  Activity& activity = work.activity;
  {
    const std::lock_guard lock(device.mutex);
    Schedule(stream->context, EarliestStart(stream), work.duration_ns, &activity);
    stream->tail_ns = activity.end_ns;
    activity.grid_id = device.next_grid_id;
    device.next_grid_id += GridIds(activity);
  }
  activity.device_id = stream->context->ordinal;
  activity.context_id = ContextId(stream->context);
  activity.stream_id = stream->id;
  UseChannel(*stream, &activity);
  activity.correlation_id = TheDriver().current_correlation_id();
  if (activity.kind != ActivityKind::kNone) Emit(activity);
  return activity.end_ns;
}

uint64_t TailOf(CUstream stream) {
  const std::lock_guard lock(TheDevice().mutex);
  stream = stream == nullptr ? &CurrentContext()->null_stream : stream;
  return stream == &stream->context->null_stream ? BusyUntil(stream) : stream->tail_ns;
}

uint64_t TailOfAll(CUcontext context) {
  const std::lock_guard lock(TheDevice().mutex);
  uint64_t tail = context->null_stream.tail_ns;
  for (const CUstream stream : context->streams) tail = std::max(tail, stream->tail_ns);
  return tail;
}

void WaitFor(CUstream stream) {
  WaitUntil(*stream->context, TailOf(stream));
  while (stream->host_calls.load() != 0) usleep(20);
}

void WaitForAll(CUcontext context) {
  std::vector<CUstream> streams = {&context->null_stream};
  {
    const std::lock_guard lock(TheDevice().mutex);
    streams.insert(streams.end(), context->streams.begin(), context->streams.end());
  }
  for (const CUstream stream : streams) WaitFor(stream);
}

}  // namespace xpu::fake_cuda
