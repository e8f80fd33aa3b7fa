// Interface 1: the messages between the injected library and xpu-record.
//
// Handshake. xpu-record listens on an abstract unix stream socket with a random name and puts
// `XPU_INJECT=<name>:<secret>:<session>` (secret: 32, session: 1 to 16 hexadecimal digits) into the
// target's environment (beside CUDA_INJECTION64_PATH). When the driver loads the library, the
// library connects, checks that the peer is root or its own user (SO_PEERCRED), sends one Hello
// with the secret, and receives one HelloReply with one or two memfds as ancillary data: the ring,
// and where stacks are to be taken in the process the arena of unwind tables. While it starts the
// library may send single bytes (there is something in the ring), then it closes the socket: the
// program keeps no descriptor of ours. The memfds are sealed: neither side makes the other fault.
//
// After an attach (attach_request.h) Hello and HelloReply go over a pair of sockets that the
// library has made, and both sides keep it: the recorder's end closes when it is gone, the
// library's when the library has left, with everything freed and CUPTI finalised.
//
// Ring. kHeaderBytes of RingHeader, then `capacity_bytes` of data (a power of two), mapped twice in
// a row so that every message is contiguous. Many producers (the program's threads), one consumer
// (xpu-record). To send, a producer moves `head` forward by compare-and-swap when the space is
// free, stores the size in MessageHeader::size_and_state, writes its message, and last stores the
// size again, with kReady (release). The consumer reads ready messages in order, overwrites them
// with zeros, then moves `tail` (release). Zeroed memory, or a size without kReady, means
// "reserved, not ready", whatever an earlier lap held there. When the process has ended, the
// consumer steps over a message that a thread has not finished. No producer waits in a callback of
// the program: a message that does not fit is counted in `counters` and left out.
//
// Launch stacks (kSettingInlineStacks) are in wire_stacks.h.
//
// NVTX. The same library is NVTX's tool (NVTX_INJECTION64_PATH), which the first range of a program
// loads: whichever of NVTX and CUDA comes first makes the connection.
//
// Pauses. The recorder sets RingHeader::gate, the library looks at it at the entry of each call:
// what a call starts while the recording is paused is left out, whenever it runs. With a capture
// range (kSettingCaptureRange) the recording is off but in ranges of the program, which the library
// sees first: it acts at once, on the calling thread, and tells the recorder (SwitchMessage). Calls
// that make nodes of graphs, allocations where they are recorded, names and NVTX ranges that are
// open are reported in pauses too.
//
// Nothing here is stored; both ends are of one build (kVersion). The consumer trusts nothing in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "bpf/python_layout.h"

