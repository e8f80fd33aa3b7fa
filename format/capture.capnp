# The records of a capture: one Block is the payload of one block of the file (FORMAT.md describes
# the bytes around it). This is the only description of them: record_compiler.cpp generates from it
# the structs of format/events.h, the columns of the file, the fields that `xpu-report --dump`
# prints and the tables of xpu-capture(5).
#
# An event type is a struct of columns, one column per field. A new kind of event is a struct here
# and a list at the end of Events. New fields, lists and enumerants are added at the end, never
# renumbered, never removed.
#
# Conventions
#   Names        A name is camelCase here, and snake_case in C++, in `--dump` and in comments.
#   Times        Nanoseconds, with `Ns` at the end of the name; $time names the clock:
#                CLOCK_MONOTONIC of the recording host, CLOCK_REALTIME, or CUPTI's clock as CUPTI
#                reported it; a ClockPair relates the two.
#   pid, tid     In the recorder's pid namespace. A pid is not an identity: exec keeps it and the
#                kernel reuses it. Code that interprets events must resolve (pid, time).
#   instance     The 64-bit random number that an injected library chooses when it is loaded: the
#                identity of a process on the GPU side.
#   0            "none" for every id.
#   Comments     after a declaration become its text in C++ and in the manual.
@0xdc14a152af7e858c;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("xpu::schema");

# ---- field annotations ---------------------------------------------------------------------------

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
annotation bytes @0x9c3d5c2b8e1f7a0a (field) :Void;      # StringId of bytes that are not text
annotation stack @0x9c3d5c2b8e1f7a0b (field) :Void;      # StackId
annotation instance @0x9c3d5c2b8e1f7a0c (field) :Void;   # InstanceId

# The unit of a number that is not in nanoseconds.
annotation unit @0x9c3d5c2b8e1f7a0d (field) :Text;
# Marks a time and names its clock.
annotation time @0x9c3d5c2b8e1f7a0e (field) :Clock;
# What the value means.
annotation is @0x9c3d5c2b8e1f7a0f (field) :Meaning;

enum Clock {
  monotonic @0;
  realtime @1;
  cupti @2;
}

enum Meaning {
  number @0;
  process @1;               # the id of a process or thread
  definition @2;            # the id of another event of the capture: defines it or refers to it
  address @3;               # shown in hexadecimal
  stackFlags @4;            # StackFlag's bits (format/stack.h)
}

# ---- the block -----------------------------------------------------------------------------------

# `count` values of 64 bits. Narrower values are zero-extended, signed ones sign-extended; an enum
# is stored as its number, a Bool as 0 or 1.
#
#   value[i] = origin[i] + base + offset[i]                                     modulo 2^64
#
# where byte k of offset[i] is planes[k][i]; an empty or missing plane is all zeros. So a column of
# equal values has no planes, and a column of zeros is missing altogether (null).
struct Column {
  base @0 :UInt64;
  planes @1 :List(Data);    # at most 8, each empty or with one byte per value
  origin @2 :Origin;
  first @3 :UInt64;         # value[0] of an `earlierRow` column, whose base and offset start at [1]

  enum Origin {
    zero @0;                # 0
    earlierRow @1;          # value[i-1]
    columnBefore @2;        # value[i] of the previous column in the same struct
  }
}

struct Block {
  # Definitions come first, because the events of this block and of later ones refer to them.
  strings @0 :Strings;
  stacks @1 :Stacks;
  # A column of instances holds 1 + the index into this list, or 0 for none.
  instances @2 :List(UInt64);
  events @3 :Events;
  # The events repeat earlier events of this capture or of an earlier part of the recording.
  restated @4 :Bool;
}

# Defines the ids firstId, firstId + 1, ...
struct Strings {
  count @0 :UInt32;
  firstId @1 :UInt32;
  lengths @2 :Column;       # in bytes
  bytes @3 :Data;           # concatenated
}

# Defines the ids firstId, firstId + 1, ...: nodes of a trie whose paths to the root are stacks.
struct Stacks {
  count @0 :UInt32;
  firstId @1 :UInt32;
  callerDistance @2 :Column;  # own id minus the id of the caller's node; 0: the outermost frame
  frameKind @3 :Column;       # FrameKind
  address @4 :Column;
}

struct Events {
  # One list for each kind of event, in the order in which the events were written. Readers sort by
  # time; writers do not guarantee that order.
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
  offCpuWaits @31 :OffCpuWait;
  offCpuSums @32 :OffCpuSum;
  rankInfos @33 :RankInfo;
  nvtxSchemaEntries @34 :NvtxSchemaEntry;
  containerInfos @35 :ContainerInfo;
  gpuDevices @36 :GpuDevice;
  gpuStates @37 :GpuState;
  gpuFaults @38 :GpuFault;
  gpuMetrics @39 :GpuMetric;
  gpuMetricSamples @40 :GpuMetricSample;
  gpuSamplings @41 :GpuSampling;
  gpuSamples @42 :GpuSample;
  cubinSlices @43 :CubinSlice;
  allocatorEvents @44 :AllocatorEvent;
  sourceTexts @45 :SourceText;
}

