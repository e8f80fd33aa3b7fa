#include "buffers.h"

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "state.h"

namespace xpu::cupti_raw {
namespace {

// The pointers of one record that must be followed now.
void CollectPointers(const CUpti_Activity* record, std::map<uint64_t, std::string>* strings,
                     std::map<uint64_t, std::string>* overhead_data) {
  const auto add_string = [&](const char* text) {
    if (text != nullptr) (*strings)[Number(text)] = text;
  };
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      add_string(reinterpret_cast<const CUpti_ActivityKernel10*>(record)->name);
      break;
    case CUPTI_ACTIVITY_KIND_DEVICE:
      add_string(reinterpret_cast<const CUpti_ActivityDevice5*>(record)->name);
      break;
    case CUPTI_ACTIVITY_KIND_NAME:
      add_string(reinterpret_cast<const CUpti_ActivityName*>(record)->name);
      break;
    case CUPTI_ACTIVITY_KIND_MARKER:
      add_string(reinterpret_cast<const CUpti_ActivityMarker2*>(record)->name);
      add_string(reinterpret_cast<const CUpti_ActivityMarker2*>(record)->domain);
      break;
    case CUPTI_ACTIVITY_KIND_FUNCTION:
      add_string(reinterpret_cast<const CUpti_ActivityFunction*>(record)->name);
      break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
      const auto* overhead = reinterpret_cast<const CUpti_ActivityOverhead3*>(record);
      const bool has_data = overhead->overheadKind == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL;
      if (has_data && overhead->overheadData != nullptr) {
        (*overhead_data)[Number(static_cast<const char*>(overhead->overheadData))] =
            std::string(static_cast<const char*>(overhead->overheadData),
                        sizeof(CUpti_ActivityOverheadCommandBufferFullData));
      }
      break;
    }
    default:
      break;
  }
}

void AddSideTable(SideKind kind, const std::map<uint64_t, std::string>& table, Payload* payload) {
  for (const auto& [pointer, content] : table) {
    payload->Add(
        SideHeader{pointer, static_cast<uint32_t>(kind), static_cast<uint32_t>(content.size())});
    payload->AddBytes(content.data(), content.size());
    payload->Pad();
  }
}

void WriteCompleted(CUcontext context, uint32_t stream_id, uint8_t* buffer, size_t size,
                    size_t valid_size, uint64_t monotonic_ns) {
  const Cupti& cupti = g_state->cupti;
  std::vector<uint32_t> offsets;
  std::map<uint64_t, std::string> strings;
  std::map<uint64_t, std::string> overhead_data;
  CUpti_Activity* record = nullptr;
  CUptiResult result = CUPTI_ERROR_MAX_LIMIT_REACHED;
  if (valid_size > 0) {
    while ((result = cupti.cuptiActivityGetNextRecord(buffer, valid_size, &record)) ==
           CUPTI_SUCCESS) {
      offsets.push_back(static_cast<uint32_t>(reinterpret_cast<const uint8_t*>(record) - buffer));
      CollectPointers(record, &strings, &overhead_data);
    }
  }
  BufferCompletedPayload info{};
  size_t dropped = 0;
  info.dropped_result = cupti.cuptiActivityGetNumDroppedRecords(context, stream_id, &dropped);
  info.buffer_pointer = Number(buffer);
  info.size = size;
  info.valid_size = valid_size;
  info.context_pointer = Number(context);
  info.dropped = dropped;
  info.stream_id = stream_id;
  info.last_result = result;
  info.record_count = static_cast<uint32_t>(offsets.size());
  info.side_count = static_cast<uint32_t>(strings.size() + overhead_data.size());
  Payload payload;
  payload.Add(info);
  payload.AddBytes(offsets.data(), offsets.size() * sizeof(uint32_t));
  payload.Pad();
  AddSideTable(SideKind::kString, strings, &payload);
  AddSideTable(SideKind::kOverheadData, overhead_data, &payload);
  payload.AddBytes(buffer, valid_size);
  if (!g_state->writer.Write(EntryType::kBufferCompleted, std::move(payload), monotonic_ns, 95)) {
    ++g_state->buffers_left_out;
  }
}

}  // namespace

void CUPTIAPI OnBufferRequested(uint8_t** buffer, size_t* size, size_t* max_records) {
  const uint64_t monotonic_ns = Now(CLOCK_MONOTONIC);
  *max_records = 0;
  *size = g_state->buffer_bytes;
  *buffer = static_cast<uint8_t*>(std::calloc(1, g_state->buffer_bytes));
  if (g_state->silent.load()) return;
  ++g_state->buffers_requested;
  WriteThreadOnce();
  Payload payload;
  payload.Add(BufferRequestedPayload{Number(*buffer), *size});
  g_state->writer.Write(EntryType::kBufferRequested, std::move(payload), monotonic_ns, 100);
}

void CUPTIAPI OnBufferCompleted(CUcontext context, uint32_t stream_id, uint8_t* buffer, size_t size,
                                size_t valid_size) {
  const uint64_t monotonic_ns = Now(CLOCK_MONOTONIC);
  if (!g_state->silent.load()) {
    ++g_state->buffers_completed;
    WriteThreadOnce();
    WriteCompleted(context, stream_id, buffer, size, valid_size, monotonic_ns);
  }
  std::free(buffer);
}

}  // namespace xpu::cupti_raw
