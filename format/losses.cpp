#include "format/losses.h"

#include <array>

#include "format/base/check.h"

namespace xpu {
namespace {

constexpr std::array<LossInfo, static_cast<size_t>(LossKind::kCount)> kTable{{
    {LossKind::kSampleRingFull, "sample_ring_full", Severity::kLost,
     "CPU {sample|samples} dropped: the sample ring was full",
     "Lower -F, or give xpu-record a free core."},
    {LossKind::kLaunchRingFull, "launch_ring_full", Severity::kPartial,
     "launch {stack|stacks} dropped: the launch ring was full",
     "Give xpu-record a free core; their calls and GPU records are counted separately."},
    {LossKind::kLaunchStackMissing, "launch_stack_missing", Severity::kPartial,
     "CUDA {call|calls} whose stack was not taken although the program reached the marker",
     "Most likely the program had no free file descriptor: raise ulimit -n (RLIMIT_NOFILE). "
     "Otherwise it may use a copy of the injected library, for example in a container."},
    {LossKind::kPerfRecordsLost, "perf_records_lost", Severity::kPartial,
     "process or mapping {record|records} dropped by the kernel",
     "Some frames may stay unnamed; give xpu-record a free core."},
    {LossKind::kPrivilegesGained, "privileges_gained", Severity::kLost,
     "{program|programs} that gained privileges when started (setuid, setgid, file capabilities) "
     "or cannot be read: the kernel stops sampling them and what they start",
     "As root, -a records all processes; or run what they start under xpu-record."},
    {LossKind::kProcessNotFollowed, "process_not_followed", Severity::kLost,
     "{process or thread|processes and threads} that could not be marked as belonging to the "
     "recording",
     "The kernel is out of memory, or with -p more than 16,384 processes run."},
    {LossKind::kStackCut, "stack_truncated", Severity::kPartial,
     "{stack|stacks} deeper than the limit, cut at the outer end",
     "The limit is 512 frames for CPU samples, 256 for CUDA calls; with --call-graph=fp it is the "
     "sysctl kernel.perf_event_max_stack."},
    {LossKind::kStackUnreadable, "stack_unreadable", Severity::kPartial,
     "{stack|stacks} that could not be read, or not completely", ""},
    {LossKind::kStackNoRule, "stack_no_rule", Severity::kPartial,
     "{stack that ends|stacks that end} in code without an unwind table or frame pointer",
     "Code generated at run time, or a file without .eh_frame."},
    {LossKind::kStackRuleUnsupported, "stack_rule_unsupported", Severity::kPartial,
     "{stack that ends|stacks that end} at an unwind rule that tables cannot represent",
     "For example, the loader was binding a function at its first call, which LD_BIND_NOW=1 "
     "avoids, or Go's runtime was switching stacks."},
    {LossKind::kStackBadReturn, "stack_bad_return", Severity::kPartial,
     "{stack that ends|stacks that end} at a return address outside all code",
     "Call frame information that does not match its code, or any tool's return probe (uretprobe) "
     "there."},
    {LossKind::kStackStuck, "stack_stuck", Severity::kPartial,
     "{stack that ends|stacks that end} at a frame that is not above the previous one", ""},
    {LossKind::kStackNotCalled, "stack_not_called", Severity::kPartial,
     "{stack|stacks} cut at a return address that does not follow a call",
     "Call frame information that does not match its code led into data on the stack."},
    {LossKind::kUnwindTableNotReady, "unwind_table_not_ready", Severity::kPartial,
     "{stack|stacks} unwound by frame pointer because the table for the code was not ready",
     "The code had just been mapped; the next recording finds most tables on disk."},
    {LossKind::kUnwindTableFailed, "unwind_table_failed", Severity::kPartial,
     "{file|files} for which no unwind table, or not a whole one, could be made", ""},
    {LossKind::kPythonNotWalked, "python_not_walked", Severity::kPartial,
     "{process|processes} whose Python frames are not recorded",
     "Only CPython 3.9 to 3.14 with the global lock is supported."},
    {LossKind::kPythonCut, "python_truncated", Severity::kPartial,
     "{stack|stacks} with more Python frames than the limit, cut at the outer end",
     "The limit is 384 frames, including those of the interpreter itself."},
    {LossKind::kPythonUnreadable, "python_unreadable", Severity::kPartial,
     "{stack|stacks} whose Python frames could not be read, or not completely", ""},
    {LossKind::kPythonCodeMissing, "python_code_missing", Severity::kPartial,
     "Python {frame|frames} whose name did not reach the capture",
     "Lower -F, or give xpu-record a free core."},
    {LossKind::kWireRingFull, "wire_ring_full", Severity::kLost,
     "{record|records} dropped: the ring between the program and xpu-record was full",
     "Give xpu-record a free core."},
    {LossKind::kCallLost, "call_lost", Severity::kLost,
     "CUDA {call|calls} lost along with {its stack|their stacks}: the rings were full",
     "Give xpu-record a free core; their stacks are counted in launch_ring_full too, and their GPU "
     "work, if recorded, has no launch."},
    {LossKind::kWireTorn, "wire_torn", Severity::kLost,
     "GPU {record|records} not completed when the program ended", ""},
    {LossKind::kWireInvalid, "wire_invalid", Severity::kLost,
     "invalid {message|messages} from the program",
     "Check that the injected library has the same version as xpu-record."},
    {LossKind::kCuptiDropped, "cupti_dropped", Severity::kLost,
     "GPU {record|records} dropped by CUPTI", ""},
    {LossKind::kCuptiNotDelivered, "cupti_not_delivered", Severity::kLost,
     "{operation|operations} whose GPU record CUPTI had not delivered at the end",
     "A process that ends by _exit (as Python's multiprocessing does), abort, exec or SIGKILL "
     "leaves no time to flush; nor does one that outlives the recording or is stopped (SIGSTOP)."},
    {LossKind::kProcessNotReached, "process_not_reached", Severity::kLost,
     "CUDA {process|processes} that could not deliver {its|their} records", ""},
    {LossKind::kInjectionUnknown, "injection_unknown", Severity::kNote,
     "{process|processes} that mapped the CUDA driver, are not known to have started CUDA, and "
     "could not be examined",
     "They exited immediately, or belong to another user."},
    {LossKind::kInjectDormant, "inject_dormant", Severity::kLost,
     "CUDA {process|processes} in which recording did not start, or stopped early",
     "Where CUPTI could not be used: xpu-record --check shows whether it is available; "
     "--yield-cupti records launches without it. If xpu-record could not keep up, give it a free "
     "core; do not stop it (SIGSTOP)."},
    {LossKind::kOtherProfilerRefused, "other_profiler_refused", Severity::kNote,
     "CUPTI {request|requests} by another profiler in the program, refused",
     "Record with --yield-cupti to let the program's own profiler work."},
    {LossKind::kProcessOutlived, "process_outlived", Severity::kPartial,
     "CUDA {process that was|processes that were} still running when the recording ended",
     "What they did later is not recorded: the recording ends with the program."},
    {LossKind::kGpuFault, "gpu_fault", Severity::kNote,
     "{process|processes} with a CUDA call that returned an error of the GPU",
     "xpu-report says what is known of the work that failed."},
    {LossKind::kProbeNotPlaced, "probe_not_placed", Severity::kLost,
     "CUDA {library|libraries} whose launches could not be probed", ""},
    {LossKind::kProbeRingFull, "probe_ring_full", Severity::kLost,
     "probe {hit|hits} dropped: the ring was full", "Give xpu-record a free core."},
    {LossKind::kWriteFailed, "write_failed", Severity::kLost,
     "{event|events} that could not be written to the capture", ""},
    {LossKind::kOutputStalled, "output_stalled", Severity::kLost,
     "{event|events} dropped: the disk or pipe took the capture too slowly",
     "Write to a faster disk, or raise --output-buffer."},
    {LossKind::kKernelSymbolsHidden, "kernel_symbols_hidden", Severity::kPartial,
     "kernel {address|addresses} without a name",
     "Run as root or with CAP_SYSLOG (kernel.kptr_restrict)."},
    {LossKind::kSymbolsNotStored, "symbols_not_stored", Severity::kNote,
     "{file|files} whose symbols could not be stored",
     "xpu-report --embed-symbols adds them later, on a machine with the files."},
    {LossKind::kInvalidTime, "invalid_time", Severity::kPartial,
     "GPU {record|records} without a valid time, counted but not summed",
     "CUPTI ran out of the device buffers in which the GPU records its times, or the work failed "
     "or had not ended: xpu-report --top --table unfinished_sum."},
    {LossKind::kBlockDamaged, "block_damaged", Severity::kLost,
     "{block|blocks} of the capture that {is|are} damaged and {was|were} skipped",
     "Copy the file again."},
    {LossKind::kFileCut, "file_cut", Severity::kLost,
     "{capture that ends|captures that end} in the middle: the end was never written",
     "It is still being written, the recorder was killed, the disk was full, or the file was "
     "copied in part."},
    {LossKind::kReferenceLost, "reference_lost", Severity::kPartial,
     "{reference|references} to names or stacks whose block is damaged, shown as [lost]", ""},
    {LossKind::kGeneratedCodeCut, "generated_code_cut", Severity::kPartial,
     "{perf map or jitdump|perf maps and jitdumps} whose names were not all stored: a limit of "
     "size or time was reached",
     "Record fewer processes at a time, for example with -p, or raise --max-size."},
    {LossKind::kProcessMemoryFull, "process_memory_full", Severity::kPartial,
     "{name or stack|names and stacks}, or launches and records with them, dropped: the memory for "
     "them was full",
     "All recorded programs share 768 MiB: record fewer of them at once."},
    {LossKind::kMappingsDropped, "mappings_dropped", Severity::kNote,
     "executable {mapping|mappings} whose symbols were not looked up",
     "xpu-report --embed-symbols adds them later, on a machine with the files."},
    {LossKind::kLinesNotStored, "lines_not_stored", Severity::kNote,
     "{file|files} with debug information whose source lines could not be read",
     "The names are stored. xpu-report shows the lines on a machine where it can read the files."},
    {LossKind::kOffCpuRingFull, "off_cpu_ring_full", Severity::kLost,
     "off-CPU {time|times} dropped: the ring was full",
     "Raise --off-cpu-min, or give xpu-record a free core."},
    {LossKind::kOffCpuNotSummed, "off_cpu_not_summed", Severity::kLost,
     "short off-CPU {time|times} whose sums did not fit into the ring", "Raise --off-cpu-min."},
    {LossKind::kOffCpuWakersDropped, "off_cpu_wakers_dropped", Severity::kPartial,
     "{stack|stacks} of waking threads dropped: the ring was full",
     "Raise --off-cpu-min, or give xpu-record a free core."},
    {LossKind::kOffCpuThreadsMissed, "off_cpu_threads_missed", Severity::kLost,
     "{thread|threads} whose states are not recorded: the kernel had no memory", ""},
    {LossKind::kOffCpuEventsMissed, "off_cpu_events_missed", Severity::kPartial,
     "context {switch or wake-up|switches or wake-ups} that the kernel did not report",
     "Around each of them, some running time is counted as off-CPU time, or vice versa."},
    {LossKind::kGpuMetricsRefused, "gpu_metrics_refused", Severity::kLost,
     "{kind|kinds} of GPU metrics that could not be recorded",
     "Another profiler may hold the counters (ncu, nsys, DCGM); they need root, or the driver's "
     "NVreg_RestrictProfilingToAdminUsers=0."},
    {LossKind::kGpuSamplesLost, "gpu_samples_lost", Severity::kLost,
     "GPU metric {sample|samples} lost: the buffer of the counters was full",
     "Raise --gpu-metric-interval, or give xpu-record a free core."},
    {LossKind::kGpuNotSampled, "gpu_not_sampled", Severity::kLost,
     "CUDA {context|contexts} in which GPU code could not be sampled", ""},
    {LossKind::kGpuSamplesDropped, "gpu_samples_dropped", Severity::kLost,
     "{sample|samples} of GPU code dropped",
     "Raise --gpu-sample-period or --gpu-sample-buffer, or give xpu-record a free core."},
    {LossKind::kGpuCodeMissing, "gpu_code_missing", Severity::kPartial,
     "GPU {module|modules} whose code is not stored: their samples have no source lines", ""},
    {LossKind::kAllocatorUnknown, "allocator_unknown", Severity::kPartial,
     "{process|processes} whose PyTorch reports its memory in an unknown way",
     "Only what its allocator got from CUDA is recorded, not what it hands out; a newer xpu may "
     "know this version of PyTorch."},
    {LossKind::kSourcesNotStored, "sources_not_stored", Severity::kNote,
     "source {file|files} whose lines could not be stored", ""},
    {LossKind::kGpuClocksRefused, "gpu_clocks_refused", Severity::kNote,
     "{failure|failures} to record GPU clocks and power", "--no-gpu-clocks leaves them out."},
    {LossKind::kOldCupti, "old_cupti", Severity::kNote,
     "{process|processes} with a libcupti that lacks what newer ones have",
     "A newer one that the driver allows can be chosen with --cupti-lib."},
    {LossKind::kGeneratedCodeOutdated, "generated_code_outdated", Severity::kNote,
     "{name|names} of generated code not used: an earlier program wrote the file",
     "A perf map that is older than the program does not describe its code."},
    {LossKind::kMovedCodeUnknown, "moved_code_unknown", Severity::kPartial,
     "{range|ranges} of code in the place of a file's code, which differs from it",
     "The program generated or changed this code: names of the file are not used for it."},
    {LossKind::kHangTimesLost, "hang_times_lost", Severity::kPartial,
     "GPU {record|records} without a time, taken while nothing ended on the GPU, which went on "
     "later",
     "When nothing has ended for 10 s longer than the longest operation so far, unfinished work is "
     "recorded as it is."},
    {LossKind::kGpuNotFinished, "gpu_not_finished", Severity::kLost,
     "{process|processes} whose GPU activity is missing while work from before the attach went on",
     "The GPU is busy, or hangs: the CPU samples show where the threads wait; attach again once it "
     "has finished, or record the program from its start."},
    {LossKind::kThreadsNotListed, "threads_not_listed", Severity::kNote,
     "{process|processes} whose waiting threads could not be listed while nothing ended on the GPU",
     "That needs root, or capabilities that xpu-record --check names."},
}};

}  // namespace

bool IsAboutStacks(LossKind kind) {
  switch (kind) {
    case LossKind::kStackCut:
    case LossKind::kStackUnreadable:
    case LossKind::kStackNoRule:
    case LossKind::kStackRuleUnsupported:
    case LossKind::kStackBadReturn:
    case LossKind::kStackStuck:
    case LossKind::kStackNotCalled:
    case LossKind::kUnwindTableNotReady:
    case LossKind::kUnwindTableFailed:
    case LossKind::kPythonNotWalked:
    case LossKind::kPythonCut:
    case LossKind::kPythonUnreadable:
    case LossKind::kPythonCodeMissing:
      return true;
    default:
      return false;
  }
}

std::span<const LossInfo> LossTable() { return kTable; }

const LossInfo& InfoOf(LossKind kind) {
  const LossInfo& info = kTable.at(static_cast<size_t>(kind));
  XPU_CHECK(info.kind == kind);
  return info;
}

const LossInfo* FindLoss(std::string_view name) {
  for (const LossInfo& info : kTable) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

}  // namespace xpu