# ---- the recording -------------------------------------------------------------------------------

enum LaunchStackSource {
  # How the CPU stacks of launches were taken.
  unknown @0;  # by a recorder older than 0.1.0
  none @1;
  marker @2;  # launch_stack events, taken at the injected library's marker function
  probes @3;  # probe_hit events at functions of the CUDA libraries; nothing was injected
  inProcess @4;  # launch_stack events, taken by the injected library itself
}

enum GraphTrace {
  # How a replay of a CUDA graph is recorded.
  unknown @0;
  graph @1;  # as one graph_launch
  node @2;  # as one kernel, memcpy or memset per node
}

enum CallGraph {
  # How user stacks were unwound.
  unknown @0;
  framePointers @1;  # by the kernel's walker
  tables @2;  # by unwind tables, or by frame pointers where there is no table
}

enum SymbolDetail {
  # Which symbols are stored.
  unknown @0;
  none @1;
  names @2;  # the names of the functions that occur in stacks
  lines @3;  # also their source lines and inlined functions
}

struct RecordingInfo {
  # Properties of the recording. Occurs once, as the first event.
  rows @0 :UInt32;
  startNs @1 :Column $u64 $time(monotonic);
    # when the recording was armed; for later parts, when the part began
  startRealtimeNs @2 :Column $u64 $time(realtime);  # at the same instant
  recorderPid @3 :Column $u32 $is(process);
  cpuCount @4 :Column $u32;
  recorderVersion @5 :Column $text;
  hostName @6 :Column $text;
  kernelRelease @7 :Column $text;
  machine @8 :Column $text;  # "x86_64"
  commandLine @9 :Column $text;  # the program's arguments, each quoted for a shell if needed
  settings @10 :Column $text;  # the recorder's own arguments, quoted in the same way
  workingDirectory @11 :Column $text;
  launchStacks @12 :Column $enumeration("LaunchStackSource");
  graphTrace @13 :Column $enumeration("GraphTrace");
  callGraph @14 :Column $enumeration("CallGraph");
  symbols @15 :Column $enumeration("SymbolDetail");
  recording @16 :Column $u64;
    # a random id, the same in all parts; 0: by a recorder older than 0.1.0
  part @17 :Column $u32;
    # the number of this part in a recording that is split into several captures, from 1; 0: not
    # split
  bootId @18 :Column $text;
    # of the kernel: captures with the same one share CLOCK_MONOTONIC; empty: not known
}

struct RecordingEnd {
  # The end of the recording. Occurs once, as the last event; missing if the recorder was killed.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  targetPid @2 :Column $u32 $is(process);
  waitStatus @3 :Column $i32;  # the program's status as waitpid returns it
  isContinued @4 :Column $flag;  # this part ends, and the recording continues in the next one
}

struct SampleSource {
  # A source of CPU samples: a clock or another perf event.
  rows @0 :UInt32;
  source @1 :Column $u32 $is(definition);  # cpu_sample.source; from 1
  name @2 :Column $text;  # "cpu-clock"
  frequencyHz @3 :Column $u64 $unit("Hz");  # as requested; 0: a sample every `period`
  period @4 :Column $u64;  # the weight of one sample, in `unit`
  unit @5 :Column $text;  # "ns", "events"
}

struct Loss {
  # What was lost, and how much. The ledger of a capture sums these records by name.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  name @2 :Column $text;
    # the name of a LossKind (format/losses.h); unknown names in newer files are printed as they are
  count @3 :Column $u64;  # losses since the last record with the same name, pid and instance
  pid @4 :Column $u32 $is(process);  # 0: not specific to a process
  instance @5 :Column $instance;  # 0: not specific to an instance
  detail @6 :Column $text;  # free text, for example the errno of a failure
}

# ---- processes -----------------------------------------------------------------------------------

enum ProcessEventKind {
  existing @0;  # existed when the recording began, or is repeated (see `restated`)
  fork @1;  # a new process if pid differs from parent_pid, otherwise a new thread `tid` of it
  exec @2;  # the address space is new: earlier mappings are gone; `name` is the new comm
  name @3;  # a thread was renamed
  exit @4;  # of the whole process if tid equals pid, otherwise of a thread
}

