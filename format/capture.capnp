# The records of a capture: one Block is the payload of one block of the file (FORMAT.md has the
# bytes around it). This is the one place that describes them: the structs of format/events.h, the
# columns of the file, what `xpu-report --dump` prints and the tables of xpu-capture(5) are made
# from it (record_compiler.cpp).
#
# An event type is a struct of columns, one column per field. A new kind of event is a struct here
# and a list at the end of Events. New fields, lists and enumerants are added at the end, never
# renumbered, never removed.
#
# Conventions
#   Names        A name is camelCase here, and snake_case in C++, in `--dump` and in comments.
#   Times        Nanoseconds, `Ns` at the end of the name; $time says on which clock: CLOCK_MONOTONIC
#                of the recording host, CLOCK_REALTIME, or CUPTI's, as CUPTI gave them; a ClockPair
#                relates the two.
#   pid, tid     As the recorder's pid namespace sees them. A pid is not an identity: exec keeps it
#                and the kernel reuses it. Whoever interprets resolves (pid, time).
#   instance     The 64-bit random number that one loaded injected library drew: the identity of a
#                process on the GPU side.
#   0            "none" for every id.
#   Comments     behind a declaration become its text in C++ and in the manual.
@0xdc14a152af7e858c;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("xpu::schema");

# ---- how fields are described --------------------------------------------------------------------

# The C++ type of a field. A number, signed or not:
annotation u8 @0x9c3d5c2b8e1f7a01 (field) :Void;
annotation u16 @0x9c3d5c2b8e1f7a02 (field) :Void;
annotation u32 @0x9c3d5c2b8e1f7a03 (field) :Void;
annotation u64 @0x9c3d5c2b8e1f7a04 (field) :Void;
annotation i32 @0x9c3d5c2b8e1f7a05 (field) :Void;
annotation i64 @0x9c3d5c2b8e1f7a06 (field) :Void;
annotation flag @0x9c3d5c2b8e1f7a07 (field) :Void;       # bool
annotation enumeration @0x9c3d5c2b8e1f7a08 (field) :Text;  # the name of an enum of this file
# The id of something that the file defines once:
annotation text @0x9c3d5c2b8e1f7a09 (field) :Void;       # StringId
annotation bytes @0x9c3d5c2b8e1f7a0a (field) :Void;      # StringId, of what is not text
annotation stack @0x9c3d5c2b8e1f7a0b (field) :Void;      # StackId
annotation instance @0x9c3d5c2b8e1f7a0c (field) :Void;   # InstanceId

# What a number is counted in, where it is not nanoseconds.
annotation unit @0x9c3d5c2b8e1f7a0d (field) :Text;
# That it is a time, and on which clock.
annotation time @0x9c3d5c2b8e1f7a0e (field) :Clock;
# What it stands for.
annotation is @0x9c3d5c2b8e1f7a0f (field) :Meaning;

enum Clock {
  monotonic @0;
  realtime @1;
  cupti @2;
}

enum Meaning {
  number @0;
  process @1;               # of a process or thread
  definition @2;            # of another event of the capture: defines it or refers to it
  address @3;               # shown in hexadecimal
  stackFlags @4;            # StackFlag's bits (format/stack.h)
}

# ---- the block -----------------------------------------------------------------------------------

# `count` values of 64 bits (narrower and signed ones extended, an enum its number, a Bool 0 or 1).
#
#   value[i] = origin[i] + base + offset[i]                                     modulo 2^64
#
# where byte k of offset[i] is planes[k][i]; a plane that is empty or not there is all zeros. So
# a column of equal values has no planes, and a column of zeros is not there at all (null).
struct Column {
  base @0 :UInt64;
  planes @1 :List(Data);    # at most 8; each is empty or has one byte per value
  origin @2 :Origin;
  first @3 :UInt64;         # value[0] of an `earlierRow` column, whose base and offset begin at [1]

  enum Origin {
    zero @0;                # 0
    earlierRow @1;          # value[i-1]
    columnBefore @2;        # value[i] of the column before this one in the same struct
  }
}

