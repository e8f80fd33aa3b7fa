# The records of a capture: one Block is the payload of one block of the file (FORMAT.md has the
# bytes around it). What the fields mean, with their units, is in events.h and gpu_events.h.
#
# An event type is a struct of columns, one column per field, in the order of the fields of its
# struct; the event types are in the order of EventBatch. A field of camelCase here is snake_case
# there. New fields and new event types are added at the end, never renumbered, never removed.
@0xdc14a152af7e858c;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("xpu::schema");

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

struct RecordingInfo {
  rows @0 :UInt32;
  startNs @1 :Column;
  startRealtimeNs @2 :Column;
  recorderPid @3 :Column;
  cpuCount @4 :Column;
  recorderVersion @5 :Column;
  hostName @6 :Column;
  kernelRelease @7 :Column;
  machine @8 :Column;
  commandLine @9 :Column;
  settings @10 :Column;
  workingDirectory @11 :Column;
  launchStacks @12 :Column;
  graphTrace @13 :Column;
  callGraph @14 :Column;
  symbols @15 :Column;
  recording @16 :Column;
  part @17 :Column;
}

struct RecordingEnd {
  rows @0 :UInt32;
  timeNs @1 :Column;
  targetPid @2 :Column;
  waitStatus @3 :Column;
  isContinued @4 :Column;
}

struct SampleSource {
  rows @0 :UInt32;
  source @1 :Column;
  name @2 :Column;
  frequencyHz @3 :Column;
  period @4 :Column;
  unit @5 :Column;
}

struct Loss {
  rows @0 :UInt32;
  timeNs @1 :Column;
  name @2 :Column;
  count @3 :Column;
  pid @4 :Column;
  instance @5 :Column;
  detail @6 :Column;
}

struct ProcessEvent {
  rows @0 :UInt32;
  timeNs @1 :Column;
  kind @2 :Column;
  restated @3 :Column;
  pid @4 :Column;
  tid @5 :Column;
  parentPid @6 :Column;
  parentTid @7 :Column;
  name @8 :Column;
}

struct Mapping {
  rows @0 :UInt32;
  timeNs @1 :Column;
  restated @2 :Column;
  pid @3 :Column;
  tid @4 :Column;
  startAddress @5 :Column;
  sizeBytes @6 :Column;
  fileOffset @7 :Column;
  protection @8 :Column;
  flags @9 :Column;
  path @10 :Column;
  buildId @11 :Column;
  deviceMajor @12 :Column;
  deviceMinor @13 :Column;
  inode @14 :Column;
}

struct KernelSymbol {
  rows @0 :UInt32;
  address @1 :Column;
  sizeBytes @2 :Column;
  name @3 :Column;
  module @4 :Column;
}

struct CpuSample {
  rows @0 :UInt32;
  timeNs @1 :Column;
  source @2 :Column;
  pid @3 :Column;
  tid @4 :Column;
  cpu @5 :Column;
  stack @6 :Column;
  stackFlags @7 :Column;
  weight @8 :Column;
  pythonStack @9 :Column;
}

struct GpuProcess {
  rows @0 :UInt32;
  timeNs @1 :Column;
  instance @2 :Column;
  state @3 :Column;
  pid @4 :Column;
  namespacePid @5 :Column;
  cuptiVersion @6 :Column;
  driverVersion @7 :Column;
  cuptiPath @8 :Column;
  detail @9 :Column;
}

struct ClockPair {
  rows @0 :UInt32;
  instance @1 :Column;
  clock @2 :Column;
  beforeNs @3 :Column;
  clockNs @4 :Column;
  afterNs @5 :Column;
}

struct CallbackName {
  rows @0 :UInt32;
  instance @1 :Column;
  domain @2 :Column;
  callbackId @3 :Column;
  name @4 :Column;
}

struct ApiCall {
  rows @0 :UInt32;
  instance @1 :Column;
  domain @2 :Column;
  callbackId @3 :Column;
  correlationId @4 :Column;
  tid @5 :Column;
  startNs @6 :Column;
  endNs @7 :Column;
  returnValue @8 :Column;
  graphNodes @9 :Column;
}

struct LaunchStack {
  rows @0 :UInt32;
  instance @1 :Column;
  correlationId @2 :Column;
  domain @3 :Column;
  callbackId @4 :Column;
  timeNs @5 :Column;
  pid @6 :Column;
  tid @7 :Column;
  cpu @8 :Column;
  stack @9 :Column;
  stackFlags @10 :Column;
  pythonStack @11 :Column;
}