struct ProcessEvent {
  # A process or thread started, changed or exited.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  kind @2 :Column $enumeration("ProcessEventKind");
  restated @3 :Column $flag;  # repeated so that this part can be read on its own
  pid @4 :Column $u32 $is(process);
  tid @5 :Column $u32 $is(process);
  parentPid @6 :Column $u32 $is(process);
  parentTid @7 :Column $u32 $is(process);
  name @8 :Column $text;  # the comm, for existing, exec and name
}

struct Mapping {
  # A file, or anonymous executable memory, was mapped into a process.
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
  buildId @11 :Column $bytes;  # empty if unknown
  deviceMajor @12 :Column $u32;
  deviceMinor @13 :Column $u32;
  inode @14 :Column $u64;
}

struct KernelSymbol {
  # The name of a range of kernel code. Only ranges that contain an address of a recorded stack are
  # stored.
  rows @0 :UInt32;
  address @1 :Column $u64 $is(address);
  sizeBytes @2 :Column $u64 $unit("bytes");  # up to the next symbol
  name @3 :Column $text;
  module @4 :Column $text;  # empty for the kernel itself
}

# ---- CPU -----------------------------------------------------------------------------------------

struct CpuSample {
  # What a thread was executing when a sample source fired.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  source @2 :Column $u32 $is(definition);  # sample_source.source
  pid @3 :Column $u32 $is(process);
  tid @4 :Column $u32 $is(process);
  cpu @5 :Column $u32;
  stack @6 :Column $stack;  # kernel frames innermost, user frames outside them
  stackFlags @7 :Column $u8 $is(stackFlags);
  weight @8 :Column $u64;  # in the source's unit; 0: the source's period
  pythonStack @9 :Column $stack;
    # the Python functions that were running; 0: none. The 64 bits of a frame are, from the top: 32
    # bits python_code.code, or 0 for missing frames; 1 bit that is set if the frame entered the
    # evaluation loop; 31 bits offset of the instruction in the bytecode, or the reason why frames
    # are missing.
}

enum OffCpuState {
  # What a thread did instead of running.
  unknown @0;
  blocked @1;  # it waited and could be interrupted by a signal
  uninterruptible @2;  # it waited and could not, for example for a disk
  preempted @3;  # it could run, and another thread did
  created @4;  # it had been created and had not run yet
  running @5;  # only in off_cpu_sum: it ran
  stopped @6;  # by a signal or a debugger
}

enum OffCpuWaker {
  # Who ended a wait.
  unknown @0;
  thread @1;
  interrupt @2;  # of a timer or a device
}

struct OffCpuWait {
  # A thread did not run for at least the minimum of `--off-cpu-min`.
  rows @0 :UInt32;
  startNs @1 :Column $u64 $time(monotonic);  # when it stopped
  endNs @2 :Column $u64 $time(monotonic);  # when it ran again
  pid @3 :Column $u32 $is(process);
  tid @4 :Column $u32 $is(process);
  state @5 :Column $enumeration("OffCpuState");
  systemCall @6 :Column $i32;
    # the number of the call that it waited in; -1: none, or not known; -2: it waited in a page fault
  stack @7 :Column $stack;  # 0: not taken
  stackFlags @8 :Column $u8 $is(stackFlags);
  pythonStack @9 :Column $stack;  # as in cpu_sample
  readyNs @10 :Column $u64 $time(monotonic);
    # when it was woken, and waited only for a CPU from then on; end_ns: not known, or never;
    # start_ns: it could run all the time
  isOpen @11 :Column $flag;
    # it had not ended when recording ended or was switched off, which is end_ns; if that is start_ns
    # too, the waiting threads of a process were listed then, because its GPU finished nothing
  argument @12 :Column $u64 $is(address);
    # the first argument of the system call: the address of a futex, or a descriptor
  fileType @13 :Column $u32;
    # of that descriptor, as S_IFMT of st_mode; 1: an eventfd, 2: a timerfd, 3: a signalfd; 0: none
  waker @14 :Column $enumeration("OffCpuWaker");
  wakerPid @15 :Column $u32 $is(process);  # 0: not a thread
  wakerTid @16 :Column $u32 $is(process);
  wakerName @17 :Column $text;  # of the thread, which may be of a process that is not recorded
  wakerStack @18 :Column $stack;  # where that thread woke this one; 0: not taken
  wakerStackFlags @19 :Column $u8 $is(stackFlags);
  wakerPythonStack @20 :Column $stack;
  lockHolder @21 :Column $u32 $is(process);
    # if the wait is open and the futex is a mutex of the GNU C library, or a read-write lock that is
    # held for writing: the thread that held it at the end; if it is where pthread_join waits: the
    # thread that it waits for; 0: not known
}

struct OffCpuSum {
  # All shorter times in which a thread did not run, in one state; and all of its running time.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
    # when the thread ended, or the recording, or this part of it
  pid @2 :Column $u32 $is(process);
  tid @3 :Column $u32 $is(process);
  state @4 :Column $enumeration("OffCpuState");
  count @5 :Column $u64;
  duration @6 :Column $u64;
  readyDuration @7 :Column $u64;  # the part of it in which the thread had been woken
}

