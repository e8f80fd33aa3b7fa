// The sections of the summary. Each writes nothing where the capture has nothing of its subject.
#pragma once

#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_tree.h"
#include "report/query/gpu_busy.h"
#include "report/query/unsymbolized_files.h"
#include "report/views/summary/summary_text.h"
#include "report/workload/steps.h"

namespace xpu {

// ---- steps: summary_steps.cpp

// Returns whether slow steps were worth a line, and so a look. Nothing is written of few or
// irregular steps, nor of a part of a capture.
bool WriteSteps(Analysis& analysis, const StepDefinition& definition, std::vector<StepSeries> all,
                SummaryText& text);

// ---- threads that did not run: summary_off_cpu.cpp

// Threads that wait for each other's locks.
void WriteDeadlocks(const Analysis& analysis, SummaryText& text);

// How threads spent their time, what they waited for, and what the main thread waited for while a
// GPU was idle. Nothing if the capture has no off-CPU time.
void WriteOffCpu(Analysis& analysis, SummaryText& text);

// ---- GPUs as a whole: summary_gpus.cpp

// Nothing where nothing was recorded.
void WriteGpuMetrics(const Analysis& analysis, SummaryText& text);

// ---- jobs of many ranks, and containers: summary_job.cpp

// The ranks and their hosts, how the clocks of hosts were aligned, and the collectives. Nothing of
// a single process without a rank.
void WriteJob(const Analysis& analysis, SummaryText& text);
// A row for each rank; nothing of fewer than two that have collectives.
void WriteRankSums(Analysis& analysis, const std::vector<GpuBusy>& busy,
                   const StepDefinition& steps, SummaryText& text);
// The containers that the processes are in; nothing if they are in none.
void WriteContainers(const Analysis& analysis, SummaryText& text);

// ---- how good the recording is, and what is missing from it: summary_recording.cpp

// Samples, the profiler's own among them, stacks, symbols, launches and the kernels matched to
// them, clocks. `cpu`: the tree of the samples.
void WriteQuality(Analysis& analysis, const CallTree& cpu, const std::vector<GpuBusy>& gpus,
                  SummaryText& text);
// How many of the stacks reach their outermost frame: "98.7 % of 12,345 CPU samples and 100 % of
// 2,000 CUDA calls reach their outermost frame (unwind tables)". Empty where no stack was unwound
// by tables: frame pointers do not tell whether they led to the end. Shares are rounded down, so
// that 100 means all.
std::string StackCountsText(const LoadedEvents& events, const EventSet& cpu_samples);
// The ledger: losses, then notes. Nothing when it is empty.
void WriteLedger(const Analysis& analysis, SummaryText& text);
// Files without names, and why.
void WriteUnsymbolized(const Analysis& analysis, const UnsymbolizedFiles& nameless,
                       SummaryText& text);

// "exit status 0", "killed by SIGKILL", of a status as waitpid gives it.
std::string DescribeStatus(int status);

// "node7 6.1.0 x86_64, 16 CPUs"
std::string HostText(const Model& model, const RecordingInfo& info);
// "commit=1a2b3c, branch=main". Nothing where there are none.
void WriteLabels(const Model& model, const RecordingInfo& info, std::string_view title,
                 SummaryText& text);

// Name, command, host and time of each of several captures that are shown as one.
void WriteCaptures(const Analysis& analysis, SummaryText& text);
// CPU and GPU time by process, and by thread where a process has several. Nothing for one process.
void WriteProcessTimes(const Analysis& analysis, SummaryText& text);

}  // namespace xpu