struct Kernel {
  rows @0 :UInt32;
  instance @1 :Column;
  recordSizeBytes @2 :Column;
  startNs @3 :Column;
  endNs @4 :Column;
  completedNs @5 :Column;
  queuedNs @6 :Column;
  submittedNs @7 :Column;
  correlationId @8 :Column;
  deviceId @9 :Column;
  contextId @10 :Column;
  streamId @11 :Column;
  channelId @12 :Column;
  channelType @13 :Column;
  graphId @14 :Column;
  graphNodeId @15 :Column;
  gridId @16 :Column;
  name @17 :Column;
  gridX @18 :Column;
  gridY @19 :Column;
  gridZ @20 :Column;
  blockX @21 :Column;
  blockY @22 :Column;
  blockZ @23 :Column;
  clusterX @24 :Column;
  clusterY @25 :Column;
  clusterZ @26 :Column;
  clusterSchedulingPolicy @27 :Column;
  maxPotentialClusterSize @28 :Column;
  maxActiveClusters @29 :Column;
  registersPerThread @30 :Column;
  staticSharedMemoryBytes @31 :Column;
  dynamicSharedMemoryBytes @32 :Column;
  sharedMemoryExecutedBytes @33 :Column;
  localMemoryPerThreadBytes @34 :Column;
  localMemoryTotalBytes @35 :Column;
  cacheConfig @36 :Column;
  sharedMemoryConfig @37 :Column;
  partitionedGlobalCacheRequested @38 :Column;
  partitionedGlobalCacheExecuted @39 :Column;
  sharedMemoryLimitConfig @40 :Column;
  sharedMemoryCarveoutIsRequested @41 :Column;
  sharedMemoryCarveoutRequested @42 :Column;
  launchType @43 :Column;
  isDeviceLaunched @44 :Column;
  tail @45 :Column;
}

struct Memcpy {
  rows @0 :UInt32;
  instance @1 :Column;
  recordSizeBytes @2 :Column;
  peerToPeer @3 :Column;
  startNs @4 :Column;
  endNs @5 :Column;
  sizeBytes @6 :Column;
  correlationId @7 :Column;
  runtimeCorrelationId @8 :Column;
  deviceId @9 :Column;
  contextId @10 :Column;
  streamId @11 :Column;
  sourceDeviceId @12 :Column;
  sourceContextId @13 :Column;
  destinationDeviceId @14 :Column;
  destinationContextId @15 :Column;
  channelId @16 :Column;
  channelType @17 :Column;
  graphId @18 :Column;
  graphNodeId @19 :Column;
  copyCount @20 :Column;
  copyKind @21 :Column;
  sourceKind @22 :Column;
  destinationKind @23 :Column;
  flags @24 :Column;
  isDeviceLaunched @25 :Column;
  tail @26 :Column;
}

struct Memset {
  rows @0 :UInt32;
  instance @1 :Column;
  recordSizeBytes @2 :Column;
  startNs @3 :Column;
  endNs @4 :Column;
  sizeBytes @5 :Column;
  value @6 :Column;
  correlationId @7 :Column;
  deviceId @8 :Column;
  contextId @9 :Column;
  streamId @10 :Column;
  channelId @11 :Column;
  channelType @12 :Column;
  graphId @13 :Column;
  graphNodeId @14 :Column;
  flags @15 :Column;
  memoryKind @16 :Column;
  isDeviceLaunched @17 :Column;
  tail @18 :Column;
}

struct Synchronization {
  rows @0 :UInt32;
  instance @1 :Column;
  recordSizeBytes @2 :Column;
  startNs @3 :Column;
  endNs @4 :Column;
  type @5 :Column;
  correlationId @6 :Column;
  contextId @7 :Column;
  streamId @8 :Column;
  eventId @9 :Column;
  eventSyncId @10 :Column;
  returnValue @11 :Column;
  tail @12 :Column;
}

struct GraphLaunch {
  rows @0 :UInt32;
  instance @1 :Column;
  recordSizeBytes @2 :Column;
  startNs @3 :Column;
  endNs @4 :Column;
  correlationId @5 :Column;
  deviceId @6 :Column;
  contextId @7 :Column;
  streamId @8 :Column;
  graphId @9 :Column;
  endDeviceId @10 :Column;
  endContextId @11 :Column;
  tail @12 :Column;
}