struct Block {
  # Definitions first: the events of this block and of later ones refer to them.
  strings @0 :Strings;
  stacks @1 :Stacks;
  # A column of instances holds 1 + the index in this list, 0 for none.
  instances @2 :List(UInt64);
  events @3 :Events;
  # The events repeat earlier ones of this capture or of an earlier part of the recording.
  restated @4 :Bool;
}

# Defines the ids firstId, firstId + 1, ...
struct Strings {
  count @0 :UInt32;
  firstId @1 :UInt32;
  lengths @2 :Column;       # in bytes
  bytes @3 :Data;           # one after the other
}

# Defines the ids firstId, firstId + 1, ...: nodes of a trie whose paths to the root are stacks.
struct Stacks {
  count @0 :UInt32;
  firstId @1 :UInt32;
  callerDistance @2 :Column;  # own id - id of the caller's node; 0: the outermost frame
  frameKind @3 :Column;       # FrameKind
  address @4 :Column;
}

struct Events {
  # Every kind of event, one list each, in the order in which they were written. Readers ask for
  # order by time, writers do not promise it.
  recordingInfo @0 :RecordingInfo;
  recordingEnd @1 :RecordingEnd;
  sampleSources @2 :SampleSource;
  losses @3 :Loss;
  processEvents @4 :ProcessEvent;
  mappings @5 :Mapping;
  kernelSymbols @6 :KernelSymbol;
  cpuSamples @7 :CpuSample;
  gpuProcesses @8 :GpuProcess;
  clockPairs @9 :ClockPair;
  callbackNames @10 :CallbackName;
  apiCalls @11 :ApiCall;
  launchStacks @12 :LaunchStack;
  kernels @13 :Kernel;
  memcpys @14 :Memcpy;
  memsets @15 :Memset;
  synchronizations @16 :Synchronization;
  graphLaunches @17 :GraphLaunch;
  overheads @18 :Overhead;
  devices @19 :Device;
  rawActivities @20 :RawActivity;
  graphNodes @21 :GraphNode;
  probes @22 :Probe;
  probeHits @23 :ProbeHit;
  symbolSlices @24 :SymbolSlice;
  generatedSymbols @25 :GeneratedSymbol;
  nvtxEvents @26 :NvtxEvent;
  memoryOperations @27 :MemoryOperation;
  recordingSwitches @28 :RecordingSwitch;
  pythonCodes @29 :PythonCode;
  jitOperations @30 :JitOperation;
}

# ---- the recording -------------------------------------------------------------------------------

enum LaunchStackSource {
  # How the CPU stacks of launches were taken.
  unknown @0;  # by a recorder before 0.1.0
  none @1;
  marker @2;  # LaunchStack: at the injected library's marker
  probes @3;  # ProbeHit: at functions of the CUDA libraries, nothing injected
  inProcess @4;  # LaunchStack: by the injected library itself
}

enum GraphTrace {
  # What a replay of a CUDA graph is recorded as.
  unknown @0;
  graph @1;  # one GraphLaunch
  node @2;  # a Kernel, Memcpy or Memset per node
}

enum CallGraph {
  # How user stacks were unwound.
  unknown @0;
  framePointers @1;  # by the kernel's walker
  tables @2;  # by unwind tables, frame pointers where there are none
}

enum SymbolDetail {
  # What is kept of symbols.
  unknown @0;
  none @1;
  names @2;  # of the functions that occur in stacks
  lines @3;  # also their source lines and what was inlined into them
}

