// Door 3: what a capture holds, as plain structs. The recorder fills them, the writer turns them
// into columns, the reader turns columns back into them, the report works on them. The column of
// each field is in capture.capnp, the bytes around the columns are in FORMAT.md.
//
// Conventions
//   *_ns         nanoseconds. `time_ns` and everything not marked otherwise is CLOCK_MONOTONIC of
//                the recording host; fields documented "CUPTI clock" are as CUPTI gave them, and
//                ClockPair relates the two.
//   pid, tid     as the recorder's pid namespace sees them. A pid is not an identity: exec keeps it
//                and the kernel reuses it. Whoever interprets resolves (pid, time).
//   instance     the 64-bit random number that one loaded injected library drew: the identity of a
//                process on the GPU side.
//   0            "none" for every id.
// A field that a CUPTI version does not deliver is 0; `record_size_bytes` says which version it
// was.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "format/base/ids.h"

namespace xpu {

using StringId = Id<struct StringTag, uint32_t>;  // interned text or bytes
using StackId = Id<struct StackTag, uint32_t>;    // a node of the stack trie: its path is the stack
using InstanceId = Id<struct InstanceTag, uint64_t>;

// ---- stacks ------------------------------------------------------------------------------------

// Values are stored in the file: add, never renumber.
enum class FrameKind : uint8_t {
  kUser = 0,    // address in the process that the event belongs to, at the event's time
  kKernel = 1,  // address in the recorded kernel
};

struct Frame {
  FrameKind kind = FrameKind::kUser;
  uint64_t address =
      0;  // as sampled: an instruction for the innermost frame, else a return address
  friend bool operator==(const Frame&, const Frame&) = default;
};

// One node of the trie; a stack is the path from its node to the root, innermost frame first.
struct StackNode {
  StackId caller;  // 0: this is the outermost frame
  Frame frame;
};

// How a stack was taken. Bits of `stack_flags`.
inline constexpr uint8_t kStackFramePointers = 1 << 0;  // user frames found by frame pointers
inline constexpr uint8_t kStackTruncated = 1 << 1;      // the walk ended at a limit of ours
inline constexpr uint8_t kStackUserFailed = 1 << 2;     // no user frames could be read
inline constexpr uint8_t kStackKernelFailed = 1 << 3;   // no kernel frames although in the kernel

// ---- the recording -----------------------------------------------------------------------------

// Once, first.
struct RecordingInfo {
  uint64_t start_ns = 0;           // CLOCK_MONOTONIC when the recording was armed
  uint64_t start_realtime_ns = 0;  // CLOCK_REALTIME at the same instant
  uint32_t recorder_pid = 0;
  uint32_t cpu_count = 0;
  StringId recorder_version;
  StringId host_name;
  StringId kernel_release;
  StringId machine;       // "x86_64"
  StringId command_line;  // the target's arguments, each quoted for a shell where needed
  StringId settings;      // the recorder's own arguments, likewise
  StringId working_directory;
};

// Once, last; absent when the recorder was killed.
struct RecordingEnd {
  uint64_t time_ns = 0;
  uint32_t target_pid = 0;
  int32_t wait_status = 0;  // the target's status as waitpid gives it
};

// A source of CPU samples: `-F` of a clock, later other perf events.
struct SampleSource {
  uint32_t source = 0;        // CpuSample::source; from 1
  StringId name;              // "cpu-clock"
  uint64_t frequency_hz = 0;  // asked for
  uint64_t period = 0;        // weight of one sample in `unit`
  StringId unit;              // "ns", "events"
};

// What was lost, and how much. The ledger of a capture is the sum over these per name.
struct Loss {
  uint64_t time_ns = 0;
  StringId name;        // LossKind's name (format/losses.h): unknown names of newer files print too
  uint64_t count = 0;   // events since the last record of the same name, pid and instance
  uint32_t pid = 0;     // 0: not of one process
  InstanceId instance;  // 0: not of one instance
  StringId detail;      // free text, for instance the errno of a refusal
};

// ---- processes ---------------------------------------------------------------------------------

enum class ProcessEventKind : uint8_t {
  kExisting = 0,  // was there when the recording began (or restated, see `restated`)
  kFork = 1,      // pid differs from parent_pid: a process; equal: a thread `tid` of it
  kExec = 2,      // the address space is new: mappings before it are gone; `name` is the new comm
  kName = 3,      // a thread was renamed
  kExit = 4,      // tid == pid: the whole process, else a thread
};

struct ProcessEvent {
  uint64_t time_ns = 0;
  ProcessEventKind kind = ProcessEventKind::kExisting;
  bool restated = false;  // repeated so that this part of the file can be read alone
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t parent_pid = 0;
  uint32_t parent_tid = 0;
  StringId name;  // comm, for kExisting, kExec, kName
};

// A mapping of a file (or anonymous executable memory) into a process.
struct Mapping {
  uint64_t time_ns = 0;
  bool restated = false;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t start_address = 0;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  uint32_t protection = 0;  // PROT_*
  uint32_t flags = 0;       // MAP_*
  StringId path;      // as the process sees it; "[vdso]", "//anon", ... as the kernel names it
  StringId build_id;  // raw bytes; none: unknown
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
};

// Names a range of kernel text. Only ranges that contain an address of a recorded stack.
struct KernelSymbol {
  uint64_t address = 0;
  uint64_t size_bytes = 0;  // to the next symbol
  StringId name;
  StringId module;  // none: the kernel proper
};

// ---- CPU ---------------------------------------------------------------------------------------

struct CpuSample {
  uint64_t time_ns = 0;
  uint32_t source = 0;  // SampleSource::source
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t cpu = 0;
  StackId stack;  // user frames outermost, kernel frames innermost
  uint8_t stack_flags = 0;
};

// ---- CUDA processes ----------------------------------------------------------------------------

// What became of the injected library in a process. Values are stored in the file.
enum class InjectState : uint8_t {
  kConnected = 0,  // loaded, nothing known of CUPTI yet
  kActive = 1,     // recording
  kDormant = 2,    // gave up; `detail` says why, the program runs as without us
  kFinished = 3,   // flushed at exit
};

struct GpuProcess {
  uint64_t time_ns = 0;
  InstanceId instance;
  InjectState state = InjectState::kConnected;
  uint32_t pid = 0;
  uint32_t namespace_pid = 0;   // as the program sees itself
  uint32_t cupti_version = 0;   // cuptiGetVersion, 0: unknown
  uint32_t driver_version = 0;  // cuDriverGetVersion, 0: unknown
  StringId cupti_path;
  StringId detail;
};

enum class ClockKind : uint8_t { kCupti = 0 };

// The same instant on two clocks: read monotonic, other, monotonic.
struct ClockPair {
  InstanceId instance;
  ClockKind clock = ClockKind::kCupti;
  uint64_t before_ns = 0;  // CLOCK_MONOTONIC
  uint64_t clock_ns = 0;   // the other clock
  uint64_t after_ns = 0;   // CLOCK_MONOTONIC
};

enum class ApiDomain : uint8_t { kDriver = 1, kRuntime = 2 };  // CUPTI_CB_DOMAIN_*_API

// The name that CUPTI gives a callback id; ids change meaning between CUDA versions.
struct CallbackName {
  InstanceId instance;
  ApiDomain domain = ApiDomain::kDriver;
  uint32_t callback_id = 0;
  StringId name;
};

// One call of the CUDA API, from our own callback: the outermost one of a correlation id, so a
// runtime call and the driver call inside it are one event, the runtime's.
struct ApiCall {
  InstanceId instance;
  ApiDomain domain = ApiDomain::kDriver;
  uint32_t callback_id = 0;
  uint32_t correlation_id = 0;
  uint32_t tid = 0;  // as the program's namespace sees it
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  int32_t return_value = 0;
};

// The CPU stack at the entry of the call with this correlation id.
struct LaunchStack {
  InstanceId instance;
  uint32_t correlation_id = 0;
  ApiDomain domain = ApiDomain::kDriver;
  uint32_t callback_id = 0;
  uint64_t time_ns = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t cpu = 0;
  StackId stack;
  uint8_t stack_flags = 0;
};

// ---- GPU activity: CUPTI's records, field by field. Times in CUPTI clock.
// ------------------------
//
// `tail`: the bytes of the record behind the last field that this version of xpu knows, interned; a
// newer CUPTI loses nothing. Pointers, padding and reserved members are left out.

struct Kernel {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  uint64_t start_ns = 0;  // 0 with end_ns 0: CUPTI could not time it
  uint64_t end_ns = 0;
  uint64_t completed_ns = 0;
  uint64_t queued_ns = 0;
  uint64_t submitted_ns = 0;
  uint32_t correlation_id = 0;
  uint32_t device_id = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t channel_id = 0;
  uint32_t channel_type = 0;
  uint32_t graph_id = 0;
  uint64_t graph_node_id = 0;
  int64_t grid_id = 0;
  StringId name;  // mangled, as CUPTI gives it
  int32_t grid_x = 0, grid_y = 0, grid_z = 0;
  int32_t block_x = 0, block_y = 0, block_z = 0;
  uint32_t cluster_x = 0, cluster_y = 0, cluster_z = 0;
  uint32_t cluster_scheduling_policy = 0;
  uint32_t max_potential_cluster_size = 0;
  uint32_t max_active_clusters = 0;
  uint16_t registers_per_thread = 0;
  int32_t static_shared_memory_bytes = 0;
  int32_t dynamic_shared_memory_bytes = 0;
  uint32_t shared_memory_executed_bytes = 0;
  uint32_t local_memory_per_thread_bytes = 0;
  uint64_t local_memory_total_bytes = 0;
  uint8_t cache_config = 0;  // requested in the low 4 bits, executed in the high 4
  uint8_t shared_memory_config = 0;
  uint32_t partitioned_global_cache_requested = 0;
  uint32_t partitioned_global_cache_executed = 0;
  uint32_t shared_memory_limit_config = 0;
  uint8_t shared_memory_carveout_is_requested = 0;
  uint8_t shared_memory_carveout_requested = 0;
  uint8_t launch_type = 0;
  uint8_t is_device_launched = 0;
  StringId tail;
};

// MEMCPY and MEMCPY2 (peer to peer).
struct Memcpy {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  bool peer_to_peer = false;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t size_bytes = 0;
  uint32_t correlation_id = 0;
  uint32_t runtime_correlation_id = 0;
  uint32_t device_id = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t source_device_id = 0, source_context_id = 0;            // peer to peer only
  uint32_t destination_device_id = 0, destination_context_id = 0;  // peer to peer only
  uint32_t channel_id = 0;
  uint32_t channel_type = 0;
  uint32_t graph_id = 0;
  uint64_t graph_node_id = 0;
  uint64_t copy_count = 0;
  uint8_t copy_kind = 0;         // CUpti_ActivityMemcpyKind
  uint8_t source_kind = 0;       // CUpti_ActivityMemoryKind
  uint8_t destination_kind = 0;  // CUpti_ActivityMemoryKind
  uint8_t flags = 0;
  uint8_t is_device_launched = 0;
  StringId tail;
};

struct Memset {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t size_bytes = 0;
  uint32_t value = 0;
  uint32_t correlation_id = 0;
  uint32_t device_id = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t channel_id = 0;
  uint32_t channel_type = 0;
  uint32_t graph_id = 0;
  uint64_t graph_node_id = 0;
  uint16_t flags = 0;
  uint16_t memory_kind = 0;
  uint8_t is_device_launched = 0;
  StringId tail;
};

struct Synchronization {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t type = 0;  // CUpti_ActivitySynchronizationType
  uint32_t correlation_id = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t event_id = 0;
  uint64_t event_sync_id = 0;
  uint32_t return_value = 0;
  StringId tail;
};

// GRAPH_TRACE: one replay of a CUDA graph.
struct GraphLaunch {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t correlation_id = 0;
  uint32_t device_id = 0;
  uint32_t context_id = 0;
  uint32_t stream_id = 0;
  uint32_t graph_id = 0;
  uint32_t end_device_id = 0;
  uint32_t end_context_id = 0;
  StringId tail;
};

// Time that the driver or CUPTI spent on itself: lazy loading, instrumentation, full buffers.
struct Overhead {
  InstanceId instance;
  uint16_t record_size_bytes = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t overhead_kind = 0;                                  // CUpti_ActivityOverheadKind
  uint32_t object_kind = 0;                                    // CUpti_ActivityObjectKind
  uint32_t object_id_0 = 0, object_id_1 = 0, object_id_2 = 0;  // the union of ids, word by word
  uint32_t correlation_id = 0;
  StringId tail;
};

// The parts of the DEVICE record that reports use; the whole record is a RawActivity beside it.
struct Device {
  InstanceId instance;
  uint32_t device_id = 0;
  StringId name;
  StringId uuid;  // 16 bytes
  uint32_t compute_capability_major = 0, compute_capability_minor = 0;
  uint32_t multiprocessor_count = 0;
  uint64_t global_memory_bytes = 0;
};

// A record of a kind that this version does not take apart (DEVICE, CONTEXT, ... included).
struct RawActivity {
  InstanceId instance;
  uint32_t kind = 0;  // CUpti_ActivityKind
  StringId bytes;     // the record as CUPTI laid it out, pointers zeroed where we know them
  StringId name;      // the text of its name pointer, where it has one
};

// ---- a part of a capture ----------------------------------------------------------------------

// Every kind of event, one list each, in the order in which they were written. Readers ask for
// order by time, writers do not promise it.
struct EventBatch {
  std::vector<RecordingInfo> recording_info;
  std::vector<RecordingEnd> recording_end;
  std::vector<SampleSource> sample_sources;
  std::vector<Loss> losses;
  std::vector<ProcessEvent> process_events;
  std::vector<Mapping> mappings;
  std::vector<KernelSymbol> kernel_symbols;
  std::vector<CpuSample> cpu_samples;
  std::vector<GpuProcess> gpu_processes;
  std::vector<ClockPair> clock_pairs;
  std::vector<CallbackName> callback_names;
  std::vector<ApiCall> api_calls;
  std::vector<LaunchStack> launch_stacks;
  std::vector<Kernel> kernels;
  std::vector<Memcpy> memcpys;
  std::vector<Memset> memsets;
  std::vector<Synchronization> synchronizations;
  std::vector<GraphLaunch> graph_launches;
  std::vector<Overhead> overheads;
  std::vector<Device> devices;
  std::vector<RawActivity> raw_activities;
};

// Calls visit(name, list) for each list of the batch; `name` is the list's member name.
template <typename Batch, typename Visit>
void VisitLists(Batch& batch, Visit&& visit) {
  visit("recording_info", batch.recording_info);
  visit("recording_end", batch.recording_end);
  visit("sample_sources", batch.sample_sources);
  visit("losses", batch.losses);
  visit("process_events", batch.process_events);
  visit("mappings", batch.mappings);
  visit("kernel_symbols", batch.kernel_symbols);
  visit("cpu_samples", batch.cpu_samples);
  visit("gpu_processes", batch.gpu_processes);
  visit("clock_pairs", batch.clock_pairs);
  visit("callback_names", batch.callback_names);
  visit("api_calls", batch.api_calls);
  visit("launch_stacks", batch.launch_stacks);
  visit("kernels", batch.kernels);
  visit("memcpys", batch.memcpys);
  visit("memsets", batch.memsets);
  visit("synchronizations", batch.synchronizations);
  visit("graph_launches", batch.graph_launches);
  visit("overheads", batch.overheads);
  visit("devices", batch.devices);
  visit("raw_activities", batch.raw_activities);
}

}  // namespace xpu
