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
#include <vector>

#include "format/gpu_events.h"
#include "format/stack.h"

namespace xpu {

// ---- the recording -----------------------------------------------------------------------------

// How the CPU stacks of launches were taken. Values are stored in the file.
enum class LaunchStackSource : uint8_t {
  kUnknown = 0,  // by a recorder before 0.1.0
  kNone = 1,
  kMarker = 2,     // LaunchStack: at the injected library's marker
  kProbes = 3,     // ProbeHit: at functions of the CUDA libraries, nothing injected
  kInProcess = 4,  // LaunchStack: by the injected library itself
};

// How user stacks were unwound. Values are stored in the file.
enum class CallGraph : uint8_t {
  kUnknown = 0,
  kFramePointers = 1,  // by the kernel's walker
  kTables = 2,         // by unwind tables, frame pointers where there are none
};

// What a replay of a CUDA graph is recorded as. Values are stored in the file.
enum class GraphTrace : uint8_t {
  kUnknown = 0,
  kGraph = 1,  // one GraphLaunch
  kNode = 2,   // a Kernel, Memcpy or Memset per node
};

// What is kept of symbols. Values are stored in the file.
enum class SymbolDetail : uint8_t {
  kUnknown = 0,
  kNone = 1,
  kNames = 2,  // of the functions that occur in stacks
  kLines = 3,  // also their source lines and what was inlined into them
};

// Once, first.
struct RecordingInfo {
  // CLOCK_MONOTONIC when the recording was armed, of later parts when the part began
  uint64_t start_ns = 0;
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
  LaunchStackSource launch_stacks = LaunchStackSource::kUnknown;
  GraphTrace graph_trace = GraphTrace::kUnknown;
  CallGraph call_graph = CallGraph::kUnknown;
  SymbolDetail symbols = SymbolDetail::kUnknown;
  uint64_t recording = 0;  // drawn at random, the same in all parts; 0: by a recorder before 0.1.0
  uint32_t part = 0;       // of a recording that is cut into several captures, from 1; 0: the whole
};

// Once, last; absent when the recorder was killed.
struct RecordingEnd {
  uint64_t time_ns = 0;
  uint32_t target_pid = 0;
  int32_t wait_status = 0;    // the target's status as waitpid gives it
  bool is_continued = false;  // the part ends here, the recording goes on in the next one
};

// The recording was paused or goes on (`--delay`, a signal, a range of the program's). What happens
// while it is paused is not in the capture.
struct RecordingSwitch {
  uint64_t time_ns = 0;
  bool is_on = false;
  StringId cause;  // "SIGUSR2", "cudaProfilerStart"
};

// A source of CPU samples: a clock or another perf event.
struct SampleSource {
  uint32_t source = 0;        // CpuSample::source; from 1
  StringId name;              // "cpu-clock"
  uint64_t frequency_hz = 0;  // asked for; 0: a sample every `period`
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

// A part of the symbols of a file that occurs in stacks. The bytes of the parts 0 to part_count -
// 1, one behind the other, are an ELF image that keeps the file's build-id, its loadable segments,
// and of its symbols those that cover an address of a recorded stack. A file is (path, build_id).
// Of several slices of one file, as the parts of a recording have, all count: an address that two
// of them cover is named by the last.
struct SymbolSlice {
  StringId path;      // as in Mapping
  StringId build_id;  // as in Mapping
  SymbolDetail detail = SymbolDetail::kUnknown;
  uint32_t part = 0;
  uint32_t part_count = 0;
  StringId bytes;  // at most kMaxStringBytes
};

// Names code that no file holds: made by a compiler in the running program. Only ranges that
// contain an address of a recorded stack.
struct GeneratedSymbol {
  uint64_t time_ns = 0;  // from then on; 0: it is not known when
  uint32_t pid = 0;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  StringId name;
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
  uint64_t weight = 0;  // in the source's unit; 0: its period
  // What the interpreter was running: frames of FrameKind::kPython alone. 0: not in Python.
  StackId python_stack;
};

// ---- probes ------------------------------------------------------------------------------------

// Values are stored in the file.
enum class ProbePurpose : uint8_t {
  kUser = 0,           // asked for by name
  kRuntimeLaunch = 1,  // a function of libcudart that makes the GPU work
  kDriverLaunch = 2,   // a function of libcuda that does
};

// Values are stored in the file.
enum class ProbeKind : uint8_t {
  kUprobe = 0,
  kUretprobe = 1,
  kKprobe = 2,
  kKretprobe = 3,
  kTracepoint = 4,
};

// Defines ProbeHit::probe.
struct Probe {
  uint32_t probe = 0;  // from 1
  ProbePurpose purpose = ProbePurpose::kUser;
  StringId function;  // "cudaLaunchKernel", of a tracepoint "sched:sched_switch"
  StringId path;      // the file that it is in; empty: the kernel
  ProbeKind kind = ProbeKind::kUprobe;
  uint64_t offset = 0;  // from the begin of the function
};

// A thread passed a probe: it entered the function, or returned from it.
struct ProbeHit {
  uint64_t time_ns = 0;
  uint32_t probe = 0;  // Probe::probe
  bool is_return = false;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t cpu = 0;
  // Of a launch: the kernel as the caller names it, the address of its host function (runtime) or a
  // CUfunction (driver); 0: not known.
  uint64_t kernel = 0;
  int32_t return_value = 0;  // at the return
  // At the entry, without the function itself: the innermost frame is its caller's, and like the
  // others a return address.
  StackId stack;
  uint8_t stack_flags = 0;
  StackId python_stack;  // as of a CpuSample
};

// ---- Python ------------------------------------------------------------------------------------

// Defines PythonFrame::code: a function, the body of a class or module, a comprehension.
struct PythonCode {
  uint32_t code = 0;  // from 1; the same function of several processes may have several
  StringId name;      // qualified: "Linear.forward"
  StringId path;      // as the interpreter has it: "/app/model.py", "<string>"
  uint32_t first_line = 0;
  StringId line_table;   // co_linetable as it is from Python 3.11 on; none: not readable
  uint32_t version = 0;  // of the interpreter, major << 8 | minor
};

// ---- NVTX: what the program says of itself
// -------------------------------------------------------

// Values are stored in the file.
enum class NvtxKind : uint8_t {
  kMark = 0,          // one moment
  kPush = 1,          // begins a range of the thread, inside those it has begun in the domain
  kPop = 2,           // ends the thread's innermost
  kStart = 3,         // begins a range that any thread may end, by `range`
  kEnd = 4,           // ends it
  kDomainName = 5,    // `text` names `domain`
  kCategoryName = 6,  // `text` names `category` of `domain`
  kThreadName = 7,    // `text` names thread `range`, as the program numbers it
};

enum class NvtxPayload : uint8_t {
  kNone = 0,
  kUint64 = 1,
  kInt64 = 2,
  kDouble = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat = 6,
};

// One call of NVTX.
struct NvtxEvent {
  InstanceId instance;
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  NvtxKind kind = NvtxKind::kMark;
  uint32_t tid = 0;     // as the program sees it (ApiCall::tid)
  uint32_t domain = 0;  // 0: the default one
  uint64_t range = 0;   // of kStart and kEnd: unique in the process
  StringId text;
  uint32_t category = 0;  // 0: none
  uint32_t color = 0;     // 0xAARRGGBB, 0: none
  NvtxPayload payload_type = NvtxPayload::kNone;
  uint64_t payload = 0;  // the bits, in the lower part
};

// ---- a part of a capture ----------------------------------------------------------------------

// Every kind of event, one list each, in the order in which they were written. Readers ask for
// order by time, writers do not promise it.
struct EventBatch {
  // Not news: what was written before, in this capture or an earlier part of the recording, and
  // what is needed to read this one alone.
  bool restated = false;

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
  std::vector<GraphNode> graph_nodes;
  std::vector<Probe> probes;
  std::vector<ProbeHit> probe_hits;
  std::vector<SymbolSlice> symbol_slices;
  std::vector<GeneratedSymbol> generated_symbols;
  std::vector<NvtxEvent> nvtx_events;
  std::vector<MemoryOperation> memory_operations;
  std::vector<RecordingSwitch> recording_switches;
  std::vector<PythonCode> python_codes;
  std::vector<JitOperation> jit_operations;
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
  visit("graph_nodes", batch.graph_nodes);
  visit("probes", batch.probes);
  visit("probe_hits", batch.probe_hits);
  visit("symbol_slices", batch.symbol_slices);
  visit("generated_symbols", batch.generated_symbols);
  visit("nvtx_events", batch.nvtx_events);
  visit("memory_operations", batch.memory_operations);
  visit("recording_switches", batch.recording_switches);
  visit("python_codes", batch.python_codes);
  visit("jit_operations", batch.jit_operations);
}

}  // namespace xpu