# ---- CUDA processes ------------------------------------------------------------------------------

enum InjectState {
  # The state of the injected library in a process.
  connected @0;  # loaded; whether CUPTI works is not known yet
  active @1;  # recording
  dormant @2;  # gave up; `detail` says why, and the program runs as if it were not recorded
  finished @3;  # flushed at exit
}

struct GpuProcess {
  # The state of the injected library in a process changed.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  instance @2 :Column $instance;
  state @3 :Column $enumeration("InjectState");
  pid @4 :Column $u32 $is(process);
  namespacePid @5 :Column $u32 $is(process);  # in the program's own pid namespace
  cuptiVersion @6 :Column $u32;  # from cuptiGetVersion; 0: unknown
  driverVersion @7 :Column $u32;  # from cuDriverGetVersion; 0: unknown
  cuptiPath @8 :Column $text;
  detail @9 :Column $text;
  timesOnHost @10 :Column $flag;
    # the GPU writes times into host memory, where they survive a fault: after one, the first record
    # of a stream without times is the work that faulted. Otherwise finished work may lack them too.
}

enum Launcher {
  # What started the processes of a job.
  unknown @0;  # RANK and WORLD_SIZE are set, as by hand
  torchrun @1;
  slurm @2;
  openMpi @3;
  pmi @4;  # MPICH and others with its process manager
  kubernetes @5;  # an indexed job
}

struct RankInfo {
  # The place of a process in a job of several processes, from the environment variables of its
  # launcher.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  instance @2 :Column $instance;  # 0: of xpu-record itself, so of all that it started
  pid @3 :Column $u32 $is(process);
  launcher @4 :Column $enumeration("Launcher");
  rank @5 :Column $i32;
  localRank @6 :Column $i32;  # on its node; -1, here and in the next two: not known
  worldSize @7 :Column $i32;  # the number of ranks
  nodeRank @8 :Column $i32;
  nodeName @9 :Column $text;  # as the launcher calls it
  jobId @10 :Column $text;
  stepId @11 :Column $text;
}

enum ContainerRuntime {
  # What started a container, as the name of its control group tells.
  unknown @0;
  docker @1;
  containerd @2;
  criO @3;
  podman @4;
}

struct ContainerInfo {
  # The container of a process, from then on: at the start of the recording, after a fork, or after
  # an exec that changed it. Processes without one have no record.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  pid @2 :Column $u32 $is(process);
  runtime @3 :Column $enumeration("ContainerRuntime");
  id @4 :Column $text;  # 64 hexadecimal digits; "": in none any more
  name @5 :Column $text;  # in its pod; otherwise the host name that it gives its programs
  podUid @6 :Column $text;
  podName @7 :Column $text;
  podNamespace @8 :Column $text;
}

enum ClockKind {
  cupti @0;
}

struct ClockPair {
  # The same instant on two clocks, which were read in the order monotonic, other, monotonic.
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
  # The name that CUPTI gives to a callback id. The meaning of ids differs between CUDA versions.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  domain @2 :Column $enumeration("ApiDomain");
  callbackId @3 :Column $u32;
  name @4 :Column $text;
}

struct ApiCall {
  # One call of the CUDA API, as seen by the injected library's callback. It is the outermost call
  # with its correlation id, so a runtime call and the driver call inside it are one event, that of
  # the runtime call.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  domain @2 :Column $enumeration("ApiDomain");
  callbackId @3 :Column $u32;
  correlationId @4 :Column $u32;
  tid @5 :Column $u32 $is(process);  # in the program's pid namespace
  startNs @6 :Column $u64 $time(monotonic);
  endNs @7 :Column $u64 $time(monotonic);
  returnValue @8 :Column $i32;
  graphNodes @9 :Column $u32;
    # the number of CUDA graph nodes that this call created. A launch, copy or memset that created
    # one was captured from its stream: the GPU does not run it now, and it has no GPU record.
}

struct LaunchStack {
  # The CPU stack at the entry of the API call with this correlation id.
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
  pythonStack @11 :Column $stack;  # as in cpu_sample
}

# ---- GPU activity: CUPTI's records, field by field -----------------------------------------------
#
# `tail` holds the bytes after the last field that this version of xpu knows, interned, so that
# nothing from a newer CUPTI is lost. Pointers, padding and reserved members are left out. A field
# that a CUPTI version does not deliver is 0; `record_size_bytes` identifies that version.

