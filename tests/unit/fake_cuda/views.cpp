#include "views.h"

#include <cstdio>
#include <utility>

#include "cupti.h"

namespace xpu::fake_cuda_test {
namespace {

using cupti_raw::ApiCallbackPayload;
using cupti_raw::Buffer;
using cupti_raw::Capture;
using cupti_raw::Entry;
using cupti_raw::EntryType;
using cupti_raw::ResourceCallbackPayload;

std::string NameIn(const Capture& capture, uint32_t domain, uint32_t callback_id) {
  const auto found = capture.callback_names.find({domain, callback_id});
  return found == capture.callback_names.end() ? "?" : found->second;
}

// Ids in the order of their first use.
class Ranks {
 public:
  uint32_t Of(uint32_t id) {
    if (id == 0) return 0;
    return ranks_.emplace(id, static_cast<uint32_t>(ranks_.size() + 1)).first->second;
  }

 private:
  std::map<uint32_t, uint32_t> ranks_;
};

// Ranks by the callbacks, so that records get the ranks of the calls that made them.
Ranks CallbackRanks(const Capture& capture) {
  Ranks ranks;
  const uint32_t main_thread = MainThread(capture);
  for (const Entry& entry : capture.entries) {
    if (entry.type == EntryType::kApiCallback && entry.tid == main_thread) {
      ranks.Of(entry.api.correlation_id);
    }
  }
  return ranks;
}

std::string ApiLine(const Capture& capture, const ApiCallbackPayload& api, uint32_t rank) {
  std::string line = api.domain == 1 ? "driver " : "runtime ";
  line += api.site == 0 ? "enter " : "exit ";
  line += NameIn(capture, api.domain, api.cbid) + "(" + std::to_string(api.cbid) + ") id " +
          std::to_string(rank) + " context " + std::to_string(api.context_uid);
  line += api.context_pointer == 0 ? "" : " handle";
  if (api.site == 1) line += " returned " + std::to_string(api.return_value);
  const auto symbol = capture.symbols.find(api.symbol_pointer);
  if (symbol != capture.symbols.end()) line += " " + symbol->second;
  return line;
}

// Which handles are set, and the ids.
std::string ResourceLine(const ResourceCallbackPayload& resource) {
  std::string line = "resource " + std::to_string(resource.cbid);
  const std::pair<const char*, uint64_t> handles[] = {
      {" context", resource.context_pointer},
      {" stream", resource.stream_pointer},
      {" graph", resource.graph_pointer},
      {" original", resource.original_graph_pointer},
      {" node", resource.node_pointer},
      {" original-node", resource.original_node_pointer},
      {" dependency", resource.dependency_pointer},
      {" exec", resource.graph_exec_pointer}};
  for (const auto& [name, value] : handles) line += value == 0 ? "" : name;
  char ids[160];
  std::snprintf(ids, sizeof(ids), " type %u ids %u %u %u %llx %llx module %u", resource.node_type,
                resource.graph_id, resource.original_graph_id, resource.graph_exec_id,
                static_cast<unsigned long long>(resource.node_id),
                static_cast<unsigned long long>(resource.original_node_id), resource.module_id);
  return line + ids;
}

struct Range {
  size_t offset;
  size_t size;
};

// Where the correlation id is, and what is not compared.
struct Mask {
  size_t correlation_offset;  // 0: none
  std::vector<Range> hidden;
};

Mask MaskOf(uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      // registers; times; name. Where a kernel has latency times they are 0 in both.
      return {offsetof(CUpti_ActivityKernel10, correlationId), {{6, 2}, {16, 24}, {104, 8}}};
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return {offsetof(CUpti_ActivityMemcpy6, correlationId), {{16, 16}}};
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return {offsetof(CUpti_ActivityMemset4, correlationId), {{16, 16}}};
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return {offsetof(CUpti_ActivitySynchronization2, correlationId), {{8, 16}}};
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return {offsetof(CUpti_ActivityGraphTrace2, correlationId), {{8, 16}}};
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return {offsetof(CUpti_ActivityOverhead3, correlationId), {{12, 8}, {24, 16}}};
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return {offsetof(CUpti_ActivityAPI, correlationId), {{8, 24}}};
    case CUPTI_ACTIVITY_KIND_STREAM:
      return {offsetof(CUpti_ActivityStream, correlationId), {}};
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return {0, {{8, 28}, {36, 68}, {112, 32}}};  // the card
    default:
      return {0, {}};
  }
}

uint32_t OverheadKind(std::span<const uint8_t> record) {
  return FieldOf<uint32_t>(record, 0) == CUPTI_ACTIVITY_KIND_OVERHEAD ? FieldOf<uint32_t>(record, 4)
                                                                      : 0;
}

// They come when threads get to run.
bool OfBuffers(uint32_t overhead_kind) {
  return overhead_kind == CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH ||
         overhead_kind == CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST;
}

std::string RecordLine(const Buffer& buffer, size_t index, Ranks* ranks) {
  const std::span<const uint8_t> record = buffer.Record(index);
  const auto kind = FieldOf<uint32_t>(record, 0);
  const Mask mask = MaskOf(kind);
  std::vector<uint8_t> bytes(record.begin(), record.end());
  if (mask.correlation_offset != 0) {
    const uint32_t rank = ranks->Of(FieldOf<uint32_t>(record, mask.correlation_offset));
    std::memcpy(&bytes[mask.correlation_offset], &rank, sizeof(rank));
  }
  for (const Range& range : mask.hidden) std::memset(&bytes[range.offset], 0, range.size);
  std::string line = "kind " + std::to_string(kind) + ":";
  for (size_t i = 0; i < bytes.size(); ++i) {
    char hex[4];
    std::snprintf(hex, sizeof(hex), "%s%02x", i % 8 == 0 ? " " : "", bytes[i]);
    line += hex;
  }
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    line +=
        " " + buffer.strings.at(FieldOf<uint64_t>(record, cupti_raw::record_offset::kKernelName));
  }
  return line;
}

}  // namespace