struct RecordingInfo {
  # Once, first.
  rows @0 :UInt32;
  startNs @1 :Column $u64 $time(monotonic);
    # when the recording was armed, of later parts when the part began
  startRealtimeNs @2 :Column $u64 $time(realtime);  # CLOCK_REALTIME at the same instant
  recorderPid @3 :Column $u32 $is(process);
  cpuCount @4 :Column $u32;
  recorderVersion @5 :Column $text;
  hostName @6 :Column $text;
  kernelRelease @7 :Column $text;
  machine @8 :Column $text;  # "x86_64"
  commandLine @9 :Column $text;  # the target's arguments, each quoted for a shell where needed
  settings @10 :Column $text;  # the recorder's own arguments, likewise
  workingDirectory @11 :Column $text;
  launchStacks @12 :Column $enumeration("LaunchStackSource");
  graphTrace @13 :Column $enumeration("GraphTrace");
  callGraph @14 :Column $enumeration("CallGraph");
  symbols @15 :Column $enumeration("SymbolDetail");
  recording @16 :Column $u64;
    # drawn at random, the same in all parts; 0: by a recorder before 0.1.0
  part @17 :Column $u32;  # of a recording that is cut into several captures, from 1; 0: the whole
}

struct RecordingEnd {
  # Once, last; absent when the recorder was killed.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  targetPid @2 :Column $u32 $is(process);
  waitStatus @3 :Column $i32;  # the target's status as waitpid gives it
  isContinued @4 :Column $flag;  # the part ends here, the recording goes on in the next one
}

struct SampleSource {
  # A source of CPU samples: a clock or another perf event.
  rows @0 :UInt32;
  source @1 :Column $u32 $is(definition);  # CpuSample::source; from 1
  name @2 :Column $text;  # "cpu-clock"
  frequencyHz @3 :Column $u64 $unit("Hz");  # asked for; 0: a sample every `period`
  period @4 :Column $u64;  # weight of one sample in `unit`
  unit @5 :Column $text;  # "ns", "events"
}

struct Loss {
  # What was lost, and how much. The ledger of a capture is the sum over these per name.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  name @2 :Column $text;
    # LossKind's name (format/losses.h): unknown names of newer files print too
  count @3 :Column $u64;  # events since the last record of the same name, pid and instance
  pid @4 :Column $u32 $is(process);  # 0: not of one process
  instance @5 :Column $instance;  # 0: not of one instance
  detail @6 :Column $text;  # free text, for instance the errno of a refusal
}

# ---- processes -----------------------------------------------------------------------------------

enum ProcessEventKind {
  existing @0;  # was there when the recording began (or restated, see `restated`)
  fork @1;  # pid differs from parent_pid: a process; equal: a thread `tid` of it
  exec @2;  # the address space is new: mappings before it are gone; `name` is the new comm
  name @3;  # a thread was renamed
  exit @4;  # tid == pid: the whole process, else a thread
}

struct ProcessEvent {
  # A process or a thread began, changed or ended.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  kind @2 :Column $enumeration("ProcessEventKind");
  restated @3 :Column $flag;  # repeated so that this part of the file can be read alone
  pid @4 :Column $u32 $is(process);
  tid @5 :Column $u32 $is(process);
  parentPid @6 :Column $u32 $is(process);
  parentTid @7 :Column $u32 $is(process);
  name @8 :Column $text;  # comm, for existing, exec and name
}

struct Mapping {
  # A mapping of a file (or anonymous executable memory) into a process.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  restated @2 :Column $flag;
  pid @3 :Column $u32 $is(process);
  tid @4 :Column $u32 $is(process);
  startAddress @5 :Column $u64 $is(address);
  sizeBytes @6 :Column $u64 $unit("bytes");
  fileOffset @7 :Column $u64 $is(address);
  protection @8 :Column $u32;  # PROT_*
  flags @9 :Column $u32;  # MAP_*
  path @10 :Column $text;  # as the process sees it; "[vdso]", "//anon", ... as the kernel names it
  buildId @11 :Column $bytes;  # raw bytes; none: unknown
  deviceMajor @12 :Column $u32;
  deviceMinor @13 :Column $u32;
  inode @14 :Column $u64;
}

struct KernelSymbol {
  # Names a range of kernel text. Only ranges that contain an address of a recorded stack.
  rows @0 :UInt32;
  address @1 :Column $u64 $is(address);
  sizeBytes @2 :Column $u64 $unit("bytes");  # to the next symbol
  name @3 :Column $text;
  module @4 :Column $text;  # none: the kernel proper
}