struct Kernel {
  # The GPU ran a kernel.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  recordSizeBytes @2 :Column $u16 $unit("bytes");
  startNs @3 :Column $u64 $time(cupti);  # 0, like end_ns, if CUPTI could not time it
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
  name @17 :Column $text;  # mangled, as CUPTI reports it
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
  cacheConfig @36 :Column $u8;  # low 4 bits: requested; high 4 bits: executed
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
  # The GPU copied memory (CUPTI's MEMCPY and, for peer-to-peer copies, MEMCPY2).
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
  sourceContextId @13 :Column $u32;  # peer-to-peer copies only
  destinationDeviceId @14 :Column $u32;
  destinationContextId @15 :Column $u32;  # peer-to-peer copies only
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
  eventId @9 :Column $u32;
    # an id assigned by CUPTI or, because its event records are not requested, by xpu; not a handle
  eventSyncId @10 :Column $u64;
  returnValue @11 :Column $u32;
  tail @12 :Column $bytes;
}

struct GraphLaunch {
  # The GPU replayed a CUDA graph that is recorded as a whole (CUPTI's GRAPH_TRACE).
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
  # The driver or CUPTI spent time on its own work: lazy loading, instrumentation, full buffers.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  recordSizeBytes @2 :Column $u16 $unit("bytes");
  startNs @3 :Column $u64 $time(cupti);
  endNs @4 :Column $u64 $time(cupti);
  overheadKind @5 :Column $u32;  # CUpti_ActivityOverheadKind
  objectKind @6 :Column $u32;  # CUpti_ActivityObjectKind
  objectId0 @7 :Column $u32;  # the first word of the object's id, a union in CUPTI
  objectId1 @8 :Column $u32;  # the second word
  objectId2 @9 :Column $u32;  # the third word
  correlationId @10 :Column $u32;
  tail @11 :Column $bytes;
}

struct Device {
  # The fields of CUPTI's DEVICE record that reports use. The complete record is also stored, as a
  # raw_activity.
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
  # A CUPTI record of a kind that this version does not decode, or not completely (DEVICE, CONTEXT
  # and others).
  rows @0 :UInt32;
  instance @1 :Column $instance;
  kind @2 :Column $u32;  # CUpti_ActivityKind
  bytes @3 :Column $bytes;  # the record as CUPTI laid it out, with known pointers set to zero
  name @4 :Column $text;  # the text that its name pointer refers to, if it has one
}

# ---- graphs, probes, symbols, ranges, memory -----------------------------------------------------

enum GraphNodeChange {
  created @0;  # by the call `correlation_id`
  cloned @1;  # from `original_node_id`, when the graph was instantiated or cloned
  updated @2;  # got other parameters; still corresponds to `original_node_id`
  graphUpdated @3;
    # Concerns all nodes: each node of the executable graph `graph_id` now does what the node with
    # the same index in the graph `original_node_id >> 32` does.
}

struct GraphNode {
  # A node of a CUDA graph was created or changed. GPU records name the node of the executable
  # graph; `original_node_id` leads to the node that the program created, and that node's
  # `correlation_id` to the code that created it.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  timeNs @2 :Column $u64 $time(monotonic);
  change @3 :Column $enumeration("GraphNodeChange");
  nodeId @4 :Column $u64;  # from cuptiGetGraphNodeId, as in kernel.graph_node_id
  originalNodeId @5 :Column $u64;
  graphId @6 :Column $u32;
    # from cuptiGetGraphId, as in kernel.graph_id and graph_launch.graph_id
  nodeType @7 :Column $u32;  # CUgraphNodeType: 0 kernel, 1 memcpy, 2 memset, 3 host function, ...
  tid @8 :Column $u32 $is(process);  # in the program's pid namespace
  correlationId @9 :Column $u32;
    # api_call.correlation_id of the recorded call in progress on this thread; 0: there was none
}

enum ProbePurpose {
  user @0;  # given by the user
  runtimeLaunch @1;  # a launch function of libcudart
  driverLaunch @2;  # a launch function of libcuda
}

enum ProbeKind {
  uprobe @0;
  uretprobe @1;
  kprobe @2;
  kretprobe @3;
  tracepoint @4;
}

struct Probe {
  # The definition of a probe, for probe_hit.probe.
  rows @0 :UInt32;
  probe @1 :Column $u32 $is(definition);  # from 1
  purpose @2 :Column $enumeration("ProbePurpose");
  function @3 :Column $text;  # "cudaLaunchKernel" or, for a tracepoint, "sched:sched_switch"
  path @4 :Column $text;  # the file that contains the function; empty: the kernel
  kind @5 :Column $enumeration("ProbeKind");
  offset @6 :Column $u64;  # in bytes from the start of the function
}

