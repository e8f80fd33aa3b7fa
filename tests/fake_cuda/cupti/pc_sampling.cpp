#include "pc_sampling.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include <unistd.h>

#include "../settings.h"
#include "cupti_inject/cupti_pc_sampling.h"

namespace xpu::fake_cupti {
namespace {

using fake_cuda::EnvNumber;
using fake_cuda::EnvText;

constexpr int kSamplingSuccess = 0;
constexpr int kSamplingInvalidOperation = 3;
constexpr int kSamplingNotInitialized = 7;
constexpr int kSamplingUnknown = 999;

// As CUPTI 13.0 names some of them.
constexpr const char* kReasons[] = {
    "smsp__pcsamp_warps_issue_stalled_selected",
    "smsp__pcsamp_warps_issue_stalled_wait",
    "smsp__pcsamp_warps_issue_stalled_wait_not_issued",
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
    "smsp__pcsamp_warps_issue_stalled_barrier",
};
constexpr uint32_t kReasonCount = sizeof(kReasons) / sizeof(kReasons[0]);
// CUPTI counts them with gaps.
constexpr uint32_t kFirstReason = 7;

// XPU_FAKE_SAMPLES: what each launch of a kernel adds.
struct PlannedSamples {
  uint64_t offset;
  uint32_t reason;
  uint32_t count;
};

std::vector<PlannedSamples> ReadPlan() {
  const std::string text(EnvText("XPU_FAKE_SAMPLES", "16:1:3,32:4:1"));
  std::vector<PlannedSamples> plan;
  const char* at = text.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    PlannedSamples samples{};
    samples.offset = std::strtoull(at, &end, 0);
    if (*end == ':') samples.reason = static_cast<uint32_t>(std::strtoul(end + 1, &end, 0));
    if (*end == ':') samples.count = static_cast<uint32_t>(std::strtoul(end + 1, &end, 0));
    if (samples.reason < kReasonCount) plan.push_back(samples);
    at = *end == ',' ? end + 1 : end;
    if (*end != ',' && *end != '\0') break;
  }
  return plan;
}

struct SampledContext {
  bool is_on = false;
  bool is_configured = false;
  std::map<uint32_t, uint64_t> numbers;  // of the settings
  cupti::SamplingData* rest = nullptr;
  // By function and offset: counts by reason.
  std::map<std::pair<std::string, uint64_t>, std::map<uint32_t, uint32_t>> samples;
};

struct Sampling {
  std::mutex mutex;
  std::map<uint32_t, SampledContext> contexts;  // by id
  const std::vector<PlannedSamples> plan = ReadPlan();
  bool has_failed = false;
};

Sampling& TheSampling() {
  static auto* const sampling = new Sampling;
  return *sampling;
}

SampledContext* Find(void* context) {
  const uint32_t id = xpu_fake_driver()->context_uid(static_cast<CUcontext>(context));
  const auto found = TheSampling().contexts.find(id);
  return found == TheSampling().contexts.end() || !found->second.is_on ? nullptr : &found->second;
}

uint64_t CodeChecksum() { return fake_cuda::NameHash(ModuleCode()); }

// One text for each name, for the life of the process.
char* NameOf(const std::string& function) {
  static auto* const names = new std::set<std::string>;
  return const_cast<char*>(names->insert(function).first->c_str());
}

// The hardware's own share comes with the first data.
void MoveSamples(SampledContext& context, cupti::SamplingData& data) {
  data.count = 0;
  data.samples = data.dropped = data.other_samples = 0;
  data.buffer_is_full = 0;
  auto at = context.samples.begin();
  for (; at != context.samples.end() && data.count < data.capacity; ++data.count) {
    cupti::PcSamples& samples = data.instructions[data.count];
    samples.cubin_crc = CodeChecksum();
    samples.offset = at->first.second;
    samples.function_index = static_cast<uint32_t>(fake_cuda::NameHash(at->first.first));
    samples.function_name = NameOf(at->first.first);
    samples.reason_count = 0;
    samples.correlation_id = 0;
    for (const auto& [reason, count] : at->second) {
      samples.reasons[samples.reason_count++] = {kFirstReason + reason, count};
      data.samples += count;
    }
    at = context.samples.erase(at);
  }
  data.left = context.samples.size();
  if (data.count == 0) return;
  data.dropped = EnvNumber("XPU_FAKE_SAMPLES_DROPPED", 0);
  data.samples += data.dropped;
}

}  // namespace

const std::string& ModuleCode() {
  static const auto* const code = [] {
    std::ifstream file(std::string(EnvText("XPU_FAKE_CUBIN", "")), std::ios::binary);
    return new std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return *code;
}

bool SamplesHaveFailed() {
  Sampling& sampling = TheSampling();
  const std::lock_guard lock(sampling.mutex);
  return sampling.has_failed;
}

void EndSampling(CUcontext context) {
  Sampling& sampling = TheSampling();
  const std::lock_guard lock(sampling.mutex);
  sampling.contexts.erase(xpu_fake_driver()->context_uid(context));
}

void SampleKernel(const fake_cuda::Activity& kernel) {
  Sampling& sampling = TheSampling();
  const std::lock_guard lock(sampling.mutex);
  const auto found = sampling.contexts.find(kernel.context_id);
  if (found == sampling.contexts.end() || !found->second.is_configured) return;
  for (const PlannedSamples& planned : sampling.plan) {
    found->second.samples[{kernel.name, planned.offset}][planned.reason] += planned.count;
  }
}

}  // namespace xpu::fake_cupti

