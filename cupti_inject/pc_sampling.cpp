#include "cupti_inject/pc_sampling.h"

#include <cstdio>
#include <cstring>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cupti_inject/cuda_driver.h"
#include "cupti_inject/zeroed_memory.h"

namespace xpu::inject {
namespace {

// Of one call to CUPTI; more come with the next one.
constexpr uint32_t kInstructions = 4096;
// At the end all that CUPTI's threads had not decoded comes at once; what has no room is lost.
constexpr uint32_t kRestInstructions = 16384;
// CUPTI's own buffer of what its threads have decoded; 5500 instructions to the megabyte.
constexpr size_t kScratchBytes = size_t{4} << 20;
// A fetch does not go on for ever where samples come faster than they are fetched.
constexpr uint32_t kMaxRounds = 256;
constexpr uint64_t kSendStepNs = 1'000'000;
// The recorder looks into the ring many times in it. Creating the context takes as long.
constexpr uint64_t kClaimPatienceNs = 1'000'000'000;
// A fetch takes some milliseconds, the first one up to 350.
constexpr uint64_t kContextPatienceNs = 1'000'000'000;
constexpr size_t kNamesBytes = wire::kMaxStallReasons * cupti::kStallReasonNameBytes;
constexpr size_t kFunctionsBytes = PcSampling::kMaxFunctions * 16;

// The lock, where it comes within a time. Our own thread holds it while it is in CUPTI, which may
// then wait for what the program's thread holds that is in a callback: that one must not wait for
// ever.
struct Held {
  Held(Lock& of, uint64_t patience_ns) : lock(of), is_held(of.TryAcquire()) {
    for (uint64_t waited_ns = 0; !is_held && waited_ns < patience_ns; waited_ns += kSendStepNs) {
      SleepNs(kSendStepNs);
      is_held = lock.TryAcquire();
    }
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (is_held) lock.Release();
  }
  Lock& lock;
  bool is_held;
};

size_t BytesOfData(uint32_t instructions) {
  constexpr size_t kEach =
      sizeof(cupti::PcSamples) + wire::kMaxStallReasons * sizeof(cupti::StallCount);
  return sizeof(cupti::SamplingData) + instructions * kEach;
}

cupti::SamplingSetting& Add(cupti::SamplingSettings& all, uint32_t attribute) {
  cupti::SamplingSetting& setting = all.settings[all.count++];
  setting = {};
  setting.attribute = attribute;
  return setting;
}

}  // namespace

bool PcSampling::Open(wire::RingHeader* header, RingProducer* ring,
                      const cupti::Functions* functions, char* reason, size_t reason_size) {
  static_assert(sizeof(Function) <= 16);
  if (functions->enable_sampling == nullptr || functions->disable_sampling == nullptr ||
      functions->configure_sampling == nullptr || functions->count_stall_reasons == nullptr ||
      functions->get_stall_reasons == nullptr || functions->get_samples == nullptr ||
      functions->get_cubin_crc == nullptr) {
    std::snprintf(reason, reason_size, "this CUPTI cannot sample program counters");
    return false;
  }
  memory_ = static_cast<std::byte*>(MapZeroed(kFunctionsBytes + kNamesBytes));
  data_ = MapData(kInstructions);
  if (memory_ == nullptr || data_ == nullptr || !modules_.Open(ring, functions)) {
    Close();
    std::snprintf(reason, reason_size, "no memory for samples of program counters");
    return false;
  }
  functions_ = reinterpret_cast<Function*>(memory_);
  names_ = memory_ + kFunctionsBytes;
  header_ = header;
  ring_ = ring;
  cupti_ = functions;
  period_bits_ = header->sample_period_bits;
  buffer_bytes_ = header->sample_buffer_bytes;
  return true;
}

void PcSampling::Close() {
  for (Context& context : contexts_) {
    if (context.rest != nullptr) munmap(context.rest, BytesOfData(kRestInstructions));
    context.rest = nullptr;
    context.handle = nullptr;
  }
  if (data_ != nullptr) munmap(data_, BytesOfData(kInstructions));
  if (memory_ != nullptr) munmap(memory_, kFunctionsBytes + kNamesBytes);
  data_ = nullptr;
  memory_ = nullptr;
  modules_.Close();
  has_failed_.store(false);
}

cupti::SamplingData* PcSampling::MapData(uint32_t instructions) {
  auto* data = static_cast<cupti::SamplingData*>(MapZeroed(BytesOfData(instructions)));
  if (data == nullptr) return nullptr;
  auto* samples = reinterpret_cast<cupti::PcSamples*>(data + 1);
  auto* reasons = reinterpret_cast<cupti::StallCount*>(samples + instructions);
  for (uint32_t i = 0; i < instructions; ++i) {
    samples[i].size = sizeof(cupti::PcSamples);
    samples[i].reasons = reasons + size_t{i} * wire::kMaxStallReasons;
  }
  data->size = sizeof(cupti::SamplingData);
  data->capacity = instructions;
  data->instructions = samples;
  return data;
}

// ---- contexts -------------------------------------------------------------------------------

void PcSampling::OnContextCreated(void* handle) {
  if (!is_open()) return;
  const Held held(lock_, kContextPatienceNs);
  if (!held.is_held) return SendNotSampled("another context is being sampled", cupti::kSuccess);
  for (Context& context : contexts_) {
    if (context.handle != nullptr) continue;
    context.is_gone = false;
    context.handle = handle;
    if (!Begin(context)) context.handle = nullptr;
    return;
  }
  SendNotSampled("more contexts than are sampled at a time", cupti::kSuccess);
}

// nullptr: no other recorded program samples the context's GPU. Else why it is not known to be
// free.
const char* PcSampling::Claim(const Context& context) {
  constexpr const char* kNoAnswer = "the recorder did not say whether its GPU is free";
  wire::GpuClaimMessage message{};
  int (*get_uuid)(void* uuid, int device) = nullptr;
  const bool is_known = FindInDriver("cuDeviceGetUuid", &get_uuid) &&
                        get_uuid(message.uuid, static_cast<int>(context.device)) == 0;
  message.number = ++claims_;
  if (!is_known) return "the driver does not name its GPU";
  if (!ring_->Send(wire::MessageKind::kGpuClaim, message)) return kNoAnswer;
  for (uint64_t waited_ns = 0; waited_ns < kClaimPatienceNs; waited_ns += kSendStepNs) {
    const uint32_t answer = header_->claim_answer.load(std::memory_order_acquire);
    if (answer / 2 == claims_) {
      return answer % 2 != 0 ? nullptr : "another program is being sampled on its GPU";
    }
    if (ring_->closed()) break;
    SleepNs(kSendStepNs);
  }
  return kNoAnswer;
}

bool PcSampling::Begin(Context& context) {
  if (cupti_->get_context_id != nullptr) cupti_->get_context_id(context.handle, &context.id);
  if (cupti_->get_device_id != nullptr) cupti_->get_device_id(context.handle, &context.device);
  if (const char* why = Claim(context)) {
    SendNotSampled(why, cupti::kSuccess);
    return false;
  }
  cupti::SamplingParameters parameters{sizeof(parameters), nullptr, context.handle};
  // First: what there is to ask for is not known before.
  if (const cupti::Result result = cupti_->enable_sampling(&parameters);
      result != cupti::kSuccess) {
    SendNotSampled("cuptiPCSamplingEnable", result);
    return false;
  }
  if (context.rest == nullptr) context.rest = MapData(kRestInstructions);
  if (context.rest != nullptr && SendReasons(context) && Configure(context)) {
    context.since_ns = MonotonicNs();
    return true;
  }
  cupti_->disable_sampling(&parameters);
  return false;
}

bool PcSampling::SendReasons(const Context& context) {
  size_t count = 0;
  cupti::StallReasonCount how_many{sizeof(how_many), nullptr, context.handle, &count};
  cupti::Result result = cupti_->count_stall_reasons(&how_many);
  if (result != cupti::kSuccess || count > wire::kMaxStallReasons) {
    SendNotSampled("cuptiPCSamplingGetNumStallReasons", result);
    return false;
  }
  auto* texts = reinterpret_cast<char*>(names_);
  char* names[wire::kMaxStallReasons];
  uint32_t indices[wire::kMaxStallReasons];
  for (size_t i = 0; i < count; ++i) names[i] = texts + i * cupti::kStallReasonNameBytes;
  cupti::StallReasonNames reasons{sizeof(reasons), nullptr, context.handle, count, indices, names};
  result = cupti_->get_stall_reasons(&reasons);
  if (result != cupti::kSuccess) {
    SendNotSampled("cuptiPCSamplingGetStallReasons", result);
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    wire::StallReasonMessage message{};
    message.context_id = context.id;
    message.reason = indices[i];
    message.text_bytes = static_cast<uint32_t>(strnlen(names[i], cupti::kStallReasonNameBytes));
    if (!ring_->Send(wire::MessageKind::kStallReason, message, names[i], message.text_bytes)) {
      ring_->Count(wire::kCounterOthersDropped);
    }
  }
  return true;
}

bool PcSampling::Configure(Context& context) {
  cupti::SamplingSetting settings[5];
  cupti::SamplingSettings all{sizeof(all), nullptr, context.handle, 0, settings};
  Add(all, cupti::kSamplingMode).number = cupti::kSamplingModeContinuous;
  Add(all, cupti::kSamplingPeriod).number = period_bits_;
  Add(all, cupti::kSamplingBufferBytes).bytes = buffer_bytes_;
  Add(all, cupti::kSamplingScratchBytes).bytes = kScratchBytes;
  Add(all, cupti::kSamplingDataBuffer).buffer = context.rest;
  const cupti::Result result = cupti_->configure_sampling(&all);
  if (result != cupti::kSuccess) {
    SendNotSampled("cuptiPCSamplingSetConfigurationAttribute", result);
    return false;
  }
  context.buffer_bytes = buffer_bytes_;
  if (cupti_->get_sampling_settings == nullptr) return true;
  all.count = 0;
  cupti::SamplingSetting& buffer = Add(all, cupti::kSamplingBufferBytes);
  if (cupti_->get_sampling_settings(&all) == cupti::kSuccess && buffer.bytes != 0) {
    context.buffer_bytes = buffer.bytes;
  }
  return true;
}

void PcSampling::SendNotSampled(const char* function, cupti::Result result) {
  const char* text = "";
  if (result != cupti::kSuccess && cupti_->get_result_string(result, &text) != cupti::kSuccess) {
    text = "unknown error";
  }
  char sentence[256];
  std::snprintf(sentence, sizeof(sentence), "%s%s%s", function, text[0] == '\0' ? "" : ": ", text);
  wire::DetailMessage message{};
  message.detail = wire::DetailKind::kNotSampled;
  message.number = static_cast<uint32_t>(result);
  message.text_bytes = static_cast<uint32_t>(strnlen(sentence, sizeof(sentence)));
  if (!ring_->Send(wire::MessageKind::kDetail, message, sentence, message.text_bytes)) {
    ring_->Count(wire::kCounterOthersDropped);
  }
}

// CUPTI must not be asked for samples of a context that the driver takes down meanwhile.
void PcSampling::OnContextDestroyed(void* handle) {
  if (!is_open()) return;
  const Held held(lock_, kContextPatienceNs);
  if (!held.is_held) ring_->Count(wire::kCounterCuptiErrors);
  for (Context& context : contexts_) {
    if (context.handle != handle) continue;
    if (held.is_held) {
      End(context);
    } else {
      context.is_gone = true;
    }
  }
}

void PcSampling::Forget(Context& context) {
  context.rest = nullptr;
  context.is_gone = false;
  context.handle = nullptr;
}

void PcSampling::End(Context& context) {
  FetchContext(context, false);
  if (context.handle == nullptr) return;
  // What the threads of CUPTI had not decoded comes with the end, into its own buffer.
  cupti::SamplingParameters parameters{sizeof(parameters), nullptr, context.handle};
  const cupti::Result result = cupti_->disable_sampling(&parameters);
  if (result != cupti::kSuccess) {
    ring_->Count(wire::kCounterCuptiErrors);
    context.rest = nullptr;  // CUPTI may still write there: it stays
  } else {
    const uint64_t now_ns = MonotonicNs();
    // At least one sample at each instruction that had no room.
    ring_->Count(wire::kCounterSamplesDropped, context.rest->left);
    Take(context, *context.rest, now_ns, false);
    SendSums(context, now_ns);
  }
  context.handle = nullptr;
}

void PcSampling::Stop() {
  if (!is_open()) return;
  const Locked locked(lock_);
  for (Context& context : contexts_) {
    if (context.handle != nullptr) End(context);
  }
  modules_.SendOwed();
}

// ---- samples --------------------------------------------------------------------------------

bool PcSampling::Fetch() {
  if (!is_open()) return false;
  const Locked locked(lock_);
  bool has_samples = false;
  for (Context& context : contexts_) {
    if (context.handle != nullptr) has_samples = FetchContext(context, true) || has_samples;
  }
  modules_.SendOwed();
  return has_samples;
}

bool PcSampling::FetchContext(Context& context, bool may_wait) {
  const uint64_t now_ns = MonotonicNs();
  bool has_samples = false;
  for (uint32_t round = 0; round < kMaxRounds && !context.is_gone; ++round) {
    data_->samples = data_->dropped = data_->other_samples = 0;
    data_->count = data_->left = 0;
    cupti::SamplingFetch fetch{sizeof(fetch), nullptr, context.handle, data_};
    const cupti::Result result = cupti_->get_samples(&fetch);
    // What was in the buffer is lost, and sampling goes on.
    const bool is_full = result == cupti::kErrorOutOfMemory;
    buffer_was_full_ = buffer_was_full_ || is_full || data_->buffer_is_full != 0;
    if (is_full) break;
    if (result != cupti::kSuccess && context.is_gone) break;
    if (result != cupti::kSuccess) {
      SendNotSampled("another tool may use the counters of its GPU; cuptiPCSamplingGetData",
                     result);
      has_failed_.store(true, std::memory_order_release);
      Forget(context);  // it would fail for ever
      break;
    }
    Take(context, *data_, now_ns, may_wait);
    has_samples = has_samples || data_->count > 0;
    if (data_->left == 0) break;
  }
  if (context.is_gone) {
    Forget(context);
    SendNotSampled("the context ended while its samples were being fetched", cupti::kSuccess);
  }
  SendSums(context, now_ns);
  return has_samples;
}

void PcSampling::Take(const Context& context, cupti::SamplingData& data, uint64_t now_ns,
                      bool may_wait) {
  samples_ += data.samples;
  dropped_ += data.dropped;
  others_ += data.other_samples;
  const size_t count = data.count < data.capacity ? data.count : data.capacity;
  for (size_t i = 0; i < count; ++i) {
    const cupti::PcSamples& at = data.instructions[i];
    if (TakeInstruction(context, at, now_ns)) modules_.Send(at.cubin_crc, may_wait);
  }
  data.count = 0;
}

// True: it is the first of its module or function.
bool PcSampling::TakeInstruction(const Context& context, const cupti::PcSamples& samples,
                                 uint64_t now_ns) {
  const uint32_t known = function_count_;
  const size_t reasons = samples.reason_count < wire::kMaxStallReasons ? samples.reason_count : 0;
  wire::GpuSamplesMessage message{};
  message.time_ns = now_ns;
  message.cubin_crc = samples.cubin_crc;
  message.offset = samples.offset;
  message.context_id = context.id;
  message.function_index = samples.function_index;
  message.reason_count = static_cast<uint32_t>(reasons);
  static_assert(sizeof(wire::ReasonSamples) == sizeof(cupti::StallCount));
  uint64_t count = 0;
  for (size_t i = 0; i < reasons; ++i) count += samples.reasons[i].samples;
  if (count == 0) return false;
  if (!Knows(samples.cubin_crc, samples.function_index, samples.function_name) ||
      !ring_->Send(wire::MessageKind::kGpuSamples, message, samples.reasons,
                   reasons * sizeof(cupti::StallCount))) {
    ring_->Count(wire::kCounterSamplesDropped, count);
  }
  return function_count_ != known;
}

void PcSampling::SendSums(Context& context, uint64_t now_ns) {
  if (samples_ + dropped_ + others_ == 0 && !buffer_was_full_) return;
  wire::GpuSamplingMessage message{};
  message.time_ns = now_ns;
  message.since_ns = context.since_ns;
  message.context_id = context.id;
  message.device_id = context.device;
  message.period_cycles = uint64_t{1} << period_bits_;
  message.buffer_bytes = context.buffer_bytes;
  message.samples = samples_;
  message.dropped_samples = dropped_;
  message.other_samples = others_;
  message.buffer_was_full = buffer_was_full_ ? 1 : 0;
  if (!ring_->Send(wire::MessageKind::kGpuSampling, message)) {
    ring_->Count(wire::kCounterOthersDropped);
  }
  context.since_ns = now_ns;
  samples_ = dropped_ = others_ = 0;
  buffer_was_full_ = false;
}

// Whether the recorder knows the function's name.
bool PcSampling::Knows(uint64_t crc, uint32_t index, const char* name) {
  const uint64_t hash = (crc ^ index * uint64_t{0x9e3779b97f4a7c15}) * 0xff51afd7ed558ccd;
  for (uint64_t at = hash >> 40;; ++at) {
    Function& function = functions_[at % kMaxFunctions];
    if (function.is_used && (function.crc != crc || function.index != index)) continue;
    if (function.is_used) return true;
    if (function_count_ >= kMaxFunctions / 4 * 3 || name == nullptr) return false;
    wire::GpuFunctionMessage message{};
    message.cubin_crc = crc;
    message.function_index = index;
    message.text_bytes = static_cast<uint32_t>(strnlen(name, wire::kMaxNameBytes));
    if (!ring_->Send(wire::MessageKind::kGpuFunction, message, name, message.text_bytes)) {
      return false;
    }
    function = {crc, index, true};
    ++function_count_;
    return true;
  }
}

// ---- modules --------------------------------------------------------------------------------

void PcSampling::OnModuleLoaded(const cupti::ModuleData& module) {
  if (is_open()) modules_.Add(module);
}

// What is sampled after it, or while another thread fetches, finds the code gone: counted then.
void PcSampling::OnModuleUnloaded(const cupti::ModuleData& module) {
  if (!is_open()) return;
  {
    const Held held(lock_, 0);
    for (Context& context : contexts_) {
      if (held.is_held && context.handle != nullptr) FetchContext(context, false);
    }
  }
  modules_.Remove(module);
}

}  // namespace xpu::inject