# ---- CPU -----------------------------------------------------------------------------------------

struct CpuSample {
  # Where a thread was when a source of samples fired.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  source @2 :Column $u32 $is(definition);  # SampleSource::source
  pid @3 :Column $u32 $is(process);
  tid @4 :Column $u32 $is(process);
  cpu @5 :Column $u32;
  stack @6 :Column $stack;  # user frames outermost, kernel frames innermost
  stackFlags @7 :Column $u8 $is(stackFlags);
  weight @8 :Column $u64;  # in the source's unit; 0: its period
  pythonStack @9 :Column $stack;
    # What the interpreter was running: frames of FrameKind::kPython alone. 0: not in Python.
}

# ---- CUDA processes ------------------------------------------------------------------------------

enum InjectState {
  # What became of the injected library in a process.
  connected @0;  # loaded, nothing known of CUPTI yet
  active @1;  # recording
  dormant @2;  # gave up; `detail` says why, the program runs as without us
  finished @3;  # flushed at exit
}

struct GpuProcess {
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  instance @2 :Column $instance;
  state @3 :Column $enumeration("InjectState");
  pid @4 :Column $u32 $is(process);
  namespacePid @5 :Column $u32 $is(process);  # as the program sees itself
  cuptiVersion @6 :Column $u32;  # cuptiGetVersion, 0: unknown
  driverVersion @7 :Column $u32;  # cuDriverGetVersion, 0: unknown
  cuptiPath @8 :Column $text;
  detail @9 :Column $text;
}

enum ClockKind {
  cupti @0;
}

struct ClockPair {
  # The same instant on two clocks: read monotonic, other, monotonic.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  clock @2 :Column $enumeration("ClockKind");
  beforeNs @3 :Column $u64 $time(monotonic);
  clockNs @4 :Column $u64 $time(cupti);  # the other clock
  afterNs @5 :Column $u64 $time(monotonic);
}

enum ApiDomain {
  # CUPTI_CB_DOMAIN_*_API
  unknown @0;
  driver @1;
  runtime @2;
}

struct CallbackName {
  # The name that CUPTI gives a callback id; ids change meaning between CUDA versions.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  domain @2 :Column $enumeration("ApiDomain");
  callbackId @3 :Column $u32;
  name @4 :Column $text;
}

struct ApiCall {
  # One call of the CUDA API, from our own callback: the outermost one of a correlation id, so a
  # runtime call and the driver call inside it are one event, the runtime's.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  domain @2 :Column $enumeration("ApiDomain");
  callbackId @3 :Column $u32;
  correlationId @4 :Column $u32;
  tid @5 :Column $u32 $is(process);  # as the program's namespace sees it
  startNs @6 :Column $u64 $time(monotonic);
  endNs @7 :Column $u64 $time(monotonic);
  returnValue @8 :Column $i32;
  graphNodes @9 :Column $u32;
    # Nodes of CUDA graphs that this call made. A launch, copy or set that made one was captured
    # from its stream: the GPU does not run it now, and no record of it comes.
}

struct LaunchStack {
  # The CPU stack at the entry of the call with this correlation id.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  correlationId @2 :Column $u32;
  domain @3 :Column $enumeration("ApiDomain");
  callbackId @4 :Column $u32;
  timeNs @5 :Column $u64 $time(monotonic);
  pid @6 :Column $u32 $is(process);
  tid @7 :Column $u32 $is(process);
  cpu @8 :Column $u32;
  stack @9 :Column $stack;
  stackFlags @10 :Column $u8 $is(stackFlags);
  pythonStack @11 :Column $stack;  # as of a CpuSample
}

# ---- GPU activity: CUPTI's records, field by field -----------------------------------------------
#
# `tail`: the bytes of the record behind the last field that this version of xpu knows, interned; a
# newer CUPTI loses nothing. Pointers, padding and reserved members are left out. A field that a
# CUPTI version does not deliver is 0; `record_size_bytes` says which version it was.

