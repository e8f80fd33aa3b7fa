// The file that libxpu_cupti_raw.so writes, and its reader. The file keeps what CUPTI really did in
// one process (callbacks, buffers byte by byte, result codes), so that unit tests can feed it to
// the pipeline without a GPU. Needs neither cupti.h nor any library.
//
// Layout, little endian, every piece padded with zeros to a multiple of 8 bytes:
//
//   FileHeader
//   { EntryHeader, payload of EntryHeader::size bytes } ...
//
// Entries lie in the order in which they took the writer's lock; `monotonic_ns` is taken just
// before, so two threads can be out of order by a few microseconds. Payload by EntryHeader::type:
//
//   kInfo              key '\0' value '\0'
//   kSetup             SetupPayload, name of the call '\0'
//   kApiCallback       ApiCallbackPayload
//   kResourceCallback  ResourceCallbackPayload
//   kCallbackName      CallbackNamePayload, name '\0'       once per (domain, cbid), before its use
//   kSymbolName        SymbolNamePayload, content '\0'      once per pointer, before its use
//   kThread            ThreadPayload, comm '\0'             once per thread, before its use
//   kBufferRequested   BufferRequestedPayload
//   kBufferCompleted   BufferCompletedPayload
//                      u32 offset of each record [record_count]
//                      { SideHeader, SideHeader::length bytes } [side_count]
//                      u8 [valid_size], the buffer as CUPTI handed it back
//   kFlush             FlushPayload
//   kClockPair         ClockPairPayload
//   kSummary           SummaryPayload                       last, of a process that exited well
//
// The side table resolves the pointers found in the records of that buffer, because what they point
// to belongs to CUPTI and is gone when the file is read. Pointers are kept as numbers only.
// A file whose process was killed ends after some entry, or inside one: `truncated` says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace xpu::cupti_raw {

inline constexpr char kMagic[8] = {'X', 'P', 'U', 'R', 'A', 'W', 'C', '\0'};
inline constexpr uint32_t kVersion = 1;

enum class EntryType : uint16_t {
  kInfo = 1,
  kSetup = 2,
  kApiCallback = 3,
  kResourceCallback = 4,
  kCallbackName = 5,
  kSymbolName = 6,
  kThread = 7,
  kBufferRequested = 8,
  kBufferCompleted = 9,
  kFlush = 10,
  kClockPair = 11,
  kSummary = 12,
};

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t pid;
  uint64_t monotonic_ns;
  uint64_t realtime_ns;
};
static_assert(sizeof(FileHeader) == 32);

struct EntryHeader {
  uint16_t type;  // EntryType
  uint16_t reserved;
  uint32_t size;  // of the payload, a multiple of 8
  uint64_t monotonic_ns;
  uint32_t tid;  // kernel thread id of the thread that wrote the entry
  uint32_t reserved2;
};
static_assert(sizeof(EntryHeader) == 24);

struct SetupPayload {
  int32_t result;     // CUptiResult; kNotFound when the function does not exist in this libcupti
  uint32_t argument;  // activity kind, callback domain, attribute, cbid
  uint64_t duration_ns;
};
static_assert(sizeof(SetupPayload) == 16);
inline constexpr int32_t kNotFound = -1;

// CUpti_CallbackData of one enter or exit callback of the driver or runtime domain.
struct ApiCallbackPayload {
  uint16_t domain;  // CUpti_CallbackDomain: 1 driver, 2 runtime
  uint16_t site;    // CUpti_ApiCallbackSite: 0 enter, 1 exit
  uint32_t cbid;
  uint32_t correlation_id;
  uint32_t context_uid;
  uint64_t context_pointer;
  uint64_t symbol_pointer;  // 0 unless a launch; resolved by kSymbolName
  int32_t return_value;     // CUresult or cudaError_t at exit, 0 at enter
  uint32_t reserved;
};
static_assert(sizeof(ApiCallbackPayload) == 40);

// One callback of the resource domain. Handles are numbers to compare, fields that the cbid does
// not have are 0, ids that CUPTI would not give are 0 too.
struct ResourceCallbackPayload {
  uint32_t cbid;  // CUpti_CallbackIdResource
  uint32_t node_type;
  uint64_t context_pointer;
  uint64_t stream_pointer;
  uint64_t graph_pointer;
  uint64_t original_graph_pointer;
  uint64_t node_pointer;
  uint64_t original_node_pointer;
  uint64_t dependency_pointer;
  uint64_t graph_exec_pointer;
  uint64_t node_id;           // cuptiGetGraphNodeId(node): graphNodeId of the records
  uint64_t original_node_id;  // cuptiGetGraphNodeId(originalNode)
  uint32_t graph_id;          // cuptiGetGraphId(graph)
  uint32_t original_graph_id;
  uint32_t graph_exec_id;  // cuptiGetGraphExecId(graphExec): graphId of the records
  uint32_t module_id;
  uint64_t cubin_size;
};
static_assert(sizeof(ResourceCallbackPayload) == 112);

struct CallbackNamePayload {
  uint32_t domain;
  uint32_t cbid;
};

struct SymbolNamePayload {
  uint64_t pointer;
};

struct ThreadPayload {
  uint64_t pthread_self;  // what the default thread ids of CUPTI are cut from
};

struct BufferRequestedPayload {
  uint64_t buffer_pointer;
  uint64_t size;
};