struct ProbeHit {
  # A thread hit a probe: it entered the function or returned from it.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  probe @2 :Column $u32 $is(definition);  # probe.probe
  isReturn @3 :Column $flag;
  pid @4 :Column $u32 $is(process);
  tid @5 :Column $u32 $is(process);
  cpu @6 :Column $u32;
  kernel @7 :Column $u64;
    # for a launch, the kernel as the caller passed it: the address of its host function (runtime)
    # or a CUfunction (driver); 0: not known
  returnValue @8 :Column $i32;  # for a return
  stack @9 :Column $stack;
    # for an entry, without the function itself: the innermost frame is that of its caller and, like
    # the others, a return address
  stackFlags @10 :Column $u8 $is(stackFlags);
  pythonStack @11 :Column $stack;  # as in cpu_sample
}

struct SymbolSlice {
  # A part of the symbols of a file that occurs in stacks. The bytes of the parts 0 to part_count
  # - 1, concatenated, are an ELF image with the file's build-id, its loadable segments, and those
  # of its symbols that cover an address of a recorded stack. A file is identified by (path,
  # build_id). If there are several slices of one file, as in a recording that has parts, all of
  # them are used; an address that several slices cover is named by the last one.
  rows @0 :UInt32;
  path @1 :Column $text;  # as in mapping
  buildId @2 :Column $bytes;  # as in mapping
  detail @3 :Column $enumeration("SymbolDetail");
  part @4 :Column $u32;
  partCount @5 :Column $u32;
  bytes @6 :Column $bytes;  # at most kMaxStringBytes
}

struct GeneratedSymbol {
  # The name of code that was generated at run time and is in no file. Only ranges that contain an
  # address of a recorded stack are stored.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);  # when the name became valid; 0: not known
  pid @2 :Column $u32 $is(process);
  address @3 :Column $u64 $is(address);
  sizeBytes @4 :Column $u64 $unit("bytes");
  name @5 :Column $text;
}

enum NvtxKind {
  mark @0;  # an instant
  push @1;  # begins a range of the thread, nested in its open ranges of the domain
  pop @2;  # ends the thread's innermost range
  start @3;  # begins a range that any thread may end, identified by `range`
  end @4;  # ends that range
  domain @5;  # `text` is the name of `domain`
  category @6;  # `text` is the name of `category` in `domain`
  thread @7;  # `text` is the name of thread `range`, an id of the program's pid namespace
}

enum NvtxPayload {
  none @0;
  uint64 @1;
  int64 @2;
  double @3;
  uint32 @4;
  int32 @5;
  float @6;
  extended @7;  # `payload_data`, of the schema `payload_schema`
}

struct NvtxEvent {
  # The program called NVTX.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  timeNs @2 :Column $u64 $time(monotonic);
  kind @3 :Column $enumeration("NvtxKind");
  tid @4 :Column $u32 $is(process);  # in the program's pid namespace, as in api_call.tid
  domain @5 :Column $u32;  # 0: the default domain
  range @6 :Column $u64;  # for start and end, unique within the process
  text @7 :Column $text;
  category @8 :Column $u32;  # 0: none
  color @9 :Column $u32;  # 0xAARRGGBB; 0: none
  payloadType @10 :Column $enumeration("NvtxPayload");
  payload @11 :Column $u64;  # the bits of the value, in the low-order part
  payloadSchema @12 :Column $u64;  # nvtx_schema_entry.schema
  payloadData @13 :Column $bytes;
}

struct NvtxSchemaEntry {
  # The definition of a field of NVTX payloads, or of a value of an enumeration that is the type of
  # such fields.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  domain @2 :Column $u32;
  schema @3 :Column $u64;  # unique within the domain
  entry @4 :Column $u32;  # its number, from 0
  name @5 :Column $text;
  isEnumeration @6 :Column $flag;
  type @7 :Column $u64;  # NVTX_PAYLOAD_ENTRY_TYPE_*, or another schema
  flags @8 :Column $u64;  # NVTX_PAYLOAD_ENTRY_FLAG_*
  offset @9 :Column $u64;  # in bytes; 0, except of entry 0: after the previous field
  arrayLength @10 :Column $u64;
  value @11 :Column $u64;  # of an enumeration
  sizeBytes @12 :Column $u64 $unit("bytes");
    # of the whole payload, or of values of the enumeration; 0: not known
}

struct MemoryOperation {
  # Memory was allocated or freed (CUPTI's MEMORY2).
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
  name @17 :Column $text;  # for static memory of a module, the name of the variable
  tail @18 :Column $bytes;
}

struct SourceText {
  # Lines of a source file, with those that occur in stacks or in GPU code that has samples
  # (`xpu-record --sources`).
  rows @0 :UInt32;
  path @1 :Column $text;  # as in python_code.path, debug information or line tables of GPU code
  firstLine @2 :Column $u32;
  text @3 :Column $bytes;  # the lines, each with its line feed; as the file has them
}

