// cupti_raw_dump FILE [--raw]: a raw CUPTI capture as text, one line per entry and per record, for
// people. --raw adds the bytes of each record in hexadecimal.
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "cupti_raw.h"

namespace xpu::cupti_raw {
namespace {

// Values of CUpti_ActivityKind.
enum Kind : uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kSerialKernel = 3,
  kDriver = 4,
  kRuntime = 5,
  kKernel = 10,
  kOverhead = 17,
  kSync = 38,
  kGraphTrace = 51,
};

// A field of a record, 0 where the record is too short.
template <typename T>
T Field(std::span<const uint8_t> record, size_t offset) {
  T value{};
  if (offset + sizeof(T) <= record.size()) {
    std::memcpy(&value, record.data() + offset, sizeof(T));
  }
  return value;
}

uint32_t U32(std::span<const uint8_t> record, size_t offset) {
  return Field<uint32_t>(record, offset);
}

uint64_t U64(std::span<const uint8_t> record, size_t offset) {
  return Field<uint64_t>(record, offset);
}

const char* CallbackName(const Capture& capture, uint32_t domain, uint32_t cbid) {
  const auto found = capture.callback_names.find({domain, cbid});
  return found == capture.callback_names.end() ? "?" : found->second.c_str();
}

void PrintTimes(std::span<const uint8_t> record, size_t start, size_t end) {
  std::printf(" start %" PRIu64 " end %" PRIu64, U64(record, start), U64(record, end));
}

void PrintKernel(const Buffer& buffer, std::span<const uint8_t> record) {
  namespace at = record_offset;
  const auto name = buffer.strings.find(U64(record, at::kKernelName));
  std::printf(" kernel correlation %u device %u context %u stream %u graph %u node %" PRIu64,
              U32(record, at::kKernelCorrelationId), U32(record, at::kKernelDeviceId),
              U32(record, at::kKernelContextId), U32(record, at::kKernelStreamId),
              U32(record, at::kKernelGraphId), U64(record, at::kKernelGraphNodeId));
  PrintTimes(record, at::kKernelStart, at::kKernelEnd);
  std::printf(" %s", name == buffer.strings.end() ? "?" : name->second.c_str());
}

void PrintRecord(const Capture& capture, const Buffer& buffer, size_t index, bool raw) {
  namespace at = record_offset;
  const std::span<const uint8_t> record = buffer.Record(index);
  const uint32_t kind = U32(record, 0);
  std::printf("    record %zu kind %u size %zu", index, kind, record.size());
  switch (kind) {
    case kSerialKernel:
    case kKernel:
      PrintKernel(buffer, record);
      break;
    case kDriver:
    case kRuntime:
      std::printf(" %s correlation %u tid %u",
                  CallbackName(capture, kind == kDriver ? 1 : 2, U32(record, at::kApiCbid)),
                  U32(record, at::kApiCorrelationId), U32(record, at::kApiThreadId));
      PrintTimes(record, at::kApiStart, at::kApiEnd);
      break;
    case kMemcpy:
      std::printf(" memcpy kind %u bytes %" PRIu64 " stream %u correlation %u",
                  Field<uint8_t>(record, at::kMemcpyCopyKind), U64(record, at::kMemcpyBytes),
                  U32(record, at::kMemcpyStreamId), U32(record, at::kMemcpyCorrelationId));
      PrintTimes(record, at::kMemcpyStart, at::kMemcpyEnd);
      break;
    case kMemset:
      std::printf(" memset bytes %" PRIu64 " stream %u correlation %u",
                  U64(record, at::kMemsetBytes), U32(record, at::kMemsetStreamId),
                  U32(record, at::kMemsetCorrelationId));
      PrintTimes(record, at::kMemsetStart, at::kMemsetEnd);
      break;
    case kSync:
      std::printf(" sync type %u correlation %u", U32(record, at::kSyncType),
                  U32(record, at::kSyncCorrelationId));
      PrintTimes(record, at::kSyncStart, at::kSyncEnd);
      break;
    case kOverhead:
      std::printf(" overhead kind %u", U32(record, at::kOverheadKind));
      PrintTimes(record, at::kOverheadStart, at::kOverheadEnd);
      break;
    case kGraphTrace:
      std::printf(" graph %u correlation %u", U32(record, at::kGraphGraphId),
                  U32(record, at::kGraphCorrelationId));
      PrintTimes(record, at::kGraphStart, at::kGraphEnd);
      break;
    default:
      break;
  }
  if (raw) {
    std::printf(" :");
    for (size_t i = 0; i < record.size(); ++i) {
      std::printf("%s%02x", i % 8 == 0 ? " " : "", record[i]);
    }
  }
  std::printf("\n");
}

void PrintResource(const Capture& capture, const ResourceCallbackPayload& resource) {
  std::printf("resource %s context %#" PRIx64, CallbackName(capture, 3, resource.cbid),
              resource.context_pointer);
  if (resource.stream_pointer != 0) std::printf(" stream %#" PRIx64, resource.stream_pointer);
  if (resource.graph_pointer != 0) {
    std::printf(" graph %#" PRIx64 " id %u original id %u", resource.graph_pointer,
                resource.graph_id, resource.original_graph_id);
  }
  if (resource.node_pointer != 0) {
    std::printf(" node %#" PRIx64 " type %u id %" PRIu64 " original id %" PRIu64,
                resource.node_pointer, resource.node_type, resource.node_id,
                resource.original_node_id);
  }
  if (resource.graph_exec_pointer != 0) {
    std::printf(" graph exec %#" PRIx64 " id %u", resource.graph_exec_pointer,
                resource.graph_exec_id);
  }
  if (resource.module_id != 0) {
    std::printf(" module %u cubin %" PRIu64 " bytes", resource.module_id, resource.cubin_size);
  }
  std::printf("\n");
}

void PrintApi(const Capture& capture, const ApiCallbackPayload& api) {
  std::printf("%s %s %s cbid %u correlation %u context %u", api.domain == 1 ? "driver" : "runtime",
              api.site == 0 ? "enter" : "exit", CallbackName(capture, api.domain, api.cbid),
              api.cbid, api.correlation_id, api.context_uid);
  if (api.site == 1) std::printf(" returned %d", api.return_value);
  const auto symbol = capture.symbols.find(api.symbol_pointer);
  if (symbol != capture.symbols.end()) std::printf(" symbol %s", symbol->second.c_str());
  std::printf("\n");
}

void PrintBuffer(const Capture& capture, const Buffer& buffer, bool raw) {
  std::printf("buffer completed %#" PRIx64 " size %" PRIu64 " valid %" PRIu64
              " records %zu ended by %d dropped %" PRIu64 "\n",
              buffer.info.buffer_pointer, buffer.info.size, buffer.info.valid_size,
              buffer.record_offsets.size(), buffer.info.last_result, buffer.info.dropped);
  for (size_t i = 0; i < buffer.record_offsets.size(); ++i) {
    PrintRecord(capture, buffer, i, raw);
  }
}

void PrintEntry(const Capture& capture, const Entry& entry, bool raw) {
  std::printf(
      "%+15.6f ms tid %u ",
      (static_cast<double>(entry.monotonic_ns) - static_cast<double>(capture.header.monotonic_ns)) /
          1e6,
      entry.tid);
  switch (entry.type) {
    case EntryType::kInfo:
      std::printf("info %s = %s\n", entry.key.c_str(), entry.text.c_str());
      break;
    case EntryType::kSetup:
      std::printf("setup %s(%u) returned %d after %" PRIu64 " ns\n", entry.text.c_str(),
                  entry.setup.argument, entry.setup.result, entry.setup.duration_ns);
      break;
    case EntryType::kApiCallback:
      PrintApi(capture, entry.api);
      break;
    case EntryType::kResourceCallback:
      PrintResource(capture, entry.resource);
      break;
    case EntryType::kCallbackName:
      std::printf("name of callback %u/%u is %s\n", entry.callback_name.domain,
                  entry.callback_name.cbid, entry.text.c_str());
      break;
    case EntryType::kSymbolName:
      std::printf("symbol %#" PRIx64 " is %s\n", entry.symbol_name.pointer, entry.text.c_str());
      break;
    case EntryType::kThread:
      std::printf("thread %s pthread_self %#" PRIx64 "\n", entry.text.c_str(),
                  entry.thread.pthread_self);
      break;
    case EntryType::kBufferRequested:
      std::printf("buffer requested %#" PRIx64 " size %" PRIu64 "\n",
                  entry.buffer_requested.buffer_pointer, entry.buffer_requested.size);
      break;
    case EntryType::kBufferCompleted:
      PrintBuffer(capture, capture.buffers[entry.buffer_index], raw);
      break;
    case EntryType::kFlush:
      std::printf("flush flag %u returned %d after %" PRIu64 " ns\n", entry.flush.flag,
                  entry.flush.result, entry.flush.end_ns - entry.monotonic_ns);
      break;
    case EntryType::kClockPair:
      std::printf("clock pair monotonic %" PRIu64 " +%" PRIu64 " cupti %" PRIu64
                  " realtime %" PRIu64 " returned %d\n",
                  entry.clock_pair.monotonic_before_ns,
                  entry.clock_pair.monotonic_after_ns - entry.clock_pair.monotonic_before_ns,
                  entry.clock_pair.cupti_timestamp, entry.clock_pair.realtime_ns,
                  entry.clock_pair.result);
      break;
    case EntryType::kSummary:
      std::printf("summary callbacks %" PRIu64 " (%" PRIu64 " left out) buffers requested %" PRIu64
                  " completed %" PRIu64 " (%" PRIu64 " left out)\n",
                  entry.summary.callbacks, entry.summary.callbacks_left_out,
                  entry.summary.buffers_requested, entry.summary.buffers_completed,
                  entry.summary.buffers_left_out);
      break;
  }
}

}  // namespace
}  // namespace xpu::cupti_raw

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: cupti_raw_dump FILE [--raw]\n");
    return 2;
  }
  const bool raw = argc > 2 && std::strcmp(argv[2], "--raw") == 0;
  xpu::cupti_raw::Capture capture;
  std::string error;
  const bool good = xpu::cupti_raw::Load(argv[1], &capture, &error);
  for (const xpu::cupti_raw::Entry& entry : capture.entries) {
    xpu::cupti_raw::PrintEntry(capture, entry, raw);
  }
  if (capture.truncated) std::printf("(truncated)\n");
  if (!good) {
    std::fprintf(stderr, "cupti_raw_dump: %s\n", error.c_str());
    return 1;
  }
  return 0;
}