struct Overhead {
  rows @0 :UInt32;
  instance @1 :Column;
  recordSizeBytes @2 :Column;
  startNs @3 :Column;
  endNs @4 :Column;
  overheadKind @5 :Column;
  objectKind @6 :Column;
  objectId0 @7 :Column;
  objectId1 @8 :Column;
  objectId2 @9 :Column;
  correlationId @10 :Column;
  tail @11 :Column;
}

struct Device {
  rows @0 :UInt32;
  instance @1 :Column;
  deviceId @2 :Column;
  name @3 :Column;
  uuid @4 :Column;
  computeCapabilityMajor @5 :Column;
  computeCapabilityMinor @6 :Column;
  multiprocessorCount @7 :Column;
  globalMemoryBytes @8 :Column;
}

struct RawActivity {
  rows @0 :UInt32;
  instance @1 :Column;
  kind @2 :Column;
  bytes @3 :Column;
  name @4 :Column;
}

struct GraphNode {
  rows @0 :UInt32;
  instance @1 :Column;
  timeNs @2 :Column;
  change @3 :Column;
  nodeId @4 :Column;
  originalNodeId @5 :Column;
  graphId @6 :Column;
  nodeType @7 :Column;
  tid @8 :Column;
  correlationId @9 :Column;
}

struct Probe {
  rows @0 :UInt32;
  probe @1 :Column;
  purpose @2 :Column;
  function @3 :Column;
  path @4 :Column;
  kind @5 :Column;
  offset @6 :Column;
}

struct ProbeHit {
  rows @0 :UInt32;
  timeNs @1 :Column;
  probe @2 :Column;
  isReturn @3 :Column;
  pid @4 :Column;
  tid @5 :Column;
  cpu @6 :Column;
  kernel @7 :Column;
  returnValue @8 :Column;
  stack @9 :Column;
  stackFlags @10 :Column;
  pythonStack @11 :Column;
}

struct SymbolSlice {
  rows @0 :UInt32;
  path @1 :Column;
  buildId @2 :Column;
  detail @3 :Column;
  part @4 :Column;
  partCount @5 :Column;
  bytes @6 :Column;
}

struct GeneratedSymbol {
  rows @0 :UInt32;
  timeNs @1 :Column;
  pid @2 :Column;
  address @3 :Column;
  sizeBytes @4 :Column;
  name @5 :Column;
}

struct NvtxEvent {
  rows @0 :UInt32;
  instance @1 :Column;
  timeNs @2 :Column;
  kind @3 :Column;
  tid @4 :Column;
  domain @5 :Column;
  range @6 :Column;
  text @7 :Column;
  category @8 :Column;
  color @9 :Column;
  payloadType @10 :Column;
  payload @11 :Column;
}

struct MemoryOperation {
  rows @0 :UInt32;
  instance @1 :Column;
  recordSizeBytes @2 :Column;
  timeNs @3 :Column;
  operation @4 :Column;
  memoryKind @5 :Column;
  correlationId @6 :Column;
  address @7 :Column;
  sizeBytes @8 :Column;
  deviceId @9 :Column;
  contextId @10 :Column;
  streamId @11 :Column;
  isAsync @12 :Column;
  poolType @13 :Column;
  poolAddress @14 :Column;
  poolSizeBytes @15 :Column;
  poolUtilizedBytes @16 :Column;
  name @17 :Column;
  tail @18 :Column;
}

struct RecordingSwitch {
  rows @0 :UInt32;
  timeNs @1 :Column;
  isOn @2 :Column;
  cause @3 :Column;
}

struct PythonCode {
  rows @0 :UInt32;
  code @1 :Column;
  name @2 :Column;
  path @3 :Column;
  firstLine @4 :Column;
  lineTable @5 :Column;
  version @6 :Column;
}

struct JitOperation {
  rows @0 :UInt32;
  instance @1 :Column;
  recordSizeBytes @2 :Column;
  startNs @3 :Column;
  endNs @4 :Column;
  entryKind @5 :Column;
  operation @6 :Column;
  deviceId @7 :Column;
  correlationId @8 :Column;
  jitCorrelationId @9 :Column;
  cacheSizeBytes @10 :Column;
  cachePath @11 :Column;
  tid @12 :Column;
  tail @13 :Column;
}