enum AllocatorKind {
  unknown @0;
  pyTorch @1;  # PyTorch's caching allocator of CUDA memory
}

struct AllocatorEvent {
  # An allocator inside the program handed out a block of GPU memory, or took one back.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  timeNs @2 :Column $u64 $time(monotonic);
  pid @3 :Column $u32 $is(process);
  tid @4 :Column $u32 $is(process);  # in the program's pid namespace, as in api_call.tid
  allocator @5 :Column $enumeration("AllocatorKind");
  deviceId @6 :Column $u32;
  address @7 :Column $u64 $is(address);
    # of the block; in old versions of PyTorch of its description, which identifies it as well
  sizeBytes @8 :Column $i64 $unit("bytes");  # negative: taken back
  hasTotals @9 :Column $flag;  # old versions of PyTorch do not report the next two
  allocatedBytes @10 :Column $u64 $unit("bytes");  # of all blocks of this allocator and device, then
  reservedBytes @11 :Column $u64 $unit("bytes");  # what the allocator had from CUDA, likewise
  stack @12 :Column $stack;  # 0: none. Blocks that are taken back have none
  stackFlags @13 :Column $u8 $is(stackFlags);
  pythonStack @14 :Column $stack;  # as in cpu_sample.python_stack
}

struct RecordingSwitch {
  # The recording was paused or resumed, by `--delay`, a signal, a command or a range of the
  # program. What happens while it is paused is not in the capture.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  isOn @2 :Column $flag;
  cause @3 :Column $text;  # such as "SIGUSR2" or "cudaProfilerStart"
}

struct PythonCode {
  # The definition of a Python code object, for the frames of Python stacks: a function, the body of
  # a class or module, or a comprehension.
  rows @0 :UInt32;
  code @1 :Column $u32;  # from 1; one function may have several if it runs in several processes
  name @2 :Column $text;  # the qualified name, such as "Linear.forward"
  path @3 :Column $text;  # as in the interpreter: "/app/model.py", "<string>"
  firstLine @4 :Column $u32;
  lineTable @5 :Column $bytes;
    # in the format of co_linetable of Python 3.11 and later; empty if it could not be read
  version @6 :Column $u32;  # the interpreter's version, major << 8 | minor
}

struct JitOperation {
  # The driver compiled code for the device, loaded it from its cache or stored it there (CUPTI's
  # JIT).
  rows @0 :UInt32;
  instance @1 :Column $instance;
  recordSizeBytes @2 :Column $u16 $unit("bytes");
  startNs @3 :Column $u64 $time(cupti);  # 0, like end_ns, if it was not timed
  endNs @4 :Column $u64 $time(cupti);
  entryKind @5 :Column $u32;  # CUpti_ActivityJitEntryType: 1 PTX to machine code, 2 NVVM IR to PTX
  operation @6 :Column $u32;
    # CUpti_ActivityJitOperationType: 1 cache load, 2 cache store, 3 compile
  deviceId @7 :Column $u32;
  correlationId @8 :Column $u32;  # that of the API call that caused it
  jitCorrelationId @9 :Column $u64;  # the same for all operations of one compilation
  cacheSizeBytes @10 :Column $u64 $unit("bytes");
  cachePath @11 :Column $text;
  tid @12 :Column $u32 $is(process);
    # in the program's pid namespace; 0: not known, in records of an older CUPTI
  tail @13 :Column $bytes;
}

# ---- GPUs as a whole: not of one process, but of all that use them ---------------------------------

struct GpuDevice {
  # The definition of a GPU, as the driver's management library (NVML) describes it. The same GPU in
  # `device` has the same UUID.
  rows @0 :UInt32;
  gpu @1 :Column $u32 $is(definition);  # from 1
  uuid @2 :Column $bytes;  # 16 bytes
  name @3 :Column $text;
  index @4 :Column $u32;  # as nvidia-smi numbers it
  pciAddress @5 :Column $text;  # "00000000:17:00.0"
  driverVersion @6 :Column $text;
  memoryBytes @7 :Column $u64 $unit("bytes");
  powerLimit @8 :Column $u32 $unit("mW");  # as enforced; 0, here and below: not known
  maxSmClock @9 :Column $u32 $unit("MHz");
  maxMemoryClock @10 :Column $u32 $unit("MHz");
}

