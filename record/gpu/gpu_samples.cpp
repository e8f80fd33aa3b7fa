#include "record/gpu/gpu_samples.h"

#include <cstring>
#include <optional>

#include "cupti_inject/cupti_abi.h"
#include "format/base/text.h"
#include "format/slice_parts.h"
#include "record/base/clock.h"
#include "record/gpu/wire_message.h"
#include "symbolize/elf/cubin.h"

namespace xpu {
namespace {

using Message = std::span<const std::byte>;

// What a program can define, beside the memory that it may take.
constexpr size_t kMostReasons = 4096;
constexpr size_t kMostModules = 65536;
// Each new function takes a look through its whole module.
constexpr uint64_t kSlicePeriodNs = 1'000'000'000;
// Of one process. PyTorch programs have some hundred kilobytes.
constexpr uint64_t kMostSliceBytes = uint64_t{64} << 20;

}  // namespace

std::string_view HintOfSampling(uint64_t result) {
  switch (result) {
    case cupti::kErrorInsufficientPrivileges:
      return "; the driver lets only root profile (NVreg_RestrictProfilingToAdminUsers): run the "
             "program as root or with CAP_SYS_ADMIN, or change that";
    case cupti::kErrorNotSupported:
      return "; this GPU, or a part of one (MIG, vGPU), does not allow it";
    default:
      return "";
  }
}

GpuSamples::~GpuSamples() { memory_.Give(memory_bytes_); }

bool GpuSamples::TakeMemory(uint64_t bytes) {
  if (!memory_.Take(bytes)) return false;
  memory_bytes_ += bytes;
  return true;
}

void GpuSamples::AddLoss(EventSink& sink, LossKind kind, std::string detail) const {
  sink.losses().Add(kind, 1, pid_, instance_, std::move(detail));
}

bool GpuSamples::TakeSampling(Message message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::GpuSamplingMessage>(message);
  if (!fixed) return false;
  const wire::GpuSamplingMessage& raw = *fixed->operator->();
  GpuSampling event;
  event.instance = instance_;
  event.time_ns = raw.time_ns;
  event.since_ns = raw.since_ns;
  event.context_id = raw.context_id;
  event.device_id = raw.device_id;
  event.period = raw.period_cycles;
  event.buffer_bytes = raw.buffer_bytes;
  event.samples = raw.samples;
  event.dropped_samples = raw.dropped_samples;
  event.other_samples = raw.other_samples;
  sink.Write(event);
  sink.losses().Add(LossKind::kGpuSamplesDropped, raw.dropped_samples, pid_, instance_,
                    "by the GPU");
  if (raw.buffer_was_full != 0) {
    sink.losses().Add(LossKind::kGpuSamplesDropped, 1, pid_, instance_,
                      "all for a while: the GPU's buffer was full");
  }
  return true;
}

bool GpuSamples::TakeSamples(Message message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::GpuSamplesMessage>(message);
  if (!fixed || (*fixed)->reason_count > wire::kMaxStallReasons) return false;
  const wire::GpuSamplesMessage& raw = *fixed->operator->();
  const size_t bytes = raw.reason_count * sizeof(wire::ReasonSamples);
  const auto counts = BytesAfter(message, sizeof(raw), bytes);
  const auto function = functions_.find({raw.cubin_crc, raw.function_index});
  if (!counts || function == functions_.end()) return false;
  GpuSample event;
  event.instance = instance_;
  event.time_ns = raw.time_ns;
  event.context_id = raw.context_id;
  event.cubin_crc = raw.cubin_crc;
  event.function_index = raw.function_index;
  event.offset = raw.offset;
  for (size_t at = 0; at < bytes; at += sizeof(wire::ReasonSamples)) {
    wire::ReasonSamples count;
    std::memcpy(&count, counts->data() + at, sizeof(count));
    if (count.samples == 0) continue;
    const auto reason = reasons_.find({raw.context_id, count.reason});
    if (reason == reasons_.end()) return false;
    event.samples = count.samples;
    event.function = sink.Intern(function->second);
    event.stall_reason = sink.Intern(reason->second);
    sink.Write(event);
  }
  return true;
}

bool GpuSamples::TakeFunction(Message message) {
  const auto fixed = ReadFixed<wire::GpuFunctionMessage>(message);
  if (!fixed) return false;
  const auto text = BytesAfter(message, sizeof(wire::GpuFunctionMessage), (*fixed)->text_bytes);
  if (!text) return false;
  KeptText name{.text = std::string(TextOf(*text))};
  const uint64_t crc = (*fixed)->cubin_crc;
  // Its samples then refer to nothing, and are counted.
  if (functions_.contains({crc, (*fixed)->function_index})) return false;
  if (!TakeMemory(2 * name.Cost() + sizeof(Cubin))) return true;
  if (cubins_.size() < kMostModules || cubins_.contains(crc)) {
    cubins_[crc].pending.insert(name.text);
  }
  functions_.emplace(std::pair(crc, (*fixed)->function_index), std::move(name));
  return true;
}

bool GpuSamples::TakeReason(Message message) {
  const auto fixed = ReadFixed<wire::StallReasonMessage>(message);
  if (!fixed || reasons_.size() >= kMostReasons) return false;
  const auto text = BytesAfter(message, sizeof(wire::StallReasonMessage), (*fixed)->text_bytes);
  if (!text) return false;
  KeptText name{.text = std::string(TextOf(*text))};
  if (!TakeMemory(name.Cost())) return true;
  reasons_.insert_or_assign(std::pair((*fixed)->context_id, (*fixed)->reason), std::move(name));
  return true;
}

bool GpuSamples::TakeCubin(Message message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::CubinMessage>(message);
  if (!fixed || (*fixed)->cubin_bytes > wire::kMaxCubinBytes) return false;
  const auto piece = BytesAfter(message, sizeof(wire::CubinMessage), (*fixed)->piece_bytes);
  const auto found = cubins_.find((*fixed)->cubin_crc);
  // The first function of a module is defined before its code comes.
  if (!piece || found == cubins_.end()) return false;
  Cubin& cubin = found->second;
  if (cubin.is_refused) return true;
  if (cubin.size_bytes == 0) {
    cubin.size_bytes = (*fixed)->cubin_bytes;
    cubin.is_refused = !TakeMemory(cubin.size_bytes);
    if (cubin.is_refused) {
      AddLoss(sink, LossKind::kGpuCodeMissing, "no memory is left for them");
      return true;
    }
  }
  if ((*fixed)->offset != cubin.bytes.size() || (*fixed)->cubin_bytes != cubin.size_bytes ||
      piece->size() > cubin.size_bytes - cubin.bytes.size()) {
    return false;
  }
  cubin.bytes += TextOf(*piece);
  return true;
}

void GpuSamples::Update(EventSink& sink, bool is_last) {
  const uint64_t now_ns = MonotonicNs();
  if (cubins_.empty() || (!is_last && now_ns < next_slices_ns_)) return;
  next_slices_ns_ = now_ns + kSlicePeriodNs;
  for (auto& [crc, cubin] : cubins_) {
    const bool is_whole = cubin.size_bytes != 0 && cubin.bytes.size() == cubin.size_bytes;
    if (is_whole && !cubin.is_refused && !cubin.pending.empty()) WriteSlice(crc, cubin, sink);
  }
}

void GpuSamples::WriteSlice(uint64_t crc, Cubin& cubin, EventSink& sink) {
  const std::set<std::string> wanted = std::exchange(cubin.pending, {});
  const auto slice = WriteCubinSlice(std::as_bytes(std::span(cubin.bytes)), wanted);
  if (!slice) return AddLoss(sink, LossKind::kGpuCodeMissing, "it could not be read");
  slice_bytes_ += slice->bytes.size();
  if (slice_bytes_ > kMostSliceBytes) {
    return AddLoss(sink, LossKind::kGpuCodeMissing, "too much of one process");
  }
  if (slice->lines_left_out) AddLoss(sink, LossKind::kGpuCodeMissing, "only the lines");
  const size_t parts = (slice->bytes.size() + kSlicePartBytes - 1) / kSlicePartBytes;
  for (size_t part = 0; part < parts; ++part) {
    CubinSlice event;
    event.instance = instance_;
    event.cubin_crc = crc;
    event.part = static_cast<uint32_t>(part);
    event.part_count = static_cast<uint32_t>(parts);
    event.bytes =
        sink.Intern(std::string_view(slice->bytes).substr(part * kSlicePartBytes, kSlicePartBytes));
    sink.Write(event);
  }
}

}  // namespace xpu