namespace xpu::wire {

inline constexpr uint32_t kVersion = 13;
inline constexpr char kEnvironmentVariable[] = "XPU_INJECT";
inline constexpr char kCuptiLibVariable[] = "XPU_CUPTI_LIB";  // the libcupti to use, a path
inline constexpr size_t kSecretBytes = 16;  // 32 hexadecimal digits in the environment
inline constexpr size_t kPageBytes = 4096;
inline constexpr uint32_t kMaxCodeFiles = 4096;
inline constexpr uint32_t kMaxOtherCode = 64;
// RingHeader, whole pages.
inline constexpr size_t kHeaderBytes = kPageBytes + kMaxCodeFiles * sizeof(uint32_t);
inline constexpr uint64_t kDefaultCapacityBytes = uint64_t{16} << 20;
inline constexpr uint32_t kMaxMessageBytes = 64 << 10;  // with its MessageHeader
inline constexpr size_t kMaxNameBytes = 32 << 10;       // longer names are cut
inline constexpr uint32_t kMaxFrames = 256;             // as many as the BPF programs give
inline constexpr uint32_t kMaxCopyBytes = 16 << 10;     // of a stack
inline constexpr size_t kMaxBuildIdBytes = 32;
inline constexpr size_t kMaxPayloadBytes = 512;     // of NVTX; larger ones are left out
inline constexpr uint32_t kMaxSchemaEntries = 256;  // of NVTX; the others are left out
inline constexpr size_t kCaptureRangeBytes = 512;   // its name and its domain, each with a zero

struct Hello {
  uint32_t version;
  uint32_t namespace_pid;  // getpid() of the program
  uint64_t instance;
  uint64_t free_address_bytes;  // of RLIMIT_AS; 0: no limit. With few the recorder refuses
  uint8_t secret[kSecretBytes];
  uint32_t attached;  // 1: over a connection of attach_request.h; `secret` is zero
  uint32_t reserved;
};

struct HelloReply {
  uint32_t version;
  uint32_t accepted;  // 0: refused, no descriptor follows
  uint64_t capacity_bytes;
  uint64_t arena_bytes;  // 0: no second descriptor
};

enum class State : uint32_t {  // of the library, in the order of its life
  kConnected = 0,
  kActive = 1,
  kDormant = 2,    // a Detail message says why
  kFinished = 3,   // flushed at exit
  kAbandoned = 4,  // flushed, because the recorder seemed dead
  // After an attach, between kConnected and the next: CUPTI's first call waits until the GPU has
  // finished its work.
  kStartsCupti = 5,
};

// Monotonic totals; the consumer turns them into losses. They survive the death of the program.
enum Counter : uint32_t {
  kCounterActivities,         // activity records, counted before they are put into the ring
  kCounterActivitiesDropped,  // of them: ring full
  kCounterCalls,              // likewise
  kCounterCallsDropped,       // ring full; their stack was sent, or the marker hit
  kCounterOthersDropped,      // names, clock pairs: ring full
  kCounterMarkers,            // hits of the marker: launch stacks that should exist
  kCounterCuptiDropped,       // cuptiActivityGetNumDroppedRecords
  kCounterCuptiErrors,        // CUPTI calls that failed after the start
  kCounterBuffersRequested,   // activity buffers handed to CUPTI,
  kCounterBuffersCompleted,   // and given back: the rest died with the program
  kCounterWalksDropped,       // launch stacks taken in the process: ring full
  kCounterNvtxDropped,        // ring full
  kCounterCallsLost,          // ring full; their stack was dropped too
  kCounterPythonDropped,      // launch stacks whose Python frames were dropped: ring full
  kCounterSamplesDropped,     // of program counters: ring full, or no memory for their function
  kCounterCubinsDropped,      // modules with samples whose code could not be read or sent
  kCounterBlocksDropped,      // of PyTorch's allocator: ring full
  kCounterCount,
};

inline constexpr uint32_t kSettingGraphNodes = 1 << 0;    // a record per graph node, not per replay
inline constexpr uint32_t kSettingInlineStacks = 1 << 1;  // else the marker is called
inline constexpr uint32_t kSettingNvtx = 1 << 2;          // NVTX loads the library too
inline constexpr uint32_t kSettingMemory = 1 << 3;        // allocations, with their calls
inline constexpr uint32_t kSettingPauses = 1 << 4;        // the gate may be closed
inline constexpr uint32_t kSettingProfilerApi = 1 << 5;   // it opens with cuProfilerStart
inline constexpr uint32_t kSettingNvtxRange = 1 << 6;     // it opens with RingHeader::capture_range
inline constexpr uint32_t kSettingMayEnd = 1 << 7;        // `gate` may become kGateEnds
inline constexpr uint32_t kSettingGpuSamples = 1 << 8;    // of program counters of the GPU

// Bits of RingHeader::gate.
inline constexpr uint32_t kGatePaused = 1 << 0;
inline constexpr uint32_t kGateOthersOpen = 1 << 1;  // another process is in a capture range
inline constexpr uint32_t kGateEnds = 1 << 2;        // send what is left, then be off

// Values of RingHeader::tables; others are the table's offset in the arena divided by 8.
inline constexpr uint32_t kTablePending = 0;
inline constexpr uint32_t kTableNone = 1;
inline constexpr uint32_t kTableUnit = 8;

struct AddressRange {
  std::atomic<uint64_t> start;
  std::atomic<uint64_t> end;
};

struct RingHeader {
  uint32_t version;
  uint32_t settings;  // what the recorder wants: bits of kSetting...
  uint64_t capacity_bytes;
  // The library works that long without a heartbeat, then takes the recorder for dead and ends its
  // own work for good. 0: never.
  uint64_t patience_ns;
  // How many buffers CUPTI may have on the device; 0: as many as it takes. Only tests of what
  // happens when there are none left say so.
  uint64_t device_buffers;
  // Of kSettingGpuSamples: a sample each 2^N cycles, and the GPU's memory for them.
  uint32_t sample_period_bits;
  // The number of the last GpuClaimMessage that was answered, times 2, plus 1 if the GPU is the
  // program's to sample.
  std::atomic<uint32_t> claim_answer;
  uint64_t sample_buffer_bytes;
  // If nothing ends for so much longer than the longest work took, what is unfinished is sent as it
  // is. 0: never.
  uint64_t hang_ns;
  alignas(64) std::atomic<uint64_t> head;    // bytes ever reserved
  alignas(64) std::atomic<uint64_t> tail;    // bytes ever consumed
  alignas(64) std::atomic<uint32_t> closed;  // the recorder has stopped: produce nothing more
  std::atomic<uint32_t> heartbeat;           // the recorder adds one at each poll
  std::atomic<State> state;
  std::atomic<uint32_t> gate;      // bits of kGate...
  std::atomic<uint32_t> attached;  // 1: the library has taken the ring
  // 1: the program, whose stacks BPF programs take, is held up until the recorder has the tables of
  // what is mapped. It answers by the other.
  std::atomic<uint32_t> tables_awaited;
  std::atomic<uint32_t> tables_there;
  // [0] of each, in a line of its own: threads of the program and of CUPTI count at the same time.
  alignas(64) std::atomic<uint64_t> counters[kCounterCount][8];
  // Executable memory that no file of the loader's is in. The recorder adds at the end.
  alignas(64) std::atomic<uint32_t> other_code_count;
  std::atomic<uint32_t> other_code_answers;  // questions (OtherCodeMessage) that were looked into
  AddressRange other_code[kMaxOtherCode];
  std::atomic<uint32_t> code_files_seen;  // by the recorder: numbers below this one
  std::atomic<uint32_t> has_python;       // 1: `python` is filled
  xpu_python_process python;
  // Of NVTX: the name, a zero, the domain ("" the default one, "*" any), a zero.
  char capture_range[kCaptureRangeBytes];
  // By the number of the code file.
  alignas(kPageBytes) std::atomic<uint32_t> tables[kMaxCodeFiles];
};
static_assert(sizeof(RingHeader) == kHeaderBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

inline constexpr uint32_t kReady = uint32_t{1} << 31;

enum class MessageKind : uint32_t {
  kActivity = 1,            // ActivityMessage, then the CUPTI record
  kName = 2,                // NameMessage, then the text
  kApiCall = 3,             // ApiCallMessage
  kClockPair = 4,           // ClockPairMessage
  kCallbackName = 5,        // CallbackNameMessage, then the text
  kDetail = 6,              // DetailMessage, then the text
  kGraphNode = 7,           // GraphNodeMessage
  kCodeFile = 8,            // CodeFileMessage, then the name
  kStack = 9,               // StackMessage, then the frames, innermost first
  kLaunch = 10,             // LaunchMessage
  kStackCopy = 11,          // StackCopyMessage, then the bytes at its `sp`
  kOtherCode = 12,          // OtherCodeMessage
  kNvtx = 13,               // NvtxMessage, then the text, then the payload
  kSwitch = 14,             // SwitchMessage
  kPythonCode = 15,         // PythonCodeMessage, then its texts
  kPythonStack = 16,        // PythonStackMessage, then the frames
  kCodeFilesComplete = 17,  // CodeFilesCompleteMessage
  kCodeFileGone = 18,       // CodeFileGoneMessage
  kNvtxSchemaEntry = 19,    // NvtxSchemaEntryMessage, then the text
  kGpuSampling = 20,        // GpuSamplingMessage
  kGpuSamples = 21,         // GpuSamplesMessage, then reason_count of ReasonSamples
  kGpuFunction = 22,        // GpuFunctionMessage, then the name
  kStallReason = 23,        // StallReasonMessage, then the name
  kCubin = 24,              // CubinMessage, then a piece of it
  kGpuClaim = 25,           // GpuClaimMessage
  kBlock = 26,              // BlockMessage
};

// Every message begins with it, at a multiple of 8 bytes, and fills a multiple of 8 bytes.
struct MessageHeader {
  std::atomic<uint32_t> size_and_state;  // bytes with this header, or'ed with kReady
  MessageKind kind;
};

struct ActivityMessage {
  MessageHeader header;
  uint32_t name_id;            // the record's name, 0: it has none. Its pointer in the record is 0
  uint32_t record_size_bytes;  // as CUPTI laid the record out
};

// Defines `name_id` for the rest of this ring. Ids count from 1.
struct NameMessage {
  MessageHeader header;
  uint32_t name_id;
  uint32_t text_bytes;
};

struct ApiCallMessage {
  MessageHeader header;
  uint32_t domain;
  uint32_t callback_id;
  uint32_t correlation_id;
  uint32_t tid;
  uint64_t start_ns;  // CLOCK_MONOTONIC
  uint64_t end_ns;
  int32_t return_value;
  uint32_t graph_nodes;  // made inside the call
};

struct GraphNodeMessage {
  MessageHeader header;
  uint64_t time_ns;  // CLOCK_MONOTONIC
  uint64_t node_id;
  uint64_t original_node_id;  // 0: none
  uint32_t graph_id;
  uint32_t node_type;  // CUgraphNodeType
  uint32_t change;     // values of GraphNodeChange (format/gpu_events.h)
  uint32_t tid;
  uint32_t correlation_id;  // of the watched call that the thread is in, 0: none
  uint32_t reserved;
};

struct ClockPairMessage {
  MessageHeader header;
  uint64_t before_ns;  // CLOCK_MONOTONIC
  uint64_t cupti_ns;   // cuptiGetTimestamp
  uint64_t after_ns;   // CLOCK_MONOTONIC
};

struct CallbackNameMessage {
  MessageHeader header;
  uint32_t domain;
  uint32_t callback_id;
  uint32_t text_bytes;
  uint32_t reserved;
};

// As in format/events.h.
enum class NvtxKind : uint8_t {
  kMark = 0,
  kPush = 1,
  kPop = 2,
  kStart = 3,
  kEnd = 4,
  kDomainName = 5,
  kCategoryName = 6,
  kThreadName = 7,
};

struct NvtxMessage {
  MessageHeader header;
  uint64_t time_ns;  // CLOCK_MONOTONIC
  uint64_t range;
  uint64_t payload;
  uint32_t tid;
  uint32_t domain;
  uint32_t category;
  uint32_t color;
  uint32_t text_bytes;
  NvtxKind kind;
  uint8_t payload_type;  // as NVTX counts them, or kPayloadOfSchema
  uint16_t reserved;
  uint32_t payload_bytes;  // after the text, of kPayloadOfSchema
  uint64_t schema;         // likewise
};
inline constexpr uint8_t kPayloadOfSchema = 7;

// A field of the payloads of a schema, or a value of an enumeration, which is a type of fields.
struct NvtxSchemaEntryMessage {
  MessageHeader header;
  uint64_t schema;
  uint64_t type;          // of the field, as NVTX counts them, or another schema
  uint64_t flags;         // NVTX_PAYLOAD_ENTRY_FLAG_...
  uint64_t offset_bytes;  // 0: after the field before
  uint64_t array_length;
  uint64_t value;       // of an enumeration
  uint64_t size_bytes;  // of a payload or an enumeration; 0: not known
  uint32_t domain;
  uint32_t entry;  // its number, from 0
  uint32_t text_bytes;
  uint32_t is_enumeration;
};

// A capture range of the program has begun, or its last one has ended.
struct SwitchMessage {
  MessageHeader header;
  uint64_t time_ns;  // CLOCK_MONOTONIC
  uint32_t is_open;
  uint32_t reserved;
};

// The library wants to sample a GPU and waits for RingHeader::claim_answer. One program at a time
// may: in a second one all of CUPTI fails from then on (13.0), kernel records too.
struct GpuClaimMessage {
  MessageHeader header;
  uint8_t uuid[16];
  uint32_t number;  // from 1
  uint32_t reserved;
};

// Samples of a context's program counters were fetched.
struct GpuSamplingMessage {
  MessageHeader header;
  uint64_t time_ns;   // CLOCK_MONOTONIC
  uint64_t since_ns;  // of the fetch before
  uint32_t context_id;
  uint32_t device_id;
  uint64_t period_cycles;
  uint64_t buffer_bytes;
  uint64_t samples;
  uint64_t dropped_samples;
  uint64_t other_samples;
  uint32_t buffer_was_full;  // 1: the samples of some time are lost
  uint32_t reserved;
};

struct ReasonSamples {
  uint32_t reason;
  uint32_t samples;
};
inline constexpr uint32_t kMaxStallReasons = 64;  // CUPTI 13.0 has 40

// Those at one instruction, sent before the GpuSamplingMessage of their fetch.
struct GpuSamplesMessage {
  MessageHeader header;
  uint64_t time_ns;
  uint64_t cubin_crc;
  uint64_t offset;
  uint32_t context_id;
  uint32_t function_index;
  uint32_t reason_count;
  uint32_t reserved;
};

// Defines (cubin_crc, function_index) for the rest of this ring.
struct GpuFunctionMessage {
  MessageHeader header;
  uint64_t cubin_crc;
  uint32_t function_index;
  uint32_t text_bytes;
};

// Defines `reason` in the context for the rest of this ring.
struct StallReasonMessage {
  MessageHeader header;
  uint32_t context_id;
  uint32_t reason;
  uint32_t text_bytes;
  uint32_t reserved;
};

// A piece of a module's code, in ascending order without gaps.
struct CubinMessage {
  MessageHeader header;
  uint64_t cubin_crc;
  uint64_t cubin_bytes;
  uint64_t offset;
  uint32_t piece_bytes;
  uint32_t reserved;
};
inline constexpr uint64_t kMaxCubinBytes = uint64_t{256} << 20;

enum class DetailKind : uint32_t {
  kDormantReason = 1,  // text: one sentence
  kCuptiPath = 2,      // text: the file; `number`: cuptiGetVersion
  kDriverVersion = 3,  // `number`: cuDriverGetVersion
  kNote = 4,           // text: a part that does not work, one sentence; `number`: CUPTI's result
  kMarkerUsed = 5,     // text: why no stacks are taken in the process; the marker is called
  kNotSampled = 6,     // text: why a context's program counters are not sampled
  // `number`: 1 if PyTorch's allocator is followed; text: the function that it calls, or why not.
  kAllocator = 7,
  kTimesOnHost = 8,  // GpuProcess::times_on_host
  // `number`: since when something is unfinished (CLOCK_MONOTONIC), 0 when work ends again. Work
  // without a time after the former had not ended then.
  kHang = 9,
};

struct DetailMessage {
  MessageHeader header;
  DetailKind detail;
  uint32_t text_bytes;
  uint64_t number;
};

}  // namespace xpu::wire

// The marker: an exported function that does nothing. A uprobe on it, placed by xpu-record at one
// of the offsets below, takes the stack of the calling thread. Registers as the System V ABI says.
// `session` tells one recorder's programs from another's: the probe is on the file, so every
// recorder on the machine sees every hit.
extern "C" {
void xpu_launch_marker(uint32_t correlation_id, uint32_t domain_and_callback_id, uint64_t instance,
                       uint64_t session);
}

namespace xpu::wire {

inline constexpr char kMarkerSymbol[] = "xpu_launch_marker";
// nop5, nop10, nop, ret : which of them is cheap to probe depends on the kernel.
inline constexpr uint64_t kMarkerOffsets[] = {0, 5, 15};
inline constexpr uint32_t kDomainShift = 28;  // domain_and_callback_id = domain << 28 | callback id
// In place of CUPTI's domains: the stack is of a block of an allocator (wire_stacks.h: Block).
inline constexpr uint32_t kDomainAllocator = 15;

}  // namespace xpu::wire