struct GpuState {
  # What NVML reported about a GPU at one time. A value of 0 is not known, unless it is one that can
  # be 0.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  gpu @2 :Column $u32 $is(definition);  # gpu_device.gpu
  smClock @3 :Column $u32 $unit("MHz");
  memoryClock @4 :Column $u32 $unit("MHz");
  power @5 :Column $u32 $unit("mW");  # as averaged by the device, over 25 ms to a second
  energy @6 :Column $u64 $unit("mJ");  # since the driver was loaded
  temperature @7 :Column $u32 $unit("degrees Celsius");
  throttleReasons @8 :Column $u64 $is(address);
    # nvmlClocksEventReason bits: why the clocks are lower than they could be
  memoryUsedBytes @9 :Column $u64 $unit("bytes");
  powerCapped @10 :Column $u64 $unit("ns");
    # for how long the power limit has held the clocks down, since the driver was loaded
  thermalCapped @11 :Column $u64 $unit("ns");  # likewise, the temperature
  correctedErrors @12 :Column $u64;  # of memory, since the driver was loaded
  uncorrectedErrors @13 :Column $u64;
}

struct GpuFault {
  # The driver reported an error of a GPU.
  rows @0 :UInt32;
  timeNs @1 :Column $u64 $time(monotonic);
  gpu @2 :Column $u32 $is(definition);
  kind @3 :Column $u64 $is(address);
    # NVML's event type: 1 corrected, 2 uncorrected memory error, 8 an Xid
  code @4 :Column $u64;  # the Xid
}

struct GpuMetric {
  # The definition of a hardware counter that was sampled.
  rows @0 :UInt32;
  metric @1 :Column $u32 $is(definition);  # from 1
  gpu @2 :Column $u32 $is(definition);
  name @3 :Column $text;  # "dram_read"
  source @4 :Column $text;  # the metric of CUPTI that it is computed from
  unit @5 :Column $text;  # "%", "bytes", or empty
  quantum @6 :Column $u32;
    # what a stored value of 1 is, in thousandths of the unit; rounding errors do not add up
  peak @7 :Column $u64;
    # of bytes: the most per second; 0: not known, or known only to a later definition of the metric
  interval @8 :Column $u64 $unit("ns");  # as requested
}

struct GpuMetricSample {
  # The values of up to eight counters of a GPU over one interval: of the metrics `metric`,
  # `metric` + 1, and so on.
  rows @0 :UInt32;
  instance @1 :Column $instance;  # whose clock pairs relate the times to other clocks
  gpu @2 :Column $u32 $is(definition);
  metric @3 :Column $u32 $is(definition);
  startNs @4 :Column $u64 $time(cupti);
  endNs @5 :Column $u64 $time(cupti);
  value0 @6 :Column $u64;
  value1 @7 :Column $u64;
  value2 @8 :Column $u64;
  value3 @9 :Column $u64;
  value4 @10 :Column $u64;
  value5 @11 :Column $u64;
  value6 @12 :Column $u64;
  value7 @13 :Column $u64;
}

# ---- samples of the GPU's program counters -------------------------------------------------------

struct GpuSampling {
  # Samples of a context's program counters were fetched (CUPTI's continuous PC sampling).
  rows @0 :UInt32;
  instance @1 :Column $instance;
  timeNs @2 :Column $u64 $time(monotonic);  # when they were fetched
  sinceNs @3 :Column $u64 $time(monotonic);  # of the previous fetch, or when sampling began
  contextId @4 :Column $u32;  # as in kernel
  deviceId @5 :Column $u32;
  period @6 :Column $u64 $unit("cycles");  # between two samples of a multiprocessor
  bufferBytes @7 :Column $u64 $unit("bytes");  # that CUPTI took of the GPU's memory
  samples @8 :Column $u64;  # with those that are dropped or of no kernel of the program
  droppedSamples @9 :Column $u64;  # by the hardware
  otherSamples @10 :Column $u64;  # in kernels that the driver itself runs
}

struct GpuSample {
  # How often warps were found at an instruction for one reason, since the previous fetch.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  timeNs @2 :Column $u64 $time(monotonic);  # of the gpu_sampling with the same context
  contextId @3 :Column $u32;
  cubinCrc @4 :Column $u64 $is(definition);  # of the module, as CUPTI computes it
  functionIndex @5 :Column $u32;  # of the function's symbol in the module
  function @6 :Column $text;  # mangled
  offset @7 :Column $u64 $is(address);  # of the instruction in the function
  stallReason @8 :Column $text;
    # as CUPTI names it: "smsp__pcsamp_warps_issue_stalled_wait"; with "_not_issued" at the end if
    # the scheduler issued no instruction of another warp either
  samples @9 :Column $u64;
}

struct CubinSlice {
  # GPU code that has samples. The bytes of the parts 0 to part_count - 1, concatenated, are an ELF
  # file with the code of functions that were hit, their symbols and their line tables, each
  # function at an address of its own. There may be several slices of one module, with other
  # functions.
  rows @0 :UInt32;
  instance @1 :Column $instance;
  cubinCrc @2 :Column $u64 $is(definition);
  part @3 :Column $u32;
  partCount @4 :Column $u32;
  bytes @5 :Column $bytes;  # at most kMaxStringBytes
}