struct BufferCompletedPayload {
  uint64_t buffer_pointer;
  uint64_t size;        // as requested
  uint64_t valid_size;  // bytes of raw records in this entry
  uint64_t context_pointer;
  uint64_t dropped;  // cuptiActivityGetNumDroppedRecords since the last buffer
  uint32_t stream_id;
  int32_t dropped_result;
  int32_t last_result;  // what ended the walk with cuptiActivityGetNextRecord, 12 = no more records
  uint32_t record_count;
  uint32_t side_count;
  uint32_t reserved;
};
static_assert(sizeof(BufferCompletedPayload) == 64);

enum class SideKind : uint32_t {
  kString = 1,        // a name, without its final zero
  kOverheadData = 2,  // CUpti_ActivityOverheadCommandBufferFullData
};

struct SideHeader {
  uint64_t pointer;
  uint32_t kind;    // SideKind
  uint32_t length;  // without the padding
};

struct FlushPayload {
  uint64_t end_ns;  // CLOCK_MONOTONIC; it starts at the entry's time
  uint32_t flag;    // 0, or 1 = CUPTI_ACTIVITY_FLAG_FLUSH_FORCED
  int32_t result;
};

struct ClockPairPayload {
  uint64_t monotonic_before_ns;
  uint64_t cupti_timestamp;
  uint64_t monotonic_after_ns;
  uint64_t realtime_ns;
  int32_t result;
  uint32_t reserved;
};

struct SummaryPayload {
  uint64_t callbacks;
  uint64_t callbacks_left_out;  // over CUPTI_RAW_MAX_BYTES
  uint64_t buffers_requested;
  uint64_t buffers_completed;
  uint64_t buffers_left_out;
};

// Offsets in activity records that stay the same from CUPTI 11 to 13; libxpu_cupti_raw.so asserts
// them against cupti.h.
namespace record_offset {
inline constexpr size_t kKernelStart = 16;
inline constexpr size_t kKernelEnd = 24;
inline constexpr size_t kKernelDeviceId = 40;
inline constexpr size_t kKernelContextId = 44;
inline constexpr size_t kKernelStreamId = 48;
inline constexpr size_t kKernelCorrelationId = 92;
inline constexpr size_t kKernelName = 104;
inline constexpr size_t kKernelGraphNodeId = 144;
inline constexpr size_t kKernelGraphId = 156;
inline constexpr size_t kApiCbid = 4;
inline constexpr size_t kApiStart = 8;
inline constexpr size_t kApiEnd = 16;
inline constexpr size_t kApiThreadId = 28;
inline constexpr size_t kApiCorrelationId = 32;
inline constexpr size_t kMemcpyCopyKind = 4;
inline constexpr size_t kMemcpyBytes = 8;
inline constexpr size_t kMemcpyStart = 16;
inline constexpr size_t kMemcpyEnd = 24;
inline constexpr size_t kMemcpyStreamId = 40;
inline constexpr size_t kMemcpyCorrelationId = 44;
inline constexpr size_t kMemsetBytes = 8;
inline constexpr size_t kMemsetStart = 16;
inline constexpr size_t kMemsetEnd = 24;
inline constexpr size_t kMemsetStreamId = 40;
inline constexpr size_t kMemsetCorrelationId = 44;
inline constexpr size_t kSyncType = 4;
inline constexpr size_t kSyncStart = 8;
inline constexpr size_t kSyncEnd = 16;
inline constexpr size_t kSyncCorrelationId = 24;
inline constexpr size_t kOverheadKind = 4;
inline constexpr size_t kOverheadStart = 24;
inline constexpr size_t kOverheadEnd = 32;
inline constexpr size_t kGraphCorrelationId = 4;
inline constexpr size_t kGraphStart = 8;
inline constexpr size_t kGraphEnd = 16;
inline constexpr size_t kGraphGraphId = 28;
}  // namespace record_offset

// One completed buffer, owned copies.
struct Buffer {
  BufferCompletedPayload info;
  std::vector<uint32_t> record_offsets;  // ascending, each at least 4 bytes before the end
  std::map<uint64_t, std::string> strings;
  std::map<uint64_t, std::string> overhead_data;
  std::vector<uint8_t> bytes;

  // The bytes of record `index` up to the next record; longer than the record if CUPTI padded.
  std::span<const uint8_t> Record(size_t index) const;
};

// One entry; `type` says which of the members besides `text` holds something.
struct Entry {
  EntryType type;
  uint64_t monotonic_ns;
  uint32_t tid;
  union {
    SetupPayload setup;
    ApiCallbackPayload api;
    ResourceCallbackPayload resource;
    CallbackNamePayload callback_name;
    SymbolNamePayload symbol_name;
    ThreadPayload thread;
    BufferRequestedPayload buffer_requested;
    uint64_t buffer_index;  // into Capture::buffers
    FlushPayload flush;
    ClockPairPayload clock_pair;
    SummaryPayload summary;
  };
  std::string text;  // name, symbol, comm or value of a kInfo
  std::string key;   // of a kInfo
};

struct Capture {
  FileHeader header;
  std::vector<Entry> entries;  // entries of unknown type are left out and counted
  std::vector<Buffer> buffers;
  std::map<std::string, std::string> info;
  std::map<std::pair<uint32_t, uint32_t>, std::string> callback_names;  // by (domain, cbid)
  std::map<uint64_t, std::string> symbols;                              // by pointer
  uint64_t unknown_entries = 0;
  bool truncated = false;  // ended inside an entry; all before it is here
};

// Both return false with a reason in `*error` when this is no such file or an entry contradicts
// itself; `*capture` then holds what came before. Never reads outside `bytes`.
bool Parse(std::span<const uint8_t> bytes, Capture* capture, std::string* error);
bool Load(const std::string& path, Capture* capture, std::string* error);

}  // namespace xpu::cupti_raw