uint32_t MainThread(const Capture& capture) {
  for (const Entry& entry : capture.entries) {
    if (entry.type == EntryType::kApiCallback) return entry.tid;
  }
  return 0;
}

Lines SetupLines(const Capture& capture) {
  Lines lines;
  for (const Entry& entry : capture.entries) {
    if (entry.type != EntryType::kSetup) continue;
    lines.push_back(entry.text + "(" + std::to_string(entry.setup.argument) + ") returned " +
                    std::to_string(entry.setup.result));
  }
  return lines;
}

namespace {

// Tells the resource callbacks that the simulated driver does not give: of the nodes that the real
// one makes for itself in an executable graph, once its second copy of the graph has begun, and of
// what it destroys.
class DriversOwn {
 public:
  bool Is(const ResourceCallbackPayload& resource) {
    switch (resource.cbid) {
      case CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING:
      case CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING:
      case kNodeSetParams:
        return true;
      case CUPTI_CBID_RESOURCE_GRAPH_CREATED:
        copy_ = copies_++ == kGraphsBeforeCopy ? resource.graph_id : 0;
        return false;
      case CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING:
      case CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED:
        return false;
      default:
        return copy_ != 0 && resource.graph_id != 0 && resource.graph_id != copy_;
    }
  }

 private:
  static constexpr uint32_t kNodeSetParams = 23;  // at each launch, with GRAPH_TRACE only
  static constexpr int kGraphsBeforeCopy = 2;     // the captured one, the executable one
  int copies_ = 0;
  uint32_t copy_ = 0;
};

}  // namespace

Lines CallbackLines(const Capture& capture) {
  Lines lines;
  Ranks ranks;
  DriversOwn own;
  const uint32_t main_thread = MainThread(capture);
  for (const Entry& entry : capture.entries) {
    if (entry.tid != main_thread) continue;
    if (entry.type == EntryType::kApiCallback) {
      lines.push_back(ApiLine(capture, entry.api, ranks.Of(entry.api.correlation_id)));
    } else if (entry.type == EntryType::kResourceCallback && !own.Is(entry.resource)) {
      lines.push_back(ResourceLine(entry.resource));
    }
  }
  return lines;
}

Lines RecordLines(const Capture& capture) {
  Lines lines;
  Ranks ranks = CallbackRanks(capture);
  const uint32_t main_thread = MainThread(capture);
  for (const Buffer& buffer : capture.buffers) {
    if (buffer.info.stream_id != main_thread) continue;
    for (size_t i = 0; i < buffer.record_offsets.size(); ++i) {
      // But for the first request, which is in the second record.
      if (lines.size() != 1 && OfBuffers(OverheadKind(buffer.Record(i)))) continue;
      lines.push_back(RecordLine(buffer, i, &ranks));
    }
  }
  return lines;
}

std::map<std::string, int> RecordCounts(const Capture& capture) {
  std::map<std::string, int> counts;
  for (const Buffer& buffer : capture.buffers) {
    for (size_t i = 0; i < buffer.record_offsets.size(); ++i) {
      const auto record = buffer.Record(i);
      const auto kind = FieldOf<uint32_t>(record, 0);
      const uint32_t overhead = OverheadKind(record);
      if (OfBuffers(overhead)) continue;
      ++counts["kind " + std::to_string(kind) + "/" + std::to_string(overhead) + " of " +
               std::to_string(record.size()) + " bytes"];
    }
  }
  return counts;
}

}  // namespace xpu::fake_cuda_test