struct Kernel {
  # A kernel ran on the GPU.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  recordSizeBytes @2 :Column $u16 $unit("bytes");
  startNs @3 :Column $u64 $time(cupti);  # 0 with end_ns 0: CUPTI could not time it
  endNs @4 :Column $u64 $time(cupti);
  completedNs @5 :Column $u64 $time(cupti);
  queuedNs @6 :Column $u64 $time(cupti);
  submittedNs @7 :Column $u64 $time(cupti);
  correlationId @8 :Column $u32;
  deviceId @9 :Column $u32;
  contextId @10 :Column $u32;
  streamId @11 :Column $u32;
  channelId @12 :Column $u32;
  channelType @13 :Column $u32;
  graphId @14 :Column $u32;
  graphNodeId @15 :Column $u64;
  gridId @16 :Column $i64;
  name @17 :Column $text;  # mangled, as CUPTI gives it
  gridX @18 :Column $i32;
  gridY @19 :Column $i32;
  gridZ @20 :Column $i32;
  blockX @21 :Column $i32;
  blockY @22 :Column $i32;
  blockZ @23 :Column $i32;
  clusterX @24 :Column $u32;
  clusterY @25 :Column $u32;
  clusterZ @26 :Column $u32;
  clusterSchedulingPolicy @27 :Column $u32;
  maxPotentialClusterSize @28 :Column $u32;
  maxActiveClusters @29 :Column $u32;
  registersPerThread @30 :Column $u16;
  staticSharedMemoryBytes @31 :Column $i32 $unit("bytes");
  dynamicSharedMemoryBytes @32 :Column $i32 $unit("bytes");
  sharedMemoryExecutedBytes @33 :Column $u32 $unit("bytes");
  localMemoryPerThreadBytes @34 :Column $u32 $unit("bytes");
  localMemoryTotalBytes @35 :Column $u64 $unit("bytes");
  cacheConfig @36 :Column $u8;  # requested in the low 4 bits, executed in the high 4
  sharedMemoryConfig @37 :Column $u8;
  partitionedGlobalCacheRequested @38 :Column $u32;
  partitionedGlobalCacheExecuted @39 :Column $u32;
  sharedMemoryLimitConfig @40 :Column $u32;
  sharedMemoryCarveoutIsRequested @41 :Column $u8;
  sharedMemoryCarveoutRequested @42 :Column $u8;
  launchType @43 :Column $u8;
  isDeviceLaunched @44 :Column $u8;
  tail @45 :Column $bytes;
}

struct Memcpy {
  # The GPU copied memory: MEMCPY and MEMCPY2 (peer to peer).
  rows @0 :UInt32;
  instance @1 :Column $instance;
  recordSizeBytes @2 :Column $u16 $unit("bytes");
  peerToPeer @3 :Column $flag;
  startNs @4 :Column $u64 $time(cupti);
  endNs @5 :Column $u64 $time(cupti);
  sizeBytes @6 :Column $u64 $unit("bytes");
  correlationId @7 :Column $u32;
  runtimeCorrelationId @8 :Column $u32;
  deviceId @9 :Column $u32;
  contextId @10 :Column $u32;
  streamId @11 :Column $u32;
  sourceDeviceId @12 :Column $u32;
  sourceContextId @13 :Column $u32;  # peer to peer only
  destinationDeviceId @14 :Column $u32;
  destinationContextId @15 :Column $u32;  # peer to peer only
  channelId @16 :Column $u32;
  channelType @17 :Column $u32;
  graphId @18 :Column $u32;
  graphNodeId @19 :Column $u64;
  copyCount @20 :Column $u64;
  copyKind @21 :Column $u8;  # CUpti_ActivityMemcpyKind
  sourceKind @22 :Column $u8;  # CUpti_ActivityMemoryKind
  destinationKind @23 :Column $u8;  # CUpti_ActivityMemoryKind
  flags @24 :Column $u8;
  isDeviceLaunched @25 :Column $u8;
  tail @26 :Column $bytes;
}