using namespace xpu::fake_cupti;
using namespace xpu::cupti;

extern "C" {

int cuptiGetDeviceId(void* context, uint32_t* id) {
  const auto& driver = *xpu_fake_driver();
  for (uint32_t device = 0; device < driver.device_count(); ++device) {
    if (driver.primary_context(static_cast<int>(device)) == context) *id = device;
  }
  return kSamplingSuccess;
}

int cuptiPCSamplingEnable(SamplingParameters* parameters) {
  const int refused = static_cast<int>(EnvNumber("XPU_FAKE_SAMPLING_RESULT", 0));
  if (refused != 0) return refused;
  const std::lock_guard lock(TheSampling().mutex);
  const uint32_t id = xpu_fake_driver()->context_uid(static_cast<CUcontext>(parameters->context));
  SampledContext& context = TheSampling().contexts[id];
  if (context.is_on) return kSamplingInvalidOperation;
  context = {};
  context.is_on = true;
  return kSamplingSuccess;
}

int cuptiPCSamplingDisable(SamplingParameters* parameters) {
  const std::lock_guard lock(TheSampling().mutex);
  SampledContext* context = Find(parameters->context);
  if (context == nullptr) return kSamplingNotInitialized;
  if (context->rest != nullptr) MoveSamples(*context, *context->rest);
  context->is_on = context->is_configured = false;
  return kSamplingSuccess;
}

// Everything else is refused until sampling is on, as CUPTI 13.0 does.
int cuptiPCSamplingSetConfigurationAttribute(SamplingSettings* settings) {
  const std::lock_guard lock(TheSampling().mutex);
  SampledContext* context = Find(settings->context);
  if (context == nullptr) return kSamplingNotInitialized;
  for (size_t i = 0; i < settings->count; ++i) {
    SamplingSetting& setting = settings->settings[i];
    setting.status = kSamplingSuccess;
    if (setting.attribute == kSamplingPeriod && (setting.number < 5 || setting.number > 31)) {
      setting.status = kSamplingInvalidOperation;
      return kSamplingInvalidOperation;
    }
    if (setting.attribute == kSamplingDataBuffer) {
      context->rest = static_cast<SamplingData*>(setting.buffer);
    } else {
      context->numbers[setting.attribute] = setting.words[0];
    }
  }
  context->is_configured = true;
  return kSamplingSuccess;
}

int cuptiPCSamplingGetConfigurationAttribute(SamplingSettings* settings) {
  const std::lock_guard lock(TheSampling().mutex);
  SampledContext* context = Find(settings->context);
  if (context == nullptr) return kSamplingNotInitialized;
  for (size_t i = 0; i < settings->count; ++i) {
    settings->settings[i].words[0] = context->numbers[settings->settings[i].attribute];
    settings->settings[i].status = kSamplingSuccess;
  }
  return kSamplingSuccess;
}

int cuptiPCSamplingGetNumStallReasons(StallReasonCount* parameters) {
  const std::lock_guard lock(TheSampling().mutex);
  if (Find(parameters->context) == nullptr) return kSamplingNotInitialized;
  *parameters->count = kReasonCount;
  return kSamplingSuccess;
}

int cuptiPCSamplingGetStallReasons(StallReasonNames* parameters) {
  const std::lock_guard lock(TheSampling().mutex);
  if (Find(parameters->context) == nullptr) return kSamplingNotInitialized;
  for (uint32_t i = 0; i < kReasonCount && i < parameters->count; ++i) {
    parameters->indices[i] = kFirstReason + i;
    std::strcpy(parameters->names[i], kReasons[i]);
  }
  return kSamplingSuccess;
}

int cuptiPCSamplingGetData(SamplingFetch* fetch) {
  usleep(static_cast<useconds_t>(EnvNumber("XPU_FAKE_SAMPLES_FETCH_MS", 0) * 1000));
  const std::lock_guard lock(TheSampling().mutex);
  SampledContext* context = Find(fetch->context);
  if (context == nullptr || !context->is_configured) return kSamplingNotInitialized;
  if (EnvNumber("XPU_FAKE_SAMPLES_FAIL", 0) != 0) {
    TheSampling().has_failed = true;
    return kSamplingUnknown;
  }
  MoveSamples(*context, *fetch->data);
  return kSamplingSuccess;
}

int cuptiGetCubinCrc(CubinCrc* parameters) {
  parameters->crc = xpu::fake_cuda::NameHash(
      {static_cast<const char*>(parameters->cubin), parameters->cubin_bytes});
  return kSamplingSuccess;
}

}  // extern "C"