struct Memset {
  # The GPU set memory to a value.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  recordSizeBytes @2 :Column $u16 $unit("bytes");
  startNs @3 :Column $u64 $time(cupti);
  endNs @4 :Column $u64 $time(cupti);
  sizeBytes @5 :Column $u64 $unit("bytes");
  value @6 :Column $u32;
  correlationId @7 :Column $u32;
  deviceId @8 :Column $u32;
  contextId @9 :Column $u32;
  streamId @10 :Column $u32;
  channelId @11 :Column $u32;
  channelType @12 :Column $u32;
  graphId @13 :Column $u32;
  graphNodeId @14 :Column $u64;
  flags @15 :Column $u16;
  memoryKind @16 :Column $u16;
  isDeviceLaunched @17 :Column $u8;
  tail @18 :Column $bytes;
}

struct Synchronization {
  # The program waited for the GPU.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  recordSizeBytes @2 :Column $u16 $unit("bytes");
  startNs @3 :Column $u64 $time(cupti);
  endNs @4 :Column $u64 $time(cupti);
  type @5 :Column $u32;  # CUpti_ActivitySynchronizationType
  correlationId @6 :Column $u32;
  contextId @7 :Column $u32;
  streamId @8 :Column $u32;
  eventId @9 :Column $u32;  # of CUPTI or, as its records are not asked for, of xpu: no handle
  eventSyncId @10 :Column $u64;
  returnValue @11 :Column $u32;
  tail @12 :Column $bytes;
}

struct GraphLaunch {
  # GRAPH_TRACE: one replay of a CUDA graph.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  recordSizeBytes @2 :Column $u16 $unit("bytes");
  startNs @3 :Column $u64 $time(cupti);
  endNs @4 :Column $u64 $time(cupti);
  correlationId @5 :Column $u32;
  deviceId @6 :Column $u32;
  contextId @7 :Column $u32;
  streamId @8 :Column $u32;
  graphId @9 :Column $u32;
  endDeviceId @10 :Column $u32;
  endContextId @11 :Column $u32;
  tail @12 :Column $bytes;
}

struct Overhead {
  # Time that the driver or CUPTI spent on itself: lazy loading, instrumentation, full buffers.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  recordSizeBytes @2 :Column $u16 $unit("bytes");
  startNs @3 :Column $u64 $time(cupti);
  endNs @4 :Column $u64 $time(cupti);
  overheadKind @5 :Column $u32;  # CUpti_ActivityOverheadKind
  objectKind @6 :Column $u32;  # CUpti_ActivityObjectKind
  objectId0 @7 :Column $u32;
  objectId1 @8 :Column $u32;
  objectId2 @9 :Column $u32;  # the union of ids, word by word
  correlationId @10 :Column $u32;
  tail @11 :Column $bytes;
}

struct Device {
  # The parts of the DEVICE record that reports use; the whole record is a RawActivity beside it.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  deviceId @2 :Column $u32;
  name @3 :Column $text;
  uuid @4 :Column $bytes;  # 16 bytes
  computeCapabilityMajor @5 :Column $u32;
  computeCapabilityMinor @6 :Column $u32;
  multiprocessorCount @7 :Column $u32;
  globalMemoryBytes @8 :Column $u64 $unit("bytes");
}

struct RawActivity {
  # A record of a kind that this version does not take apart (DEVICE, CONTEXT, ... included).
  rows @0 :UInt32;
  instance @1 :Column $instance;
  kind @2 :Column $u32;  # CUpti_ActivityKind
  bytes @3 :Column $bytes;  # the record as CUPTI laid it out, pointers zeroed where we know them
  name @4 :Column $text;  # the text of its name pointer, where it has one
}

# ---- graphs, probes, symbols, ranges, memory -----------------------------------------------------

enum GraphNodeChange {
  created @0;  # by the call `correlation_id`
  cloned @1;  # from `original_node_id`, by an instantiation or a clone of the graph
  updated @2;  # got other parameters; still stands for `original_node_id`
  graphUpdated @3;
    # Not one node: each node of the executable graph `graph_id` now does what the node with its
    # index in the graph `original_node_id >> 32` does.
}

struct GraphNode {
  # What became of a node of a CUDA graph. GPU records name the node of the executable graph;
  # follow `original_node_id` to the node that the program made, and its call to the code that
  # did.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  timeNs @2 :Column $u64 $time(monotonic);
  change @3 :Column $enumeration("GraphNodeChange");
  nodeId @4 :Column $u64;  # cuptiGetGraphNodeId: Kernel::graph_node_id
  originalNodeId @5 :Column $u64;
  graphId @6 :Column $u32;  # cuptiGetGraphId: Kernel::graph_id, GraphLaunch::graph_id
  nodeType @7 :Column $u32;  # CUgraphNodeType: 0 kernel, 1 copy, 2 set, 3 host function, ...
  tid @8 :Column $u32 $is(process);  # as the program's namespace sees it
  correlationId @9 :Column $u32;
    # ApiCall::correlation_id of the watched call that was under way on this thread; 0: none was.
}

enum ProbePurpose {
  user @0;  # asked for by name
  runtimeLaunch @1;  # a function of libcudart that makes the GPU work
  driverLaunch @2;  # a function of libcuda that does
}

enum ProbeKind {
  uprobe @0;
  uretprobe @1;
  kprobe @2;
  kretprobe @3;
  tracepoint @4;
}

struct Probe {
  # Defines ProbeHit::probe.
  rows @0 :UInt32;
  probe @1 :Column $u32 $is(definition);  # from 1
  purpose @2 :Column $enumeration("ProbePurpose");
  function @3 :Column $text;  # "cudaLaunchKernel", of a tracepoint "sched:sched_switch"
  path @4 :Column $text;  # the file that it is in; empty: the kernel
  kind @5 :Column $enumeration("ProbeKind");
  offset @6 :Column $u64;  # from the begin of the function
}

struct ProbeHit {
  # A thread passed a probe: it entered the function, or returned from it.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  probe @2 :Column $u32 $is(definition);  # Probe::probe
  isReturn @3 :Column $flag;
  pid @4 :Column $u32 $is(process);
  tid @5 :Column $u32 $is(process);
  cpu @6 :Column $u32;
  kernel @7 :Column $u64;
    # Of a launch: the kernel as the caller names it, the address of its host function (runtime)
    # or a CUfunction (driver); 0: not known.
  returnValue @8 :Column $i32;  # at the return
  stack @9 :Column $stack;
    # At the entry, without the function itself: the innermost frame is its caller's, and like the
    # others a return address.
  stackFlags @10 :Column $u8 $is(stackFlags);
  pythonStack @11 :Column $stack;  # as of a CpuSample
}

struct SymbolSlice {
  # A part of the symbols of a file that occurs in stacks. The bytes of the parts 0 to part_count
  # - 1, one behind the other, are an ELF image that keeps the file's build-id, its loadable
  # segments, and of its symbols those that cover an address of a recorded stack. A file is (path,
  # build_id). Of several slices of one file, as the parts of a recording have, all count: an
  # address that two of them cover is named by the last.
  rows @0 :UInt32;
  path @1 :Column $text;  # as in Mapping
  buildId @2 :Column $bytes;  # as in Mapping
  detail @3 :Column $enumeration("SymbolDetail");
  part @4 :Column $u32;
  partCount @5 :Column $u32;
  bytes @6 :Column $bytes;  # at most kMaxStringBytes
}

struct GeneratedSymbol {
  # Names code that no file holds: made by a compiler in the running program. Only ranges that
  # contain an address of a recorded stack.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);  # from then on; 0: it is not known when
  pid @2 :Column $u32 $is(process);
  address @3 :Column $u64 $is(address);
  sizeBytes @4 :Column $u64 $unit("bytes");
  name @5 :Column $text;
}

enum NvtxKind {
  mark @0;  # one moment
  push @1;  # begins a range of the thread, inside those it has begun in the domain
  pop @2;  # ends the thread's innermost
  start @3;  # begins a range that any thread may end, by `range`
  end @4;  # ends it
  domain @5;  # `text` names `domain`
  category @6;  # `text` names `category` of `domain`
  thread @7;  # `text` names thread `range`, as the program numbers it
}

enum NvtxPayload {
  none @0;
  uint64 @1;
  int64 @2;
  double @3;
  uint32 @4;
  int32 @5;
  float @6;
}

struct NvtxEvent {
  # One call of NVTX.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  timeNs @2 :Column $u64 $time(monotonic);
  kind @3 :Column $enumeration("NvtxKind");
  tid @4 :Column $u32 $is(process);  # as the program sees it (ApiCall::tid)
  domain @5 :Column $u32;  # 0: the default one
  range @6 :Column $u64;  # of start and end: unique in the process
  text @7 :Column $text;
  category @8 :Column $u32;  # 0: none
  color @9 :Column $u32;  # 0xAARRGGBB, 0: none
  payloadType @10 :Column $enumeration("NvtxPayload");
  payload @11 :Column $u64;  # the bits, in the lower part
}

struct MemoryOperation {
  # MEMORY2: memory of a device was allocated or freed.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  recordSizeBytes @2 :Column $u16 $unit("bytes");
  timeNs @3 :Column $u64 $time(cupti);
  operation @4 :Column $u32;  # CUpti_ActivityMemoryOperationType: 1 allocation, 2 release
  memoryKind @5 :Column $u32;  # CUpti_ActivityMemoryKind
  correlationId @6 :Column $u32;
  address @7 :Column $u64 $is(address);
  sizeBytes @8 :Column $u64 $unit("bytes");
  deviceId @9 :Column $u32;
  contextId @10 :Column $u32;
  streamId @11 :Column $u32;
  isAsync @12 :Column $flag;
  poolType @13 :Column $u32;  # CUpti_ActivityMemoryPoolType; 0: no pool
  poolAddress @14 :Column $u64 $is(address);
  poolSizeBytes @15 :Column $u64 $unit("bytes");
  poolUtilizedBytes @16 :Column $u64 $unit("bytes");
  name @17 :Column $text;  # of the variable, for static memory of a module
  tail @18 :Column $bytes;
}

struct RecordingSwitch {
  # The recording was paused or goes on (`--delay`, a signal, a range of the program's). What
  # happens while it is paused is not in the capture.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  isOn @2 :Column $flag;
  cause @3 :Column $text;  # "SIGUSR2", "cudaProfilerStart"
}

struct PythonCode {
  # Defines PythonFrame::code: a function, the body of a class or module, a comprehension.
  rows @0 :UInt32;
  code @1 :Column $u32;  # from 1; the same function of several processes may have several
  name @2 :Column $text;  # qualified: "Linear.forward"
  path @3 :Column $text;  # as the interpreter has it: "/app/model.py", "<string>"
  firstLine @4 :Column $u32;
  lineTable @5 :Column $bytes;  # co_linetable as it is from Python 3.11 on; none: not readable
  version @6 :Column $u32;  # of the interpreter, major << 8 | minor
}

struct JitOperation {
  # JIT: the driver compiled code for the device, or took it from its cache or put it there.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  recordSizeBytes @2 :Column $u16 $unit("bytes");
  startNs @3 :Column $u64 $time(cupti);  # 0 with end_ns 0: not timed
  endNs @4 :Column $u64 $time(cupti);
  entryKind @5 :Column $u32;  # CUpti_ActivityJitEntryType: 1 PTX to machine code, 2 NVVM IR to PTX
  operation @6 :Column $u32;
    # CUpti_ActivityJitOperationType: 1 cache load, 2 cache store, 3 compile
  deviceId @7 :Column $u32;
  correlationId @8 :Column $u32;  # of the API call that asked for it
  jitCorrelationId @9 :Column $u64;  # the same for the operations of one compilation
  cacheSizeBytes @10 :Column $u64 $unit("bytes");
  cachePath @11 :Column $text;
  tid @12 :Column $u32 $is(process);
    # as the program sees it; 0: an older record, which does not say
  tail @13 :Column $bytes;
}
